"""The formats of input files that edgemill reads: a module is a format, whose name in `input.format` is the module's.

The subclass of `InputFormat` in it declares everything. Start with `arrow`: a format like it, with typed columns and
parts that are read alone, is a subclass of `TypedFormat` and needs nothing else. May import what reads a format.
"""
