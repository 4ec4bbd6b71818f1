"""The picture of *Which groups do I want?*: how much of ego-Facebook each kind of group covers, and how dense it is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd

from drawing import bar, document, text
from edgemill.pipeline import Result, mine, top

FACEBOOK = Path(__file__).resolve().parents[2] / "tests" / "graphs" / "facebook_combined.parquet"
HOW: Mapping[str, Any] = {
    "output.report": False,
    "device": "cpu",
    "programs": ("lambda", "core_groups", "leiden", "labels"),
}
LEAST, MOST = (201, 214, 230), (11, 61, 117)
"""Red, green and blue of density 0 and 1."""


def covered() -> str:
    """A row for each kind of group, with a bar for each group, as wide as it has vertices."""
    with TemporaryDirectory() as folder:
        result = mine(FACEBOOK, Path(folder, "out"), **HOW)
        kinds = {name: _sizes(result, name) for name in ("DN-graphs (λ)", "innermost k-cores", "leiden", "labels")}
        vertices = result.manifest.counts.vertices
    left, wide, high = 150, 560, 46
    parts = [
        text((left, 26), f"{vertices:,} vertices of ego-Facebook: groups as wide as they have vertices"),
        text((left, 46), "the darker, the denser; what is left empty is in none", "quiet", size=12),
    ]
    for row, (name, sizes) in enumerate(kinds.items()):
        y, at = 62 + row * high, 0
        parts.append(text((left - 12, y + 22), name, "", "end", 13))
        parts.append(f'<rect class="box" x="{left}" y="{y}" width="{wide}" height="{high - 12}"/>')
        for size, density in sizes:
            start, end = (left + wide * value / vertices for value in (at, at + size))
            parts.append(bar(start, y, max(0.5, end - start - 0.5), high - 12, _colour(density)))
            at += size
    return document(730, 62 + len(kinds) * high, "Groups of ego-Facebook by four methods", parts)


def _sizes(result: Result, kind: str) -> list[tuple[int, float]]:
    """Vertices and density of each group, the densest first for those that do not cover all, else the largest."""
    if kind == "DN-graphs (λ)":
        rows = top(result, "density", 999).to_pandas()
    elif kind == "innermost k-cores":
        rows = top(result, "density", 999, "core_groups").to_pandas()
    elif kind == "leiden":
        rows = top(result, "size", 999, "leiden").to_pandas()
    else:
        rows = _by_label(result)
    return [(int(size), float(density)) for size, density in zip(rows["vertices"], rows["density"], strict=True)]


def _by_label(result: Result) -> pd.DataFrame:
    label = result.vertices.to_pandas().set_index("id")["label"]
    ends = result.edges.to_pandas().iloc[:, :2]
    one, other = (label.loc[ends[name]].to_numpy() for name in ends)
    sizes = label.value_counts()
    inside = pd.Series(one[one == other]).value_counts().reindex(sizes.index, fill_value=0)
    pairs = np.maximum(sizes * (sizes - 1) / 2, 1)
    rows = pd.DataFrame({"vertices": sizes, "density": inside / pairs}).sort_index()
    return rows.sort_values("vertices", ascending=False, kind="stable")


def _colour(density: float) -> str:
    return "#" + "".join(f"{round(a + (b - a) * density):02x}" for a, b in zip(LEAST, MOST, strict=True))
