"""Results with drawn values of λ, ids, and sizes of files and row groups."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import strategies as st

import oracles
import strategies
from edgemill.pipeline import Result
from made import Edge, made


def drawn_result(
    folder: Path, rows: list[tuple[int, int]], data: st.DataObject, vertices: int, max_lambda: int, **more: Any
) -> tuple[strategies.Naming, dict[Edge, int], Result]:
    """The names of the vertices, λ of each edge from 0 to `max_lambda`, and a result in `folder` made from them.

    `rows` are pairs of vertices below `vertices`; `more` goes to `made`.
    """
    naming = data.draw(strategies.namings(vertices))
    edges = oracles.simple_edges((naming.names[u], naming.names[v]) for u, v in rows)
    levels = {edge: data.draw(st.integers(0, max_lambda)) for edge in sorted(edges)}
    cut = st.integers(1, 9)
    result = made(
        folder,
        levels,
        id_type=naming.type,
        alone=naming.names,
        rows_per_file=data.draw(cut),
        rows_per_group=data.draw(cut),
        **more,
    )
    return naming, levels, result
