"""Benchmarks: importable cases, small as tests (tests/benchmarks), large by hand.

    python -m benchmarks kernels         support and λ alone, graph in memory
    python -m benchmarks runs            the whole command, Parquet to Parquet, against the kernels
    python -m benchmarks first_run       the command with nothing compiled yet
    python -m benchmarks client_memory   whether the client's memory grows with the edges
    python -m benchmarks memory          what a plan projects against what a run takes
    python -m benchmarks waves           runs that do not fit in their workers' memory
    python -m benchmarks checksums       what checking pages costs a reader
    python -m benchmarks writing         what tables take to be written, against Arrow alone
    python -m benchmarks ids             many ids within little memory, by edgemill and by DuckDB
    python -m benchmarks peers           NetworkX on the same graph
    python -m benchmarks explorer        the explorer's page in a browser
    python -m benchmarks gpu             support and λ on a GPU, graph in its memory
    python -m benchmarks gpu_runs        whole runs on one GPU or several
    python -m benchmarks all_to_all      what an exchange of everybody with everybody costs the scheduler
    python -m benchmarks scaling         the model of docs/scaling.md, from what was measured and simulated
    python -m benchmarks workers         the whole command with more and more worker processes on the same cores
    python -m benchmarks letters         what letters between many workers cost by Dask's comms
    python -m benchmarks scaling         the model of docs/scaling.md, from what was measured and counted
    python -m benchmarks shards          rows cut by the third vertex: counts, evenness and times in one process
    python -m benchmarks shard_counts    the same counts, and the rows of shards, as a CSV

Run them in the project's root, in an environment that has edgemill; `--help` after a name shows its options. Each
prints the machine and a Markdown table, checks the answers it timed, and ends with an error if one is wrong. Final
figures stand in docs/benchmarks.md, each with its command.
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
"""The checkout."""
