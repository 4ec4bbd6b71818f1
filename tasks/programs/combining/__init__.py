"""Combinations that compute a value for each entry: functions of edges (`message`), and the k largest values (`top`).

May import `programs.gathering`, `programs.program`, `programs.mirrors`, `programs.block` and the kernels. Start with
`entries`.
"""
