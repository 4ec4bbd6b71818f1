"""Programs of edges: values computed from both ends of an edge, of the table of edges.

May import `programs.program`, `programs.orders`, `programs.delivery`, and what the parent may. Start with `program`,
the interface; `values` brings the values of both ends together.
"""
