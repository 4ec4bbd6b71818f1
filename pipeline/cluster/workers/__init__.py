"""What a worker process does beside its tasks: compile kernels, keep results in files, and end if its GPU is broken.

Start with `preload`, which a worker loads before it takes work.
"""
