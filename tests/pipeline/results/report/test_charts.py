"""Charts are documents of Bokeh: its Python classes read each of them, find no mistake, and write the same again."""

from __future__ import annotations

import json
from typing import Any

import pytest
from bokeh.core.types import ID
from bokeh.document import Document
from bokeh.util.paths import bokehjs_path

from edgemill.pipeline.report import charts
from edgemill.pipeline.report.distributions import Cell
from edgemill.pipeline.report.hierarchy import IcicleBlock
from edgemill.pipeline.report.parts import Chart

NAMES, TWO = ["1-2", "3", "4-7"], {"a": [1, 0, 5], "b": [2, 2, 2]}
AXES = ("x", "y")
CHARTS = {
    "bars": charts.bars("t", "d", NAMES, {"a": [1, 0, 5]}, "λ"),
    "stacked bars": charts.bars("t", "d", NAMES, TWO, "λ"),
    "steps": charts.curves("t", "d", [1, 2, 3], TWO, AXES, logarithmic=True),
    "lines": charts.curves("t", "d", [1, 2, 3], TWO, AXES, logarithmic=False, steps=False),
    "many points": charts.curves("t", "d", range(99), {"a": range(1, 100)}, AXES, logarithmic=True),
    "stages": charts.stage_bars("t", "d", ["read", "peel"], [1.5, 2.0]),
    "marks": charts.marks("t", "d", [Cell(1, 3, 8, 2), Cell(4, 4, 2, 9)]),
    "icicle": charts.icicle("t", "d", [IcicleBlock(0, 9, 0, 3, 2**60, 4, 9, 0), IcicleBlock(1, 5, 3, 4, 7, 3, 4, 1)]),
}


def models_of(value: Any) -> dict[str, dict[str, Any]]:
    """The models of a document by id, each with references in place of other models. Checks that each comes before the
    references to it.
    """
    found: dict[str, dict[str, Any]] = {}

    def walk(own: Any) -> Any:
        if isinstance(own, list):
            return [walk(part) for part in own]
        if not isinstance(own, dict):
            return own
        if own.get("type") != "object":
            assert own.keys() != {"id"} or own["id"] in found
            return {key: walk(part) for key, part in own.items()}
        assert own["id"] not in found
        found[own["id"]] = own
        found[own["id"]] = {"name": own["name"], **walk(own.get("attributes", {}))}
        return {"id": own["id"]}

    walk(value)
    return found


@pytest.mark.parametrize("chart", CHARTS.values(), ids=CHARTS)
def test_bokeh_reads_a_chart_and_writes_the_same(chart: Chart) -> None:
    doc = json.loads(json.dumps(chart.item["doc"]))
    read = Document.from_json(doc)
    read.validate()
    (root,) = read.roots
    assert root.id == chart.item["root_id"]
    own, again = models_of(doc["roots"]), models_of(json.loads(json.dumps(read.to_json(deferred=False)))["roots"])
    assert own.keys() == again.keys()
    for number, attributes in own.items():
        assert {name for name in again[number] if name not in attributes} == set()
        for name, value in attributes.items():
            if name in again[number]:
                assert again[number][name] == value
            else:  # the default of Bokeh
                default = getattr(read.get_model_by_id(ID(number)), name)
                assert value in (default, {"type": "field", "field": getattr(default, "field", None)})
    assert read.to_json(deferred=False)["version"] == doc["version"] == chart.item["version"]


def test_no_two_charts_share_a_model() -> None:
    found = [number for chart in CHARTS.values() for number in models_of(chart.item["doc"])]
    assert len(found) == len(set(found))


def test_numbers_that_javascript_lacks_become_floats() -> None:
    (_, values) = charts.columns({"v": [2**53 - 1, 2**53, -(2**60), 0.5, "9"]})["attributes"]["data"]["entries"][0]
    assert values == [2**53 - 1, 2.0**53, -(2.0**60), 0.5, "9"]
    assert [type(value) for value in values] == [int, float, float, float, str]


def test_the_script_is_that_of_bokeh() -> None:
    assert charts.bokeh_script() == (bokehjs_path() / "js" / "bokeh.min.js").read_text("utf-8")
