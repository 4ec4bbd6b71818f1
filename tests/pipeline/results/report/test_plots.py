"""Plots of groups and of λ."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from matplotlib import pyplot
from matplotlib.collections import LineCollection
from matplotlib.patches import Rectangle

import edgemill
from edgemill import Result, UsageError, plot_group, plot_lambda, top
from edgemill.pipeline.queries import plots
from made import made


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    pyplot.switch_backend("Agg")
    yield
    pyplot.close("all")


def clique(folder: Path, members: int, **more: Any) -> Result:
    return made(folder / "out", dict.fromkeys(itertools.combinations(range(members), 2), members - 2), **more)


def best(result: Result) -> int:
    return int(top(result, count=1)["id"][0].as_py())


@pytest.mark.parametrize("members", [3, 20, 21, plots.MOST_DRAWN])
def test_a_small_group_is_points_with_names(members: int, tmp_path: Path) -> None:
    names: dict[Any, Any] = {at: f"$n{at}$" + "x" * 40 * (at == 1) for at in range(members) if at != 2}
    result = clique(tmp_path, members, attributes={"name": (pa.string(), names)}, label="name")
    ax = plot_group(result, best(result))
    (lines,) = [one for one in ax.collections if isinstance(one, LineCollection)]
    assert len(lines.get_segments()) == members * (members - 1) // 2
    told = {text.get_text() for text in ax.texts}
    assert len(told) == members and {"$n0$", "2"} <= told and max(map(len, told)) <= 16
    assert f"{members} vertices" in ax.get_title() and f"λ {members - 2}" in ax.get_title()
    assert len(ax.figure.axes) == 1  # one λ needs no bar of colours
    ax.figure.canvas.draw()
    box = ax.figure.bbox
    for text in ax.texts:
        inside = text.get_window_extent()
        assert box.x0 <= inside.x0 and inside.x1 <= box.x1 and box.y0 <= inside.y0 and inside.y1 <= box.y1


def test_a_large_group_is_a_matrix(tmp_path: Path) -> None:
    """Symmetric, with those first that have most edges inside, and a bar that tells λ by colour."""
    members = 100
    edges = {(a, b): 1 + (b < 70) for a, b in itertools.combinations(range(members), 2) if b < 70 or b - a < 40}
    result = made(tmp_path / "out", edges)
    whole = edgemill.groups_of(result, 99)[-1]
    ax = plot_group(result, whole)
    (image,) = ax.images
    cells: Any = image.get_array()
    assert cells.shape == (members, members) and (cells.filled(0) == cells.filled(0).T).all()
    assert (np.diff((~cells.mask).sum(axis=0)) <= 0).all()
    assert int((~cells.mask).sum()) == 2 * len(edges) and set(np.unique(cells.compressed())) == {1, 2}
    assert [one.get_ylabel() for one in ax.figure.axes[1:]] == ["λ of an edge"]
    grey = np.asarray(image.cmap(image.norm(np.array([1, 2]))))[:, :3] @ (0.299, 0.587, 0.114)
    assert grey[1] - grey[0] > 0.3  # without colours, too


def test_a_group_that_is_too_large_to_draw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plots, "MOST_PIXELS", 4)
    result = clique(tmp_path, 5)
    with pytest.raises(UsageError, match=r"5.*plot_group.*4.*edgemill\.top"):
        plot_group(result, best(result))


@pytest.mark.parametrize(("top_level", "bars", "label"), [(3, 4, "λ"), (59, 60, "λ"), (150, 51, "λ, 3 levels a bar")])
def test_the_distribution_of_lambda(top_level: int, bars: int, label: str, tmp_path: Path) -> None:
    levels: dict[Any, int] = {(0, at + 1): at for at in range(top_level + 1)} | {(0, 1000): top_level}
    ax = plot_lambda(made(tmp_path / "out", levels, dense=False))
    assert len(ax.patches) == bars and sum(
        int(bar.get_bbox().height) for bar in ax.patches if isinstance(bar, Rectangle)
    ) == len(levels)
    assert (ax.get_xlabel(), ax.get_yscale()) == (label, "log") and f"highest λ {top_level}" in ax.get_title()
    low, high = ax.get_xlim()
    assert low < 0 and high > top_level


def test_plots_in_axes_of_the_user(tmp_path: Path) -> None:
    result = clique(tmp_path, 4)
    _, (left, right) = pyplot.subplots(1, 2)
    assert plot_group(str(result.path), best(result), ax=left) is left and plot_lambda(result.path, ax=right) is right


def test_without_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = clique(tmp_path, 4)
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    told = r"needs the package matplotlib.*pip install 'edgemill\[plot\]'"
    with pytest.raises(UsageError, match=told):
        plot_lambda(result)
    with pytest.raises(UsageError, match=told):
        plot_group(result, best(result))
