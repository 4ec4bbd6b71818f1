"""Plots of a result with matplotlib: one group, and the distribution of λ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...tasks.errors import UsageError
from ..messages.wording import one_line
from ..results.conversions import import_optional
from ..results.lookup import Group
from ..results.result import Result, ResultOrPath, open_result
from ..settings.setting_names import naming_keywords
from .attributes import as_text, labels_of
from .groups import as_group, edges_of, member_ids

if TYPE_CHECKING:
    import matplotlib.axes

MOST_DRAWN = 60
"""Most members that are drawn as points; a larger group is drawn as a matrix."""
MOST_PIXELS = 4000
"""Most members of a group that is drawn: a matrix has a cell for each pair."""
MOST_BARS = 60
"""Most bars of a distribution; with more levels a bar is several of them."""
_MOST_LEVEL = 20
"""Most members whose labels are level; those of more members point away from the circle."""
_MOST_CHARACTERS = 16
"""Longest label of a member."""
_COLOURS = "cividis"
"""A map of colours that people with any colour vision can tell apart, and that a grey print keeps in order."""
_BLUE = "#0072B2"
_BLANK = "#f2f2f2"


@naming_keywords()
def plot_group(
    result: ResultOrPath, group: Group | SupportsIndex, ax: matplotlib.axes.Axes | None = None
) -> matplotlib.axes.Axes:
    """Draw a group, a Group or the id of a component or DN-graph, in `ax` or a new figure; gives the axes.

    Up to 60 members are points on a circle, each with its label or id, and edges between them. A larger group is a
    matrix with a row and a column for each member, those with most edges inside first. The colour of an edge is its λ.

    Raises UsageError if matplotlib is not installed, if there is no such group, and for a group of more than 4,000
    vertices; InputError for damage.
    """
    pyplot = import_optional("matplotlib.pyplot", "plot_group()")
    from matplotlib.ticker import MaxNLocator

    result = open_result(result)
    group = as_group(result, group)
    if group.vertices > MOST_PIXELS:
        raise UsageError(
            f"component {group.component} has {group.vertices:,} vertices, and plot_group draws at most "
            f"{MOST_PIXELS:,}: take a group inside it, such as one that edgemill.top lists"
        )
    members = member_ids(result, group)
    rows = edges_of(result, group, members).to_arrow()
    ends = np.stack([np.asarray(pc.index_in(rows.column(end), members), np.int64) for end in (0, 1)], axis=1)
    levels = rows["lambda"].to_numpy()
    inside = np.bincount(ends.ravel(), minlength=len(members))
    order = np.argsort(-inside, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    ends = place[ends]
    if ax is None:
        _, ax = pyplot.subplots(figsize=(6.4, 6.4), layout="constrained")
    if len(members) <= MOST_DRAWN:
        drawn = _circle(ax, _names(result, members.take(order)), ends, levels, inside[order])
    else:
        drawn = _matrix(ax, len(members), ends, levels)
    if len(np.unique(levels)) > 1:
        bar = ax.figure.colorbar(drawn, ax=ax, shrink=0.6, label="λ of an edge")
        bar.ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    kind = "DN-graph" if group.dn_graph else "component"
    density = "" if group.density is None else f", density {group.density:.2f}"
    ax.set_title(
        f"{kind} {group.component}: λ {'' if group.dn_graph else '≥ '}{group.k:,}\n"
        f"{group.vertices:,} vertices, {group.edges:,} edges{density}"
    )
    return ax


@naming_keywords()
def plot_lambda(result: ResultOrPath, ax: matplotlib.axes.Axes | None = None) -> matplotlib.axes.Axes:
    """Draw how many edges have each λ, in `ax` or a new figure; gives the axes. Numbers of edges are logarithmic.

    More than 60 levels are drawn in ranges. Of a run that a limit ended it draws the lower bounds of λ.

    Raises UsageError if matplotlib is not installed, or if the run computed no λ.
    """
    pyplot = import_optional("matplotlib.pyplot", "plot_lambda()")
    result = open_result(result)
    manifest = result.manifest
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    pairs = np.array(manifest.lam.histogram, np.int64).reshape(-1, 2)
    if ax is None:
        _, ax = pyplot.subplots(figsize=(6.4, 4), layout="constrained")
    top = int(pairs[:, 0].max(initial=0))
    wide = -(-(top + 1) // MOST_BARS)
    counts = np.bincount(pairs[:, 0] // wide, weights=pairs[:, 1], minlength=1)
    starts = np.arange(len(counts)) * wide
    ax.bar(starts - 0.5, counts, width=wide, align="edge", color=_BLUE, edgecolor="white", linewidth=0.5)
    ax.set_yscale("log")
    ax.set_ylim(0.7, max(10.0, 2 * float(counts.max(initial=1))))
    ax.set_xlim(-0.5 - 0.01 * top, starts[-1] + wide - 0.5 + 0.01 * top)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    what = "λ" if manifest.exact else "lower bound of λ"
    ax.set_xlabel(what if wide == 1 else f"{what}, {wide} levels a bar")
    ax.set_ylabel("edges (logarithmic)")
    ax.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    ax.set_title(f"{manifest.counts.edges:,} edges, highest {what} {top:,}")
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", color="#dddddd", linewidth=0.6)
    ax.set_axisbelow(True)
    return ax


def _circle(ax: Any, names: list[str], ends: NDArray[Any], levels: NDArray[Any], inside: NDArray[Any]) -> Any:
    """Points on a circle, clockwise from the top, and the lines between them, those of the highest λ on top."""
    from matplotlib.collections import LineCollection

    count = len(names)
    angles = np.pi / 2 - 2 * np.pi * np.arange(count) / count
    points = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    rising = np.argsort(levels, kind="stable")
    width = float(np.clip(90 / max(len(ends), 1), 0.35, 2.5))
    lines = LineCollection(list(points[ends[rising]]), array=levels[rising], cmap=_COLOURS, linewidths=width, zorder=1)
    ax.add_collection(lines)
    sizes = 25 + 75 * inside / max(int(inside.max(initial=1)), 1)
    ax.scatter(*points.T, s=sizes, color=_BLUE, edgecolor="white", linewidth=0.8, zorder=2)
    size = 10 if count <= 20 else 8 if count <= 40 else 6.5
    for name, angle, (x, y) in zip(names, np.degrees(angles), points, strict=True):
        turned, beside = 90 < angle % 360 < 270, "right" if x < -0.1 else "left" if x > 0.1 else "center"
        if count <= _MOST_LEVEL:
            how: dict[str, Any] = {"ha": beside, "va": "bottom" if y > 0.1 else "top" if y < -0.1 else "center"}
        else:
            how = {"ha": "right" if turned else "left", "va": "center", "rotation_mode": "anchor"}
            how["rotation"] = angle + 180 if turned else angle
        ax.text(1.06 * x, 1.06 * y, name, fontsize=size, parse_math=False, **how)
    longest = max(map(len, names), default=0)
    reach = 1.1 + 0.022 * size / 6.5 * longest
    ax.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
    ax.set_axis_off()
    return lines


def _matrix(ax: Any, count: int, ends: NDArray[Any], levels: NDArray[Any]) -> Any:
    """A cell for each pair of members; pairs without an edge are blank."""
    from matplotlib import colormaps

    cells = np.ma.MaskedArray(np.zeros((count, count), np.int32), True)
    for row, column in (ends.T, ends.T[::-1]):
        cells[row, column] = levels
    drawn = ax.imshow(cells, cmap=colormaps[_COLOURS].with_extremes(bad=_BLANK), interpolation="nearest")
    ax.set(xlabel="members, most edges inside first", ylabel="members, in the same order")
    return drawn


def _names(result: Result, ids: Any) -> list[str]:
    labels = labels_of(result, ids)
    texts = [as_text(id) if label is None else label for id, label in zip(ids.to_pylist(), labels, strict=True)]
    plain = map(one_line, texts)
    return [text if len(text) <= _MOST_CHARACTERS else f"{text[: _MOST_CHARACTERS - 1]}…" for text in plain]
