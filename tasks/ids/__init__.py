"""Vertex ids: integers and strings under one interface, their types, order, hashes and printed form.

May import `kernels`, `device`, `errors` and `inputs.columns`. Start with `identity`; `order` sorts and codes integers.
"""
