"""Carriers exchange packets between groups: within a process, or between processes of one host by shared memory.

May import `kernels` and `tasks.storage`. Start with `carrier`, which has the protocol and the carrier within a process;
`shared_memory` is the carrier between processes, over the files of `group_file`; `gpu_memory` keeps content on GPUs.
"""
