"""CUDA sources for rows cut by the third vertex. The head of each states its contract.

Start with peel.cu; rows.cu builds rows, third_vertex.cu counts triangles. May include headers of the parent folder.
"""
