"""Benchmarks that are run at every release; small as tests (tests/benchmarks), large by hand.

    python -m benchmarks kernels         support and λ alone, graph in memory
    python -m benchmarks runs            the whole command, Parquet to Parquet, compared with the kernels
    python -m benchmarks first_run       the command without compiled kernels
    python -m benchmarks client_memory   memory of the client as the number of edges grows
    python -m benchmarks memory          memory that a plan projects, compared with what a run takes
    python -m benchmarks shards          peeling of rows cut by the third vertex: counts, balance and times
    python -m benchmarks bands           peeling in bands: counts of passes, work, balance and bytes
    python -m benchmarks programs        vertex programs alone, graph in memory
    python -m benchmarks program_orders  exchanges and entries of the synchronous and the asynchronous order
    python -m benchmarks communities     communities, compared with igraph
    python -m benchmarks similar_pairs   pairs of similar vertices, compared with self-joins by DuckDB and Polars
    python -m benchmarks predictions     seconds of searches from all vertices, predicted over actual
    python -m benchmarks gpu             support and λ on a GPU, graph in its memory
    python -m benchmarks gpu_bands       λ in bands: the work of several workers, on one GPU
    python -m benchmarks gpu_shards      λ by shards on one GPU or several
    python -m benchmarks gpu_programs    PageRank, breadth-first search and components on one GPU
    python -m benchmarks gpu_ranks       PageRank on several GPUs, compared with one
    python -m benchmarks gpu_stream      the same with edges in host memory that are streamed past the GPU
    python -m benchmarks gpu_gathers     ways to sum over rows on one GPU, cuSPARSE among them
    python -m benchmarks update          λ after a batch of changed edges, compared with a full computation
    python -m benchmarks nights          the whole command from an earlier result, compared with a run from nothing
    python -m benchmarks scaling         the model of docs/scaling.md, its tables and pictures; measures nothing
    python -m benchmarks record          append results to history.csv, from which docs/numbers.md is made

Run them in the root of the project, in an environment with edgemill; `--help` after a name lists its options. Each
prints the machine and a Markdown table, checks the answers that it timed, and fails if one is wrong. `--results FILE`
writes the figures for `record`.
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
"""The checkout."""
