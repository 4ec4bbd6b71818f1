"""The charts, which BokehJS draws. Colours of series are seen on white and on black; report.js sets those of text and
axes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .groups import Cell
from .hierarchy import Block
from .models import Model, Models, again, document, field, mapping, value
from .parts import Chart, span

__all__ = ["bars", "curves", "icicle", "marks", "ribbons"]

BLUE, ORANGE, GREEN = "#3f7fc4", "#c8691e", "#2f9268"
BRANCHES = (BLUE, ORANGE, GREEN, "#a265bd", "#b38a00", "#c4577a")
MOST_TICKS = 8
WHOLE, SHORT, EXACT = "0,0", "0.[0]a", "0,0.[00]"
"""Formats of numbers."""


def bars(title: str, description: str, names: Sequence[str], stacks: Mapping[str, Sequence[int]], axis: str) -> Chart:
    """Upright bars of whole numbers, one for each name, stacked; one alone on a logarithmic axis."""
    alone = len(stacks) == 1
    most = max([1, *map(sum, zip(*stacks.values(), strict=True))])
    heights = {"start": 0.7, "end": 1.5 * most} if alone else {"start": 0, "end": 1.05 * most}
    plot = _Plot(axis, "edges", y_range=("Range1d", heights), logarithmic=alone)
    below: Sequence[int] = [0] * len(names)
    for (stack, values), colour in zip(stacks.items(), BRANCHES, strict=False):
        tops = [low + value for low, value in zip(below, values, strict=True)]
        data = {"at": [*range(len(names))], "name": names, stack: values, "low": below, "high": tops}
        if alone:
            data["low"] = [0.5] * len(names)  # zero is nowhere on the axis
        ends = {"x": field("at"), "width": value(0.86), "bottom": field("low"), "top": field("high")}
        told = [(axis, "@name"), (stack, f"@{{{stack}}}{{{WHOLE}}}")]
        plot.draw(plot.source(data), "VBar", told, **ends, fill_color=value(colour), line_color=value(None))
        below = tops
    plot.x_axis["attributes"] |= {
        "ticker": plot.make("FixedTicker", ticks=[*range(0, len(names), -(-len(names) // MOST_TICKS))]),
        "major_label_overrides": mapping({place: name.partition("-")[0] for place, name in enumerate(names)}),
    }
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
    """Lines over one axis, with marks at their points; without zeros on a logarithmic axis."""
    plot = _Plot(*axes, y_range=("DataRange1d", {} if logarithmic else {"start": 0}), logarithmic=logarithmic)
    for (name, values), colour in zip(lines.items(), BRANCHES, strict=False):
        points = [(x, y) for x, y in zip(at, values, strict=True) if y > 0 or not logarithmic]
        source = plot.source({"x": [x for x, _ in points], "y": [y for _, y in points]})
        ends = {"x": field("x"), "y": field("y")}
        look = {"line_color": colour, "line_width": 2, **({"mode": "before"} if steps else {})}
        plot.draw(source, "Step" if steps else "Line", [], **ends, **look)
        told = [(axes[0], f"@x{{{WHOLE}}}"), (name, f"@y{{{WHOLE}}}")]
        size = value(5 if len(points) <= 5 * MOST_TICKS else 3)
        shades = dict.fromkeys(("line_color", "fill_color"), value(colour))
        plot.draw(again(source), "Scatter", told, **ends, **shades, size=size)
    return _chart(plot, title, description, lines)


def ribbons(title: str, description: str, names: Sequence[str], seconds: Sequence[float]) -> Chart:
    """Flat bars, one below the other."""
    rows = ("FactorRange", {"factors": [*reversed(names)]})
    plot = _Plot("seconds", None, x_range=("DataRange1d", {"start": 0}), y_range=rows, height=60 + 26 * len(names))
    source = plot.source({"name": names, "seconds": seconds})
    ends = {"y": field("name"), "right": field("seconds"), "height": value(0.7)}
    told = [("stage", "@name"), ("seconds", "@seconds{0.00}")]
    plot.draw(source, "HBar", told, **ends, fill_color=value(BLUE), line_color=value(None))
    return _chart(plot, title, description)


def marks(title: str, description: str, cells: Sequence[Cell]) -> Chart:
    """A mark for each cell at the middle of its λ, larger where it stands for more."""
    plot = _Plot("λ", "vertices", logarithmic=True)
    count = [cell.count for cell in cells]
    points: dict[str, Sequence[Any]] = {
        "lam": [(cell.lowest + cell.highest) / 2 for cell in cells],
        "vertices": [cell.vertices for cell in cells],
        "count": count,
        "size": [6 + 16 * (number / max(count)) ** 0.5 for number in count],
        "span": [span(cell.lowest, cell.highest) for cell in cells],
    }
    ends = {"x": field("lam"), "y": field("vertices"), "size": field("size")}
    shades = dict.fromkeys(("line_color", "fill_color"), value(BLUE))
    told = [("λ", "@span"), ("vertices up to", f"@vertices{{{WHOLE}}}"), ("DN-graphs", f"@count{{{WHOLE}}}")]
    plot.draw(plot.source(points), "Scatter", told, **ends, **shades, fill_alpha=value(0.55))
    return _chart(plot, title, description)


def icicle(title: str, description: str, blocks: Sequence[Block]) -> Chart:
    """Components, as wide as they have edges, from their lowest λ upwards."""
    names = ("left", "right", "bottom", "top", "vertices", "edges")
    data: dict[str, Sequence[Any]] = {name: [getattr(block, name) for block in blocks] for name in names}
    data["colour"] = [BRANCHES[block.depth % len(BRANCHES)] for block in blocks]
    data["component"] = [str(block.component) for block in blocks]  # JavaScript has no int64
    data["upto"] = [block.top - 1 for block in blocks]
    widths, heights = (("Range1d", {"start": 0, "end": max([1, *data[end]])}) for end in ("right", "top"))
    plot = _Plot("edges", "λ", x_range=widths, y_range=heights, height=340)
    plot.x_axis["attributes"] |= {
        "formatter": plot.make("NumeralTickFormatter", format=SHORT),
        "ticker": plot.make("BasicTicker", desired_num_ticks=5),
    }
    ends = {end: field(end) for end in ("left", "right", "bottom", "top")}
    told = [("component", "@component"), ("λ", "@bottom to @upto")]
    told += [(name, f"@{name}{{{WHOLE}}}") for name in ("vertices", "edges")]
    shades = {"fill_color": field("colour"), "fill_alpha": value(0.75), "line_color": value(None)}
    plot.draw(plot.source(data), "Quad", told, **ends, **shades)
    return _chart(plot, title, description)


_KINDS = {"linear": ("LinearScale", "LinearAxis"), "log": ("LogScale", "LogAxis")}
_KINDS["categorical"] = ("CategoricalScale", "CategoricalAxis")

_Range = tuple[str, Mapping[str, Any]]
"""The name of its model, and its attributes."""


class _Plot:
    """A plot with its axes, as wide as it has room. Drawn as SVG, which is sharp on paper."""

    def __init__(
        self,
        x_label: str,
        y_label: str | None,
        *,
        x_range: _Range = ("DataRange1d", {}),
        y_range: _Range = ("DataRange1d", {}),
        logarithmic: bool = False,
        height: int = 280,
    ) -> None:
        self.make = Models().make
        self._renderers: list[Model] = []
        self._tools: list[Model] = []
        scale, axis = _KINDS["categorical" if y_range[0] == "FactorRange" else "log" if logarithmic else "linear"]
        self.x_axis = self._axis("LinearAxis", x_label)
        self._ranges = {"x_range": self.make(x_range[0], **x_range[1]), "y_range": self.make(y_range[0], **y_range[1])}
        self._scales = {"x_scale": self.make("LinearScale"), "y_scale": self.make(scale)}
        self._y_axis = self._axis(axis, y_label)
        self._height = height

    def _axis(self, name: str, label: str | None) -> Model:
        axis = self.make(name, axis_label=label, axis_label_text_font_style="normal")
        if name == "LinearAxis":
            axis["attributes"]["formatter"] = self.make("NumeralTickFormatter", format=EXACT)
        return axis

    def source(self, columns: Mapping[str, Sequence[Any]]) -> Model:
        """Columns of one length."""
        return self.make("ColumnDataSource", data=mapping(columns))

    def draw(self, source: Model, shape: str, told: Sequence[tuple[str, str]], **attributes: Any) -> None:
        """A shape for each row of the columns, and what is `told` of the one under the pointer."""
        drawn = self.make("GlyphRenderer", data_source=source, glyph=self.make(shape, **attributes))
        self._renderers.append(drawn)
        if told:
            self._tools.append(self.make("HoverTool", tooltips=told, renderers=[again(drawn)]))

    def whole(self) -> Model:
        """The plot, with all that was drawn in it."""
        grid = self.make("Grid", axis=again(self._y_axis), dimension=1)
        return self.make(
            "Plot",
            height=self._height,
            sizing_mode="stretch_width",
            output_backend="svg",
            **dict.fromkeys(("background_fill_color", "border_fill_color", "outline_line_color")),
            min_border_right=16,
            **self._ranges,
            **self._scales,
            renderers=self._renderers,
            toolbar=self.make("Toolbar", tools=self._tools),
            toolbar_location=None,
            below=[self.x_axis],
            left=[self._y_axis],
            center=[grid],
        )


def _chart(plot: _Plot, title: str, description: str, series: Iterable[str] = ()) -> Chart:
    """With a key to the colours of the series, if they are several: a legend in the plot would lie over lines."""
    keys = [*zip(series, BRANCHES, strict=False)]
    return Chart(title, description, document(plot.whole()), keys if len(keys) > 1 else [])
