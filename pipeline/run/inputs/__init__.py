"""The input of one run: opened once, recorded in the manifest, and compared with the input of an existing result.

May import what the room `run` may, but none of its modules. Start with `run_input`.
"""
