"""Real graphs with known answers, from the catalogue next to the checkout. Without it, their tests are skipped."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

FACEBOOK = Path(__file__).resolve().parents[2] / "graphs" / "facebook_combined.parquet"
"""A small real graph in the repository."""
FOLDER = Path(__file__).resolve().parents[4] / "shared" / "data"
CATALOGUE = FOLDER / "CATALOG.json"

SKIP_REASON = None if CATALOGUE.is_file() else f"no catalogue of real graphs at {CATALOGUE}"
"""The reason to skip tests on real graphs, or None."""


@dataclass(frozen=True)
class KnownGraph:
    """One real graph and the answers of independent programs for its simple undirected form."""

    name: str
    path: Path
    """Parquet file with int64 columns src and dst."""
    rows: int
    self_loops: int
    vertices: int
    edges: int
    triangles: int
    lambda_max: int
    lambda_sum: int
    lambda_path: Path | None
    """λ of every edge as Parquet (src < dst, lambda); None where only the figures above are known."""

    @property
    def duplicates(self) -> int:
        """Rows that repeat an edge in either direction."""
        return self.rows - self.self_loops - self.edges

    def lambda_table(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
        """Source, target and λ of every edge, sorted by (source, target), source < target."""
        if self.lambda_path is None:
            raise LookupError(f"{self.name} has no λ file")
        table = pq.read_table(self.lambda_path)
        src, dst = table["src"].to_numpy(), table["dst"].to_numpy()
        order = np.lexsort((dst, src))
        return src[order], dst[order], table["lambda"].to_numpy()[order]


def known_graphs(max_edges: int | None = None, with_lambda: bool = False) -> list[KnownGraph]:
    """The graphs of the catalogue by ascending edge count; empty without a catalogue."""
    if SKIP_REASON is not None:
        return []
    graphs = [
        KnownGraph(
            name=entry["name"],
            path=FOLDER / entry["file"],
            rows=entry["rows"],
            self_loops=entry["self_loop_rows"],
            vertices=entry["vertices"],
            edges=entry["edges"],
            triangles=entry["triangles"],
            lambda_max=entry["lambda_max"],
            lambda_sum=entry["lambda_sum"],
            lambda_path=FOLDER / entry["lambda_file"] if entry.get("lambda_file") else None,
        )
        for entry in json.loads(CATALOGUE.read_text())["graphs"]
    ]
    return sorted(
        (
            graph
            for graph in graphs
            if (max_edges is None or graph.edges <= max_edges) and (graph.lambda_path is not None or not with_lambda)
        ),
        key=lambda graph: graph.edges,
    )


def known_graph(name: str) -> KnownGraph:
    """The graph of that name. Raises LookupError if it is not in the catalogue, or there is no catalogue."""
    for graph in known_graphs():
        if graph.name == name:
            return graph
    raise LookupError(SKIP_REASON or f"no graph {name!r} in the catalogue")
