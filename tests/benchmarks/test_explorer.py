"""The benchmark of the explorer at a tiny size. No time is judged."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import explorer
from chromium import chromium, page


@pytest.mark.skipif(chromium() is None, reason="no Chromium here")
def test_explorer(tmp_path: Path) -> None:
    with page(tmp_path / "browser") as tab:
        (times,) = explorer.measure(explorer.ring(tmp_path, vertices=30, reach=4), tab, repeats=2)
    assert (times.result, times.graph_edges, times.lam, times.vertices, times.edges) == ("ring", 120, 3, 30, 120)
    assert (times.drawn, len(times.opened)) == (30, 2)
    assert times.answer_seconds > 0
    assert times.vertex_seconds > 0
    assert all(seconds > 0 for seconds in times.opened)
    assert len(explorer.row(times)) == len(explorer.HEAD)
