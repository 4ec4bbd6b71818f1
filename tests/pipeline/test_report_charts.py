"""The charts of a report, as Bokeh itself reads them: it refuses models and attributes that it does not know."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from bokeh.core.validation import check_integrity
from bokeh.document import Document
from bokeh.models import ColumnDataSource, HoverTool, LogAxis, LogScale, Plot
from bokeh.models.renderers import GlyphRenderer

from edgemill.pipeline.report.charts import bars, curves, icicle, marks, ribbons
from edgemill.pipeline.report.groups import Cell
from edgemill.pipeline.report.hierarchy import Block
from edgemill.pipeline.report.parts import Chart

STEPS: dict[str, Any] = {"axes": ("x", "y"), "logarithmic": True}
CHARTS: dict[str, tuple[Callable[[], Chart], str, dict[str, list[Any]]]] = {
    "bars": (
        lambda: bars("t", "d", ["0", "1-3"], {"edges": [3, 0]}, "λ"),
        "VBar",
        {"name": ["0", "1-3"], "edges": [3, 0], "low": [0.5, 0.5], "high": [3, 0]},
    ),
    "stacked bars": (
        lambda: bars("t", "d", ["0"], {"owned": [3], "ghost": [2]}, "partition"),
        "VBar",
        {"owned": [3], "low": [0], "high": [3]},
    ),
    "steps": (lambda: curves("t", "d", [0, 1], {"a": [3, 4], "b": [2, 1]}, **STEPS), "Step", {"y": [3, 4]}),
    "lines": (lambda: curves("t", "d", [0, 1], {"a": [3, 4]}, **STEPS, steps=False), "Line", {"x": [0, 1]}),
    "ribbons": (lambda: ribbons("t", "d", ["a", "b"], [1.5, 2]), "HBar", {"name": ["a", "b"], "seconds": [1.5, 2]}),
    "marks": (lambda: marks("t", "d", [Cell(1, 3, 50, 7)]), "Scatter", {"lam": [2], "size": [22], "span": ["1 to 3"]}),
    "icicle": (
        lambda: icicle("t", "d", [Block(0, 10, 0, 5, 2**60, 8, 10, 0)]),
        "Quad",
        {"right": [10], "top": [5], "upto": [4], "component": [str(2**60)]},
    ),
}


def read(chart: Chart) -> Any:
    """The plot that Bokeh makes of a chart."""
    document = Document.from_json(json.loads(json.dumps(chart.item))["doc"])
    (plot,) = document.roots
    assert isinstance(plot, Plot)
    issues = check_integrity(plot.references())
    assert not issues.error and not issues.warning
    return plot


@pytest.mark.parametrize(("make", "shape", "columns"), CHARTS.values(), ids=CHARTS.keys())
def test_bokeh_reads_each_chart(make: Callable[[], Chart], shape: str, columns: dict[str, list[Any]]) -> None:
    plot = read(make())
    first = plot.renderers[0]
    assert isinstance(first, GlyphRenderer) and isinstance(first.data_source, ColumnDataSource)
    assert type(first.glyph).__name__ == shape
    assert {name: list(first.data_source.data[name]) for name in columns} == columns
    used = {getattr(spec, "field", None) for spec in first.glyph.properties_with_values().values()} - {None}
    assert used <= first.data_source.data.keys()
    told = [tool for tool in plot.toolbar.tools if isinstance(tool, HoverTool)]
    assert told and all(set(tool.renderers) <= set(plot.renderers) for tool in told)
    assert plot.below and plot.left and plot.center[0].axis is plot.left[0]
    assert (plot.output_backend, plot.sizing_mode, plot.toolbar_location) == ("svg", "stretch_width", None)


def test_two_lines_have_one_axis_and_marks_at_their_points() -> None:
    plot = read(CHARTS["steps"][0]())
    assert isinstance(plot.left[0], LogAxis) and isinstance(plot.y_scale, LogScale)
    assert [type(drawn.glyph).__name__ for drawn in plot.renderers] == ["Step", "Scatter"] * 2
    assert plot.renderers[0].data_source is plot.renderers[1].data_source is not plot.renderers[2].data_source


def test_a_page_needs_no_models_of_bokeh() -> None:
    """They would be half a second of each run."""
    ask = "import sys, edgemill.pipeline.report.page; print('bokeh.models' in sys.modules, 'jinja2' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]
