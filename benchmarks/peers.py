"""NetworkX on the same graph in the same run.

    python -m benchmarks peers --graph wiki-Vote

NetworkX has no λ for all edges: it gives one k-truss a call, so they are taken in turn, each from the one before. One
pass, one thread, graph in memory on both sides; edgemill's kernels run on the threads given, before and after. Needs
networkx (extra `test`). Left out: python-igraph 1.0, whose C core knows truss numbers but which does not offer them.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import networkx as nx
import pyarrow.dataset as ds

from benchmarks import kernels
from benchmarks.graphs import Graph, WrongAnswer, graph
from benchmarks.table import markdown, seconds
from edgemill.kernels.warm import warm


@dataclass(frozen=True)
class Compared:
    """Two programs on one graph, with the same answers."""

    graph: str
    kernel_seconds: float
    networkx_seconds: float


def networkx_graph(path: Path) -> nx.Graph:
    """The simple graph of Parquet edges with columns src and dst."""
    table = ds.dataset(path).to_table(columns=["src", "dst"])
    simple = nx.Graph(zip(table["src"].to_pylist(), table["dst"].to_pylist(), strict=True))
    simple.remove_edges_from(list(nx.selfloop_edges(simple)))
    return simple


def networkx_lambda(simple: nx.Graph) -> tuple[int, int]:
    """Largest λ and the sum over all edges: each edge is in one truss for every k up to its λ."""
    highest = total = k = 0
    truss = simple
    while truss.number_of_edges():
        highest, total = k, total + (truss.number_of_edges() if k else 0)
        k += 1
        truss = nx.k_truss(truss, k + 2)
    return highest, total


def measure(graph: Graph, threads: int) -> Compared:
    """Time both; raises WrongAnswer if they disagree."""
    warm("peel", 1)
    owned, simple = kernels.owned_edges(graph.path), networkx_graph(graph.path)
    samples = [kernels.sample(owned, threads) for _ in range(3)]
    start = time.perf_counter()
    found = networkx_lambda(simple)
    elapsed = time.perf_counter() - start
    samples += [kernels.sample(owned, threads) for _ in range(3)]
    answers = samples[0].answers
    graph.check(answers)
    if found != (answers.lambda_max, answers.lambda_sum):
        raise WrongAnswer(f"{graph.name}: NetworkX has λ max and sum {found}, the kernels {answers}")
    return Compared(graph.name, median(sample.seconds for sample in samples), elapsed)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    parser.add_argument("--graph", default="wiki-Vote")


HEAD = ("graph", "edgemill kernels, s", "NetworkX, s", "times")


def row(compared: Compared) -> list[str]:
    """A line of the table."""
    ratio = compared.networkx_seconds / compared.kernel_seconds
    return [compared.graph, seconds(compared.kernel_seconds), seconds(compared.networkx_seconds), f"{ratio:.0f}"]


def report(options: argparse.Namespace) -> None:
    """Measure and print."""
    compared = measure(graph(options.graph, options.cache), options.threads)
    print(f"NetworkX {nx.__version__}, one thread; kernels on {options.threads}:\n")
    print(markdown(HEAD, [row(compared)]))
