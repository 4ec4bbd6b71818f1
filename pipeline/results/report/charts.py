"""The charts, made with Bokeh.

The colours of the series are visible on white and on black; report.js sets the colours of text and axes. Charts are
assembled from Bokeh's models, and each is a document of its own: `bokeh.plotting` takes 1.5 times as long to import
and to draw, and `bokeh.embed` imports a server and templates.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bokeh.document import Document
from bokeh.models import (
    BasicTicker,
    CategoricalAxis,
    CategoricalScale,
    ColumnDataSource,
    DataRange1d,
    FactorRange,
    FixedTicker,
    Grid,
    HBar,
    HoverTool,
    Line,
    LinearAxis,
    LinearScale,
    LogAxis,
    LogScale,
    NumeralTickFormatter,
    Plot,
    Quad,
    Range1d,
    Scatter,
    Step,
    VBar,
)

from .groups import Cell
from .hierarchy import Block
from .parts import Chart, span

BLUE, ORANGE, GREEN = "#3f7fc4", "#c8691e", "#2f9268"
BRANCHES = (BLUE, ORANGE, GREEN, "#a265bd", "#b38a00", "#c4577a")
MOST_TICKS = 8
WHOLE, SHORT, EXACT = "0,0", "0.[0]a", "0,0.[00]"
"""Number formats of Bokeh."""


def bars(title: str, description: str, names: Sequence[str], stacks: Mapping[str, Sequence[int]], axis: str) -> Chart:
    """Vertical bars of whole numbers, one for each name. Several series are stacked; one series has a logarithmic axis.

    `stacks` maps the name of a series to its values, one for each of `names`.
    """
    alone = len(stacks) == 1
    most = max([1, *map(sum, zip(*stacks.values(), strict=True))])
    heights = Range1d(start=0.7, end=1.5 * most) if alone else Range1d(start=0, end=1.05 * most)
    plot = _plot(axis, "edges", y_range=heights, logarithmic=alone)
    below: Sequence[int] = [0] * len(names)
    for (stack, values), colour in zip(stacks.items(), BRANCHES, strict=False):
        tops = [low + value for low, value in zip(below, values, strict=True)]
        data = {"at": [*range(len(names))], "name": names, stack: values, "low": below, "high": tops}
        if alone:
            data["low"] = [0.5] * len(names)  # a logarithmic axis has no zero
        shape = VBar(x="at", width=0.86, bottom="low", top="high", fill_color=colour, line_color=None)
        drawn = plot.add_glyph(ColumnDataSource(data), shape)
        _add_tooltip(plot, drawn, [(axis, "@name"), (stack, f"@{{{stack}}}{{{WHOLE}}}")])
        below = tops
    plot.below[0].ticker = FixedTicker(ticks=[*range(0, len(names), -(-len(names) // MOST_TICKS))])
    plot.below[0].major_label_overrides = {at: name.partition("-")[0] for at, name in enumerate(names)}
    return _chart(plot, title, description, stacks)


def curves(
    title: str,
    description: str,
    at: Sequence[int],
    lines: Mapping[str, Sequence[int]],
    axes: tuple[str, str],
    *,
    logarithmic: bool,
    steps: bool = True,
) -> Chart:
    """Lines over one axis, with a mark at each point. A logarithmic axis leaves out zeros.

    `at` holds the x values of all lines; `lines` maps the name of each line to its y values.
    """
    heights = DataRange1d() if logarithmic else DataRange1d(start=0)
    plot = _plot(*axes, y_range=heights, logarithmic=logarithmic)
    for (name, values), colour in zip(lines.items(), BRANCHES, strict=False):
        points = [(x, y) for x, y in zip(at, values, strict=True) if y > 0 or not logarithmic]
        source = ColumnDataSource({"x": [x for x, _ in points], "y": [y for _, y in points]})
        look: dict[str, Any] = {"x": "x", "y": "y", "line_color": colour}
        plot.add_glyph(source, Step(**look, line_width=2, mode="before") if steps else Line(**look, line_width=2))
        mark = Scatter(**look, fill_color=colour, size=5 if len(points) <= 5 * MOST_TICKS else 3)
        _add_tooltip(plot, plot.add_glyph(source, mark), [(axes[0], f"@x{{{WHOLE}}}"), (name, f"@y{{{WHOLE}}}")])
    return _chart(plot, title, description, lines)


def stage_bars(title: str, description: str, names: Sequence[str], seconds: Sequence[float]) -> Chart:
    """Horizontal bars of seconds, one below the other."""
    lengths, rows = DataRange1d(start=0), FactorRange(factors=[*reversed(names)])
    plot = _plot("seconds", None, x_range=lengths, y_range=rows, height=60 + 26 * len(names))
    source = ColumnDataSource({"name": names, "seconds": seconds})
    drawn = plot.add_glyph(source, HBar(y="name", right="seconds", height=0.7, fill_color=BLUE, line_color=None))
    _add_tooltip(plot, drawn, [("stage", "@name"), ("seconds", "@seconds{0.00}")])
    return _chart(plot, title, description)


def marks(title: str, description: str, cells: Sequence[Cell]) -> Chart:
    """A mark for each cell at the middle of its range of λ. A mark is larger for more DN-graphs."""
    plot = _plot("λ", "vertices", logarithmic=True)
    count = [cell.count for cell in cells]
    points: dict[str, Sequence[Any]] = {
        "lam": [(cell.lowest + cell.highest) / 2 for cell in cells],
        "vertices": [cell.vertices for cell in cells],
        "count": count,
        "size": [6 + 16 * (number / max(count)) ** 0.5 for number in count],
        "span": [span(cell.lowest, cell.highest) for cell in cells],
    }
    shape = Scatter(x="lam", y="vertices", size="size", fill_color=BLUE, line_color=BLUE, fill_alpha=0.55)
    tooltip = [("λ", "@span"), ("vertices up to", f"@vertices{{{WHOLE}}}"), ("DN-graphs", f"@count{{{WHOLE}}}")]
    _add_tooltip(plot, plot.add_glyph(ColumnDataSource(points), shape), tooltip)
    return _chart(plot, title, description)


def icicle(title: str, description: str, blocks: Sequence[Block]) -> Chart:
    """Blocks of components. The width is the number of edges; the height spans the levels of λ."""
    names = ("left", "right", "bottom", "top", "vertices", "edges")
    data: dict[str, Sequence[Any]] = {name: [getattr(block, name) for block in blocks] for name in names}
    data["colour"] = [BRANCHES[block.depth % len(BRANCHES)] for block in blocks]
    data["component"] = [str(block.component) for block in blocks]  # JavaScript has no int64
    data["upto"] = [block.top - 1 for block in blocks]
    widths, heights = (Range1d(start=0, end=max([1, *data[end]])) for end in ("right", "top"))
    plot = _plot("edges", "λ", x_range=widths, y_range=heights, height=340)
    plot.below[0].formatter = NumeralTickFormatter(format=SHORT)
    plot.below[0].ticker = BasicTicker(desired_num_ticks=5)
    ends: dict[str, Any] = {end: end for end in ("left", "right", "bottom", "top")}
    shape = Quad(**ends, fill_color="colour", fill_alpha=0.75, line_color=None)
    tooltip = [("component", "@component"), ("λ", "@bottom to @upto")]
    tooltip += [(name, f"@{name}{{{WHOLE}}}") for name in ("vertices", "edges")]
    _add_tooltip(plot, plot.add_glyph(ColumnDataSource(data), shape), tooltip)
    return _chart(plot, title, description)


_KINDS: Mapping[str, tuple[Any, Any]] = {
    "linear": (LinearScale, LinearAxis),
    "log": (LogScale, LogAxis),
    "categorical": (CategoricalScale, CategoricalAxis),
}


def _plot(
    x_label: str,
    y_label: str | None,
    *,
    x_range: Any = None,
    y_range: Any = None,
    logarithmic: bool = False,
    height: int = 280,
) -> Any:
    """A plot with its axes, as wide as its container. It is drawn as SVG, which is sharp on paper."""
    plot = Plot(
        height=height,
        sizing_mode="stretch_width",
        toolbar_location=None,
        output_backend="svg",
        background_fill_color=None,
        border_fill_color=None,
        outline_line_color=None,
        min_border_right=16,
        x_range=x_range or DataRange1d(),
        y_range=y_range or DataRange1d(),
    )
    scale, axis = _KINDS["categorical" if isinstance(y_range, FactorRange) else "log" if logarithmic else "linear"]
    x_axis, y_axis = LinearAxis(axis_label=x_label), axis(axis_label=y_label)
    numbers: Any = NumeralTickFormatter(format=EXACT)
    for one in (x_axis, y_axis):
        one.axis_label_text_font_style = "normal"
        if isinstance(one, LinearAxis):
            one.formatter = numbers
    plot.y_scale = scale()
    plot.add_layout(x_axis, "below")
    plot.add_layout(y_axis, "left")
    plot.add_layout(Grid(axis=y_axis, dimension=1))
    return plot


def _add_tooltip(plot: Any, drawn: Any, tooltips: list[tuple[str, str]]) -> None:
    plot.add_tools(HoverTool(tooltips=tooltips, renderers=[drawn]))


def _chart(plot: Any, title: str, description: str, series: Iterable[str] = ()) -> Chart:
    """The chart of a plot. Several series get a key to their colours; a legend in the plot would cover lines."""
    keys = [*zip(series, BRANCHES, strict=False)]
    document = Document(title="")
    document.add_root(plot)
    doc = document.to_json(deferred=False)
    item = {"target_id": None, "root_id": plot.id, "doc": doc, "version": doc["version"]}
    return Chart(title, description, item, keys if len(keys) > 1 else [])
