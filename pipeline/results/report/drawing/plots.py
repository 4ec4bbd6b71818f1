"""Plots of BokehJS with axes, and what the pointer shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .models import Model, model, reference, value

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
