"""Benchmarks of graphs that change. Start with `update`, which also makes the batches of `nights`."""
