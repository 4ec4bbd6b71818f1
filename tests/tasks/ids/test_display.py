"""Columns of ids in display form."""

from __future__ import annotations

from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgemill.tasks.ids.display import display_column

UUIDS = st.lists(st.one_of(st.none(), st.uuids()), max_size=5)


@given(before=UUIDS, ids=UUIDS, after=UUIDS, extension=st.booleans())
def test_uuids(before: list[UUID | None], ids: list[UUID | None], after: list[UUID | None], extension: bool) -> None:
    """The text is that of Python, also for slices of a column, and nulls stay."""
    stored = pa.array([None if one is None else one.bytes for one in before + ids + after], pa.binary(16))
    column = pa.ExtensionArray.from_storage(pa.uuid(), stored) if extension else stored
    spelled = display_column(column.slice(len(before), len(ids)))
    assert spelled.type == pa.string()
    assert spelled.to_pylist() == [None if one is None else str(one) for one in ids]


@pytest.mark.parametrize("column", [pa.array([1, None]), pa.array(["a"]), pa.array([b"a"], pa.binary(1))])
def test_other_types_are_unchanged(column: pa.Array) -> None:
    assert display_column(column) is column
