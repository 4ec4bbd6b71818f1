"""How long the explorer takes, from the click to the picture, in a Chromium without a window or a GPU.

    python -m benchmarks explorer --results out/facebook,out/actor-collaboration

Of each result the DN-graph of the largest λ and the one of most vertices; without `--results`, a DN-graph of 1,000
vertices and 20,000 edges. *Answer* is the server's: edges read, drawing laid out. *Opened* is from the click to the
second frame after all of it is on the page; WebGL is rendered by the CPU. *Vertex* is one looked up with its groups.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import ROOT
from benchmarks.graphs import WrongAnswer
from benchmarks.table import markdown, millions, seconds, span
from edgemill.pipeline import Result, mine

sys.path.append(str(ROOT / "tests"))
from chromium import Page, page
from serving import serving

HEAD = ("result", "edges, M", "λ", "vertices", "edges", "drawn", "vertex, s", "answer, s", "opened, s", "from-to, s")

_CLICK = """new Promise(opened => {
    const began = performance.now();
    const watch = new MutationObserver(() => {
        if (document.querySelector('#drawing').hidden || document.body.hasAttribute('aria-busy')) return;
        watch.disconnect();
        requestAnimationFrame(() => requestAnimationFrame(() => opened((performance.now() - began) / 1000)));
    });
    watch.observe(document, { subtree: true, childList: true, attributes: true });
    location.hash = '#dn-graph=%s';
})"""
_READY = "document.querySelector('#icicle .rows') && !document.body.hasAttribute('aria-busy')"


@dataclass(frozen=True)
class Opened:
    """One DN-graph, several times."""

    result: str
    graph_edges: int
    lam: int
    vertices: int
    edges: int
    drawn: int
    """Vertices in the picture, neighbours too."""
    vertex_seconds: float
    answer_seconds: float
    """Medians, both."""
    opened: tuple[float, ...]
    """Seconds, each time."""


def measure(result: Result, tab: Page, repeats: int) -> Iterator[Opened]:
    """Open two DN-graphs of a result, or one if they are the same. Raises WrongAnswer if not all of one is drawn."""
    rows = result.dn_graphs.to_table().to_pylist()
    chosen = {max(rows, key=lambda row: (row[by], row["lambda"]))["id"] for by in ("lambda", "vertices")}
    with serving(result) as served:
        for row in rows:
            if row["id"] not in chosen:
                continue
            (member, *_) = result.dn_graph_members.to_table().to_pylist()
            opened = []
            for _ in range(repeats):
                tab.open(f"{served.address}#graph")  # without it the page opens a DN-graph by itself
                tab.until(_READY)
                opened.append(float(tab.run(_CLICK % row["id"])))
            if f"{row['vertices']:,} vert" not in tab.run("document.querySelector('#chosen-title').innerText"):
                raise WrongAnswer(f"the page does not show DN-graph {row['id']} of {result.place}")
            yield Opened(
                Path(str(result.place)).name,
                result.manifest.counts.edges,
                row["lambda"],
                row["vertices"],
                row["edges"],
                tab.run(
                    f"fetch('api/drawing?dn_graph={row['id']}').then(a => a.json()).then(a => a.vertices.id.length)"
                ),
                _asked(f"{served.address}api/vertex?id={member['vertex']}", repeats),
                _asked(f"{served.address}api/drawing?dn_graph={row['id']}", repeats),
                tuple(opened),
            )


def _asked(url: str, repeats: int) -> float:
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        with urllib.request.urlopen(url) as answer:
            answer.read()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def ring(folder: Path, vertices: int = 1000, reach: int = 20) -> Result:
    """One DN-graph of λ = reach - 1: each vertex of a ring with the `reach` that follow it."""
    source = np.repeat(np.arange(vertices), reach)
    target = (source + np.tile(np.arange(1, reach + 1), vertices)) % vertices
    pq.write_table(pa.table({"src": source, "dst": target}), folder / "rows.parquet")
    return mine(folder / "rows.parquet", folder / "ring", device="cpu")


def row(times: Opened) -> list[str]:
    """A line of the table."""
    return [
        times.result,
        millions(times.graph_edges),
        f"{times.lam:,}",
        f"{times.vertices:,}",
        f"{times.edges:,}",
        f"{times.drawn:,}",
        seconds(times.vertex_seconds),
        seconds(times.answer_seconds),
        seconds(statistics.median(times.opened)),
        span(times.opened),
    ]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("--results", default="", help="folders of results, with commas; left out: a made-up one")
    parser.add_argument("--repeats", type=int, default=5, help="times that each is opened (5)")


def report(options: argparse.Namespace) -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as scratch, page(Path(scratch) / "browser") as tab:
        tab.size(1300, 900)
        results = [Result(folder) for folder in options.results.split(",") if folder] or [ring(Path(scratch))]
        print(markdown(HEAD, [row(times) for result in results for times in measure(result, tab, options.repeats)]))
