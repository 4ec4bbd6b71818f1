"""The Python function `run`, and those of single programs."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, get_type_hints

import networkx as nx
import pandas as pd
import pytest

import edgemill
from edgemill.pipeline.python_api.keywords import RunKeywords
from edgemill.pipeline.settings.declared_programs import every_shipped

GRAPH = nx.karate_club_graph()
QUIET: dict[str, Any] = {"device": "cpu"}


def test_every_program_has_a_function() -> None:
    for name, program in every_shipped().items():
        function = getattr(edgemill, name)
        assert function is getattr(edgemill.pipeline, name) and function.__name__ == name
        parameters = {
            parameter.name: parameter.default
            for parameter in inspect.signature(function).parameters.values()
            if parameter.kind is parameter.KEYWORD_ONLY
        }
        own = {key: None if one.default is ... else one.default for key, one in program.parameters.items()}
        assert parameters == own | {"client": None, "progress": None}
        assert all(f"`{column.name}`" in function.__doc__ for column in (*program.columns, *program.edge_columns))


def test_columns_by_id() -> None:
    frame = pd.DataFrame(list(GRAPH.edges), columns=["src", "dst"])
    table = edgemill.coreness(frame, **QUIET)
    found = table.to_pandas()
    assert list(found.columns) == ["id", "degree", "coreness"]
    assert dict(zip(found["id"], found["coreness"], strict=True)) == nx.core_number(GRAPH)
    assert table.to_arrow(["id"])["id"].to_pylist() == sorted(GRAPH)  # read after the result has gone


def test_parameters_and_settings() -> None:
    ranks = edgemill.pagerank(GRAPH, damping=0.5, tolerance=1e-12, where=None, **QUIET).to_pandas()
    expected = nx.pagerank(GRAPH, alpha=0.5, tol=1e-14, weight=None)
    assert ranks.set_index("id")["pagerank"].to_dict() == pytest.approx(expected, abs=1e-10)
    with pytest.raises(edgemill.UsageError, match=r"^damping: must be"):
        edgemill.pagerank(GRAPH, damping=2, **QUIET)
    with pytest.raises(edgemill.UsageError, match=r"edgemill\.labels.*edgemill\.run"):
        edgemill.labels(GRAPH, programs=("pagerank",))


@pytest.mark.parametrize(
    ("function", "keyword", "told"),
    [
        (edgemill.pagerank, "dampin", "did you mean damping?"),
        (edgemill.pagerank, "wheer", "did you mean where"),
        (edgemill.bfs, "sources", "did you mean source?"),  # which another program has
        (edgemill.coreness, "zebra", "its own are none"),
        (edgemill.sssp, "damping", "edgemill.sssp has no keyword 'damping'"),
        (edgemill.run, "programms", "did you mean programs"),
        (edgemill.mine, "overwirte", "did you mean overwrite?"),
        (edgemill.estimate, "sampels", "did you mean samples?"),
    ],
)
def test_a_mistyped_keyword_is_a_type_error(function: Callable[..., Any], keyword: str, told: str) -> None:
    with pytest.raises(TypeError, match=re.escape(told)) as caught:
        function(GRAPH, **{keyword: 1})
    assert isinstance(caught.value, edgemill.UsageError) and keyword in str(caught.value)


def test_keywords_of_all_runs_are_not_those_of_programs() -> None:
    of_all = get_type_hints(RunKeywords).keys()
    assert {"where", "directed", "workers", "output", "vertices"} <= of_all
    assert not {"programs", "program", "pagerank", "damping"} & of_all


def test_run_takes_a_list() -> None:
    with edgemill.run(GRAPH, programs=["components", "labels"], **QUIET | {"labels": {"iterations": 2}}) as result:
        assert [record.name for record in result.manifest.programs] == ["components", "labels"]
        assert result.manifest.programs[1].parameters == {"iterations": 2}
        assert set(result.vertices.to_table()["weak_component"].to_pylist()) == {0}
        assert not result.manifest.has_lambda
