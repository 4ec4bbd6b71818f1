"""What vertex programs of an update start from.

May import `kernels`. `earlier_values` has values in the graph before from which those in the new one follow or begin,
`arcs` the directions and weights of edges, and what a batch makes of them.
"""
