"""Nights in a row with 1, 2 and 4 partitions: each has the result of a run, and tracks go on."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import runs
from edgemill.pipeline import Result, mine

Edges = set[tuple[int, int]]
NIGHTS = (1, 1, 4, 1, 2, 2, 1, 1)
"""The partitions of each night."""


def cliques() -> Edges:
    """Cliques of seven, each joined to the next one."""
    within = {(7 * c + u, 7 * c + v) for c in range(8) for v in range(7) for u in range(v)}
    return within | {(7 * c, 7 * c + 8) for c in range(7)}


def changed(edges: Edges, own: random.Random) -> Edges:
    """Without some edges, a vertex and its edges, and with new edges, among them those of a new vertex."""
    ids = sorted({end for edge in edges for end in edge})
    gone, new = own.choice(ids), ids[-1] + 1
    kept = {edge for edge in edges if gone not in edge} - set(own.sample(sorted(edges), 4))
    drawn = {(min(pair), max(pair)) for pair in (own.sample(ids, 2) for _ in range(6)) if gone not in pair}
    return kept | drawn | {(end, new) for end in own.sample(sorted({end for edge in kept for end in edge}), 3)}


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow), pytest.param(3, marks=pytest.mark.slow)])
def test_a_history(tmp_path: Path, seed: int) -> None:
    """A night of one partition starts from one of one partition. All others compute everything."""
    edges, own, before = cliques(), random.Random(seed), 0
    previous: dict[str, Any] = {"incremental": "auto"}
    for night, partitions in enumerate(NIGHTS):
        rows = runs.write_rows(tmp_path / f"{night}.parquet", sorted(edges))
        out = tmp_path / str(night)
        made = mine(rows, out, device="cpu", report=False, partitions=partitions, **previous)
        assert runs.flaws(made.path, rows) == []
        assert (made.manifest.update is not None) == (before == partitions == 1)
        assert made.manifest.tracks is not None
        if night:
            assert made.manifest.tracks.continued > 0
        alone = mine(rows, tmp_path / "alone", device="cpu", report=False, overwrite=True)
        for name in ("edges", "vertices", "hierarchy", "dn_graphs", "dn_graph_members"):
            assert plain(made, name) == plain(alone, name)
        edges, before, previous = changed(edges, own), partitions, {"previous": str(out), "incremental": "auto"}


def plain(result: Result, name: str) -> list[tuple[Any, ...]]:
    """Rows of a table in order, without what names tracks and partitions."""
    table = getattr(result, name).to_table()
    kept = [column for column in table.column_names if column not in ("track", "partition")]
    return sorted(tuple(row.values()) for row in table.select(kept).to_pylist())
