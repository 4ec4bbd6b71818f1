"""The charts, as documents of BokehJS: bars, curves and the icicle of the hierarchy.

A document has the format of `bokeh.document.Document.to_json` of Bokeh 3. Importing Bokeh's Python classes takes longer
than all other work of a small report, so tests alone use them: they read each chart back and write it again.

The colours of the series are visible on white and on black; report.js sets the colours of text and axes. Each chart is
a document of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from importlib.metadata import version
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

from .distributions import Cell
from .hierarchy import IcicleBlock
from .parts import Chart, span

Model = dict[str, Any]
_NUMBERS = count(1)
"""Numbers of models. Charts of one page must not share any."""
_LARGEST = 2**53 - 1
"""Largest whole number that JavaScript has exactly; larger ones become floats, as in Bokeh."""


def model(name: str, **attributes: Any) -> Model:
    """A model of BokehJS with the attributes that differ from its defaults.

    BokehJS reads attributes in their order. A model is written where it comes first, and elsewhere as `reference`.
    """
    own: Model = {"type": "object", "name": name, "id": f"p{next(_NUMBERS)}"}
    return own | {"attributes": attributes} if attributes else own


def reference(to: Model) -> Model:
    """The place of a model that is written earlier."""
    return {"id": to["id"]}


def field(name: str) -> Model:
    """A value of a glyph that a column has for each mark."""
    return {"type": "field", "field": name}


def value(same: object) -> Model:
    """A value of a glyph that all its marks share."""
    return {"type": "value", "value": same}


def entries(pairs: Mapping[Any, Any]) -> Model:
    """A map."""
    return {"type": "map", "entries": [[key, own] for key, own in pairs.items()]}


def columns(named: Mapping[str, Sequence[Any]]) -> Model:
    """A source of columns for glyphs: texts, whole numbers and finite floats."""
    return model(
        "ColumnDataSource",
        selected=model("Selection", indices=[], line_indices=[]),
        selection_policy=model("UnionRenderers"),
        data=entries({name: [_plain(own) for own in values] for name, values in named.items()}),
    )


def renderer(source: Model, glyph: Model) -> Model:
    """Marks of one kind, one for each row of the source."""
    view = model("CDSView", filter=model("AllIndices"))
    return model("GlyphRenderer", data_source=source, view=view, glyph=glyph)


def item(root: Model) -> Model:
    """The argument of `Bokeh.embed.embed_item` for a document with one root."""
    config = model("DocumentConfig", notifications=model("Notifications"))
    doc = {"version": bokeh_version(), "title": "", "config": config, "roots": [root]}
    return {"target_id": None, "root_id": root["id"], "doc": doc, "version": doc["version"]}


@lru_cache(maxsize=1)
def bokeh_version() -> str:
    """The installed version."""
    return version("bokeh")


def bokeh_script() -> str:
    """The script of BokehJS, without widgets and tables."""
    found = find_spec("bokeh")
    assert found is not None and found.submodule_search_locations is not None  # a dependency
    (folder,) = found.submodule_search_locations
    return Path(folder, "server", "static", "js", "bokeh.min.js").read_text("utf-8")


def _plain(own: Any) -> object:
    if isinstance(own, int) and abs(own) > _LARGEST:
        return float(own)
    return own


WHOLE, SHORT, EXACT = "0,0", "0.[0]a", "0,0.[00]"
"""Number formats of Bokeh."""

_TICKS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "Linear": ("BasicTicker", {"mantissas": [1, 2, 5]}),
    "Log": ("LogTicker", {"mantissas": [1, 5]}),
    "Categorical": ("CategoricalTicker", {}),
}
"""Default ticker of each kind of axis."""


def new_axis(
    kind: str, label: str | None, *, ticker: Model | None = None, labels: Model | None = None, numbers: str = EXACT
) -> Model:
    """A linear, logarithmic or categorical axis. `labels` replace those of ticks; `numbers` is a format."""
    name, attributes = _TICKS[kind]
    linear = kind == "Linear"
    made = model("NumeralTickFormatter", format=numbers) if linear else model(f"{kind}TickFormatter")
    return model(
        f"{kind}Axis",
        ticker=ticker or model(name, **attributes),
        formatter=made,
        **({} if label is None else {"axis_label": label}),
        axis_label_text_font_style="normal",
        **({} if labels is None else {"major_label_overrides": labels}),
        major_label_policy=model("AllLabels"),
    )


def new_plot(
    drawn: Sequence[Model],
    tools: Sequence[Model],
    x_axis: Model,
    y_axis: Model,
    *,
    x_range: Model | None = None,
    y_range: Model | None = None,
    height: int = 280,
) -> Model:
    """A plot with its axes, as wide as its container. It is drawn as SVG, which is sharp on paper."""
    return model(
        "Plot",
        height=height,
        sizing_mode="stretch_width",
        x_range=x_range or model("DataRange1d"),
        y_range=y_range or model("DataRange1d"),
        x_scale=model(x_axis["name"].replace("Axis", "Scale")),
        y_scale=model(y_axis["name"].replace("Axis", "Scale")),
        title=model("Title"),
        outline_line_color=None,
        renderers=[*drawn],
        toolbar=model("Toolbar", tools=[*tools]),
        toolbar_location=None,
        left=[y_axis],
        below=[x_axis],
        center=[model("Grid", dimension=1, axis=reference(y_axis))],
        background_fill_color=None,
        border_fill_color=None,
        min_border_right=16,
        output_backend="svg",
    )


def bar_look(colour: str) -> dict[str, Model]:
    """The look of bars."""
    return {"line_color": value(None), "fill_color": value(colour)}


def new_tooltip(drawn: Model, rows: Sequence[tuple[str, str]]) -> Model:
    """What the pointer shows on a mark: names and values."""
    return model("HoverTool", renderers=[reference(drawn)], tooltips=[[*row] for row in rows], sort_by=None)


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


def icicle(title: str, description: str, blocks: Sequence[IcicleBlock]) -> Chart:
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
