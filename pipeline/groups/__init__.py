"""Groups and their vertices: who is in a group, the k-truss of one k, and the attributes of vertices."""
