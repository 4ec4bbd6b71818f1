"""edgemill as a backend of NetworkX: its functions that edgemill answers exactly, and faster.

NetworkX finds both objects here by the entry points `networkx.backends` and `networkx.backend_info`, and asks for the
second whenever it is imported. So neither module is imported before it is needed.
"""
