"""Benchmarks on GPUs. Start with `graphs`, which makes R-MAT graphs on the device."""
