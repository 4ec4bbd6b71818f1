"""edgemill as a backend of NetworkX: functions of NetworkX that edgemill computes exactly and faster.

NetworkX finds `backend` and `info` by the entry points `networkx.backends` and `networkx.backend_info`, and loads
`info` whenever it is imported. So this package imports neither. Start at `backend`.
"""
