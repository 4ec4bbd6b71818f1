"""The orders in which the groups run a program: in step, or each by itself until it is silent.

May import the other modules of `programs` except `running` and what imports it. `calls` calls the functions of a
program and checks what they return; `state` is a program with its state on one block; `synchronous` and `asynchronous`
are the two orders. Start with `synchronous`.
"""
