"""Pairs of similar vertices: seconds of the program and of a self-join by DuckDB and Polars, whose pairs must be equal.

    python -m benchmarks similar_pairs --graphs facebook_combined,ca-AstroPh --threads 2 --repeats 3

The graph is in memory. `edgemill` is the program `similar_pairs` on it, with `jaccard`. DuckDB (pip install duckdb)
and Polars (pip install polars) join the edges with themselves, count common neighbours by pair, and rank the pairs of
each vertex. Seconds are medians. `--peers` names those to run: a self-join of a large graph does not end, or takes more
memory than there is.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.common.graphs import WrongAnswer, graph
from benchmarks.common.table import markdown, millions, seconds
from benchmarks.programs import block_of
from edgemill.kernels import row_numbers
from edgemill.kernels.runtime.threads import kernel_threads
from edgemill.tasks.partition import RangePartitioner
from edgemill.tasks.programs import GraphBlock, run_blocks
from edgemill.tasks.programs.program import PairRows
from edgemill.tasks.programs.shipped.similar_pairs import SimilarPairs
from edgemill.tasks.shards import MemoryCarrier

GRAPHS = "facebook_combined,lastfm-asia,ca-CondMat,ca-AstroPh"
PEERS = "duckdb,polars"

QUERY = """
WITH degree AS (SELECT source, count(*) AS degree FROM edges GROUP BY source),
common AS (
    SELECT one.source AS source, other.target AS target, count(*) AS common
    FROM edges one JOIN edges other ON one.target = other.source WHERE one.source <> other.target
    GROUP BY one.source, other.target
),
alike AS (
    SELECT common.source, common.target, common / (d.degree + e.degree - common)::DOUBLE AS similarity
    FROM common JOIN degree d ON common.source = d.source JOIN degree e ON common.target = e.source
)
SELECT source, target, similarity FROM alike
QUALIFY row_number() OVER (PARTITION BY source ORDER BY similarity DESC, target) <= {k}
ORDER BY source, similarity DESC, target
"""


def of_edgemill(block: GraphBlock, k: int, threads: int) -> tuple[PairRows, dict[str, Any]]:
    """The pairs and facts of the program."""
    with kernel_threads(threads):
        (found,) = run_blocks(SimilarPairs(k), [block], RangePartitioner(), MemoryCarrier.open(1), threads=threads)
    assert found.similar is not None
    return found.similar, dict(found.facts)


def of_duckdb(edges: pa.Table, k: int, threads: int) -> NDArray[np.int64]:
    """[pairs, 2] source and target."""
    import duckdb

    connection = duckdb.connect(config={"threads": threads})
    connection.register("edges", edges)
    found = connection.execute(QUERY.format(k=k)).fetchnumpy()
    return np.stack([found["source"], found["target"]], axis=1)


def of_polars(edges: pa.Table, k: int, threads: int) -> NDArray[np.int64]:
    """[pairs, 2] source and target. The environment variable POLARS_MAX_THREADS limits its threads."""
    import polars as pl

    frame: Any = pl.from_arrow(edges)
    rows = frame.lazy()
    degree = rows.group_by("source").agg(pl.len().cast(pl.Int64).alias("degree"))
    joined = rows.join(rows, left_on="target", right_on="source", suffix="_other")
    common = joined.filter(pl.col("source") != pl.col("target_other")).group_by("source", "target_other")
    alike = (
        common.agg(pl.len().cast(pl.Int64).alias("common"))
        .join(degree, on="source")
        .join(degree.rename({"source": "target_other", "degree": "other"}), on="target_other")
        .with_columns((pl.col("common") / (pl.col("degree") + pl.col("other") - pl.col("common"))).alias("similarity"))
        .sort("source", "similarity", "target_other", descending=[False, True, False])
    )
    found = alike.group_by("source", maintain_order=True).head(k).select("source", "target_other").collect()
    pairs: NDArray[np.int64] = found.to_numpy()
    return pairs


_PEERS: dict[str, Callable[[pa.Table, int, int], NDArray[np.int64]]] = {"duckdb": of_duckdb, "polars": of_polars}


def measure(name: str, block: GraphBlock, k: int, threads: int, repeats: int, peers: list[str]) -> list[str]:
    """A line of the table. Raises WrongAnswer for other pairs than those of a peer."""
    target, source = row_numbers(block.rows.offsets), block.rows.source
    edges = pa.table({"source": source.astype(np.int64), "target": target.astype(np.int64)})
    (ours, facts), times = of_edgemill(block, k, threads), []
    for _ in range(repeats):
        start = time.perf_counter()
        of_edgemill(block, k, threads)
        times.append(time.perf_counter() - start)
    own, theirs = statistics.median(times), []
    for peer in _PEERS:
        if peer not in peers:
            theirs += ["", ""]
            continue
        times = []
        for _ in range(repeats):
            start = time.perf_counter()
            pairs = _PEERS[peer](edges, k, threads)
            times.append(time.perf_counter() - start)
        if not np.array_equal(pairs, np.stack([ours.source, ours.target], axis=1)):
            raise WrongAnswer(f"{name}: {peer} finds other pairs")
        theirs += [seconds(statistics.median(times)), f"{statistics.median(times) / own:.1f}"]
    sizes = millions(len(source) // 2), millions(facts["wedges"]), millions(facts["pairs"])
    return [name, *sizes, seconds(own), *theirs]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    parser.add_argument("--graphs", default=GRAPHS, help="names, with commas between")
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--peers", default=PEERS, help="names, with commas between; empty: none")


HEAD = (
    "graph",
    "edges, M",
    "wedges, M",
    "pairs, M",
    "edgemill, s",
    "DuckDB, s",
    "ratio of DuckDB",
    "Polars, s",
    "ratio of Polars",
)
KEYS = ("graph",)
RECORDED = ("edgemill, s", "DuckDB, s", "Polars, s")


def report(options: argparse.Namespace) -> list[list[str]]:
    """Measure and print; returns the rows of the table."""
    rows, peers = [], options.peers.split(",")
    for name in options.graphs.split(","):
        block = block_of(graph(name, options.cache).path)
        rows.append(measure(name, block, options.k, options.threads, options.repeats, peers))
    print(markdown(HEAD, rows))
    return rows
