"""Attributes of vertices: looked up by id, and joined by a run."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import strategies
from edgemill.pipeline import Result, UsageError
from edgemill.pipeline.groups.attributes import attribute_columns, attributes_of, label_column, labels_of
from made import made


@given(data=st.data())
@settings(max_examples=20)
def test_attributes_are_looked_up(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """In the order of the ids that are asked for, repeated and unknown ones too, whatever the row groups."""
    naming = data.draw(strategies.namings(9))
    names = sorted(naming.names)
    name = data.draw(st.dictionaries(st.sampled_from(names), st.text(max_size=3), max_size=9))
    size = data.draw(st.dictionaries(st.sampled_from(names), st.integers(-5, 5), max_size=9))
    known = names[:7]
    result = made(
        tmp_path_factory.mktemp("made") / "out",
        dict.fromkeys(itertools.combinations(known[:4], 2), 2),
        id_type=naming.type,
        alone=known,
        rows_per_file=data.draw(st.integers(1, 9)),
        rows_per_group=data.draw(st.integers(1, 9)),
        attributes={"name": (pa.string(), name), "size": (pa.int16(), size)},
        label=data.draw(st.sampled_from(["name", "size"])),
    )
    asked: list[Any] = data.draw(st.lists(st.sampled_from(names), max_size=12))
    values = {
        column: [held.get(id) if id in known else None for id in asked]
        for column, held in (("name", name), ("size", size))
    }
    assert attribute_columns(result) == ["name", "size"]
    for given_ids in (asked, pa.array(asked, naming.type), pa.chunked_array([asked], naming.type)):
        assert attributes_of(result, given_ids).to_pydict() == values
    assert attributes_of(result, asked, ["size"]).to_pydict() == {"size": values["size"]}
    label = label_column(result)
    assert label is not None
    assert labels_of(result, asked) == [None if value is None else str(value) for value in values[label]]


def test_a_result_without_attributes(tmp_path: Path) -> None:
    result = made(tmp_path / "out", {(1, 2): 0})
    assert labels_of(result, [2, 7]) == [None, None]
    assert (attribute_columns(result), label_column(result)) == ([], None)
    assert attributes_of(result, [2, 7]).num_columns == 0
    with pytest.raises(UsageError, match="has no table attributes: run again with --vertices FILE"):
        _ = Result(result.path).attributes
