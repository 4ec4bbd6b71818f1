"""The charts, which BokehJS draws.

The colours of the series are visible on white and on black; report.js sets the colours of text and axes. Each chart is
a document of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .drawing.models import Model, columns, entries, field, item, model, reference, renderer, value
from .drawing.plots import SHORT, WHOLE, bar_look, new_axis, new_plot, new_tooltip
from .groups import Cell
from .hierarchy import Block
from .parts import Chart, span

BLUE, ORANGE, GREEN = "#3f7fc4", "#c8691e", "#2f9268"
BRANCHES = (BLUE, ORANGE, GREEN, "#a265bd", "#b38a00", "#c4577a")
MOST_TICKS = 8


def bars(title: str, description: str, names: Sequence[str], stacks: Mapping[str, Sequence[int]], axis: str) -> Chart:
    """Vertical bars of whole numbers, one for each name. Several series are stacked; one series has a logarithmic axis.

    `stacks` maps the name of a series to its values, one for each of `names`.
    """
    alone = len(stacks) == 1
    most = max([1, *map(sum, zip(*stacks.values(), strict=True))])
    heights = model("Range1d", start=0.7, end=1.5 * most) if alone else model("Range1d", start=0, end=1.05 * most)
    drawn, tools = [], []
    below: Sequence[int] = [0] * len(names)
    for (stack, values), colour in zip(stacks.items(), BRANCHES, strict=False):
        tops = [low + own for low, own in zip(below, values, strict=True)]
        data = {"at": [*range(len(names))], "name": names, stack: values, "low": below, "high": tops}
        if alone:
            data["low"] = [0.5] * len(names)  # a logarithmic axis has no zero
        shape = model(
            "VBar", x=field("at"), width=value(0.86), bottom=field("low"), top=field("high"), **bar_look(colour)
        )
        drawn.append(renderer(columns(data), shape))
        tools.append(new_tooltip(drawn[-1], [(axis, "@name"), (stack, f"@{{{stack}}}{{{WHOLE}}}")]))
        below = tops
    labels = entries({at: name.partition("-")[0] for at, name in enumerate(names)})
    ticks = model("FixedTicker", ticks=[*range(0, len(names), -(-len(names) // MOST_TICKS))], minor_ticks=[])
    x_axis = new_axis("Linear", axis, ticker=ticks, labels=labels)
    plot = new_plot(drawn, tools, x_axis, new_axis("Log" if alone else "Linear", "edges"), y_range=heights)
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
    heights = model("DataRange1d") if logarithmic else model("DataRange1d", start=0)
    drawn, tools = [], []
    for (name, values), colour in zip(lines.items(), BRANCHES, strict=False):
        points = [(x, y) for x, y in zip(at, values, strict=True) if y > 0 or not logarithmic]
        source = columns({"x": [x for x, _ in points], "y": [y for _, y in points]})
        place = {"x": field("x"), "y": field("y")}
        drawn.append(renderer(source, model("Step" if steps else "Line", **place, line_color=colour, line_width=2)))
        size = value(5 if len(points) <= 5 * MOST_TICKS else 3)
        shape = model("Scatter", **place, size=size, line_color=value(colour), fill_color=value(colour))
        drawn.append(renderer(reference(source), shape))
        tools.append(new_tooltip(drawn[-1], [(axes[0], f"@x{{{WHOLE}}}"), (name, f"@y{{{WHOLE}}}")]))
    y_axis = new_axis("Log" if logarithmic else "Linear", axes[1])
    plot = new_plot(drawn, tools, new_axis("Linear", axes[0]), y_axis, y_range=heights)
    return _chart(plot, title, description, lines)


def stage_bars(title: str, description: str, names: Sequence[str], seconds: Sequence[float]) -> Chart:
    """Horizontal bars of seconds, one below the other."""
    source = columns({"name": names, "seconds": seconds})
    shape = model("HBar", y=field("name"), height=value(0.7), right=field("seconds"), **bar_look(BLUE))
    drawn = renderer(source, shape)
    tools = [new_tooltip(drawn, [("stage", "@name"), ("seconds", "@seconds{0.00}")])]
    ranges = {"x_range": model("DataRange1d", start=0), "y_range": model("FactorRange", factors=[*reversed(names)])}
    axes = new_axis("Linear", "seconds"), new_axis("Categorical", None)
    plot = new_plot([drawn], tools, *axes, **ranges, height=60 + 26 * len(names))
    return _chart(plot, title, description)


def marks(title: str, description: str, cells: Sequence[Cell]) -> Chart:
    """A mark for each cell at the middle of its range of λ. A mark is larger for more DN-graphs."""
    count = [cell.count for cell in cells]
    points: dict[str, Sequence[Any]] = {
        "lam": [(cell.lowest + cell.highest) / 2 for cell in cells],
        "vertices": [cell.vertices for cell in cells],
        "count": count,
        "size": [6 + 16 * (number / max(count)) ** 0.5 for number in count],
        "span": [span(cell.lowest, cell.highest) for cell in cells],
    }
    shape = model(
        "Scatter",
        x=field("lam"),
        y=field("vertices"),
        size=field("size"),
        line_color=value(BLUE),
        fill_color=value(BLUE),
        fill_alpha=value(0.55),
    )
    drawn = renderer(columns(points), shape)
    tooltip = [("λ", "@span"), ("vertices up to", f"@vertices{{{WHOLE}}}"), ("DN-graphs", f"@count{{{WHOLE}}}")]
    plot = new_plot([drawn], [new_tooltip(drawn, tooltip)], new_axis("Linear", "λ"), new_axis("Log", "vertices"))
    return _chart(plot, title, description)


def icicle(title: str, description: str, blocks: Sequence[Block]) -> Chart:
    """Blocks of components. The width is the number of edges; the height spans the levels of λ."""
    names = ("left", "right", "bottom", "top", "vertices", "edges")
    data: dict[str, Sequence[Any]] = {name: [getattr(block, name) for block in blocks] for name in names}
    data["colour"] = [BRANCHES[block.depth % len(BRANCHES)] for block in blocks]
    data["component"] = [str(block.component) for block in blocks]  # JavaScript has no int64
    data["upto"] = [block.top - 1 for block in blocks]
    ranges = {
        name: model("Range1d", start=0, end=max([1, *data[end]]))
        for name, end in (("x_range", "right"), ("y_range", "top"))
    }
    ends = {end: field(end) for end in ("left", "right", "bottom", "top")}
    look = {"line_color": value(None), "fill_color": field("colour"), "fill_alpha": value(0.75)}
    drawn = renderer(columns(data), model("Quad", **ends, **look))
    tooltip = [("component", "@component"), ("λ", "@bottom to @upto")]
    tooltip += [(name, f"@{name}{{{WHOLE}}}") for name in ("vertices", "edges")]
    ticks = model("BasicTicker", desired_num_ticks=5, mantissas=[1, 2, 5])
    axes = new_axis("Linear", "edges", ticker=ticks, numbers=SHORT), new_axis("Linear", "λ")
    return _chart(new_plot([drawn], [new_tooltip(drawn, tooltip)], *axes, **ranges, height=340), title, description)


def _chart(plot: Model, title: str, description: str, series: Iterable[str] = ()) -> Chart:
    """The chart of a plot. Several series get a key to their colours; a legend in the plot would cover lines."""
    keys = [*zip(series, BRANCHES, strict=False)]
    return Chart(title, description, item(plot), keys if len(keys) > 1 else [])
