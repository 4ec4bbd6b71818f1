"""Weights of edges: the same bits in any order of rows, rules for repeated rows, and rows that cannot be used."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import drive
from edgemill.tasks.errors import InputError
from edgemill.tasks.ingest.directions import DOWN, UP
from edgemill.tasks.ingest.weights import combine_rows
from edgemill.tasks.inputs.formats.form import Form, Weights
from edgemill.tasks.inputs.open_source import open_source
from examples import examples

Row = tuple[int, int, float]
WEIGHT = st.sampled_from([0.1, 0.2, 0.3, 1.0, -2.5, 1e16, -1e16, 1e-300, 5e-324, -0.0, 1e300])
ROWS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), WEIGHT), max_size=40)
BY_RULE: dict[str, Any] = {"sum": lambda own: float(sum(map(Fraction, own))), "min": min, "max": max}


def _expected(rows: list[Row], directed: bool, rule: str) -> dict[tuple[int, int], float]:
    found = defaultdict(list)
    for u, v, weight in rows:
        if u != v:
            found[(u, v) if directed else (min(u, v), max(u, v))].append(weight)
    return {edge: BY_RULE[rule](own) + 0.0 for edge, own in found.items()}


def _weights_of(ingested: drive.Ingested) -> dict[tuple[Any, Any], float]:
    """The weight of each directed edge, or of each pair, by ids."""
    names = [name for ids in ingested.ids for name in ids.ids.tolist()]
    found = {}
    for edges in ingested.edges:
        assert edges.weight is not None
        weights = iter(edges.weight.tolist())
        for at, (low, high) in enumerate(zip(edges.low.tolist(), edges.high.tolist(), strict=True)):
            pair = names[edges.first + low], names[edges.highs[high]]
            ways = UP if edges.ways is None else edges.ways[at]
            if ways & UP:
                found[pair] = next(weights)
            if ways & DOWN:
                found[pair[::-1]] = next(weights)
        assert next(weights, None) is None
    return found


def _ingest(rows: list[Row], form: Form, cut: Any, folder: str, **columns: Any) -> drive.Ingested:
    """Write rows in several row groups, and ingest them with several blocks and buckets."""
    file_rows, block_rows, buckets = cut
    ends = {
        name: pa.array([row[at] for row in rows], columns.get(name, pa.int64()))
        for at, name in enumerate(("src", "dst"))
    }
    table = pa.table({**ends, "weight": pa.array([row[2] for row in rows], columns.get("weight", pa.float64()))})
    pq.write_table(table, Path(folder, "rows.parquet"), row_group_size=file_rows)
    return drive.ingest(open_source(folder, form=form), buckets=buckets, rows_per_block=block_rows)


@given(ROWS, st.booleans(), st.sampled_from(["sum", "min", "max"]), st.randoms(use_true_random=False))
@settings(max_examples=examples(60), deadline=None)
def test_weights_do_not_depend_on_the_order_of_rows(rows: list[Row], directed: bool, rule: Any, random: Any) -> None:
    expected = _expected(rows, directed, rule)
    form = Form(directed=directed, weights=Weights("weight", rule))
    for cut in ((100, 100, 1), (7, 5, 3)):
        shuffled = [(v, u, w) if not directed and random.random() < 0.5 else (u, v, w) for u, v, w in rows]
        random.shuffle(shuffled)
        with tempfile.TemporaryDirectory() as folder:
            ingested = _ingest(shuffled, form, cut, folder)
        found = _weights_of(ingested)
        assert {edge: value.hex() for edge, value in found.items()} == {e: v.hex() for e, v in expected.items()}
        repeated = ingested.rows.duplicates + ingested.buckets.duplicates
        pairs = {(min(edge), max(edge)) for edge in expected}
        assert repeated == len(rows) - ingested.rows.self_loops - len(pairs)


def test_sums_that_overflow_midway_are_exact() -> None:
    rows = len(weights := np.array([1.7e308, 1.7e308, -1.7e308, 3.0, 1.7e308, 1.7e308, 0.1, 0.1, 0.1, -0.0, 0.0]))
    high = np.array([1, 1, 1, 2, 3, 3, 4, 4, 4, 5, 5], np.int32)
    found = combine_rows(np.zeros(rows, np.int32), high, None, weights, 1, "sum")
    assert found.weight.tolist() == [1.7e308, 3.0, np.inf, 0.30000000000000004, 0.0]
    assert not np.signbit(found.weight).any()
    assert found.refused == (2, 2)


@pytest.mark.parametrize(
    ("rule", "directed", "rows", "message"),
    [
        (
            "error",
            False,
            [(1, 2, 1.0), (7, 9, 1.0), (9, 7, 1.0)],
            r"the edge between 7 and 9 has 2 rows, .*input\.repeats=sum",
        ),
        (
            "error",
            True,
            [(1, 2, 1.0), (2, 1, 1.0), (9, 7, 1.0), (9, 7, 2.0)],
            "the edge with a direction between 7 and 9 has 2",
        ),
        (
            "sum",
            False,
            [(1, 2, 1.0), (7, 9, 1.7e308), (9, 7, 1.7e308)],
            "2 rows of the edge between 7 and 9 .* more than",
        ),
    ],
)
def test_rows_without_a_common_weight_are_refused(
    rule: Any, directed: bool, rows: list[Row], message: str, tmp_path: Path
) -> None:
    form = Form(directed=directed, weights=Weights("weight", rule))
    with pytest.raises(InputError, match=message):
        _ingest(rows, form, (2, 2, 2), str(tmp_path))


@pytest.mark.parametrize("value", [None, float("nan"), float("inf"), -1.0])
@pytest.mark.parametrize("kind", [pa.float64(), pa.float32(), pa.string()])
def test_the_row_of_an_unusable_weight_is_named(value: float | None, kind: Any, tmp_path: Path) -> None:
    text = pa.types.is_string(kind)
    rows: list[Any] = [(f"a{n}", f"b{n}", 1.0) if text else (n, 100 + n, 1.0) for n in range(23)]
    rows[17] = (*rows[17][:2], value)
    shown = "null" if value is None else str(value)
    form = Form(where="weight is null or weight <> 5", weights=Weights("weight", nonnegative=True))
    ends = {"src": kind, "dst": kind} if text else {}
    ends["weight"] = pa.float64() if text else kind
    ids = "'a17' to 'b17'" if text else "17 to 117"
    with pytest.raises(InputError) as refused:
        _ingest(rows, form, (5, 7, 2), str(tmp_path), **ends)
    file = tmp_path / "rows.parquet"
    for fact in (f"{file}: row 17, counted from 0", f"weight {shown} in column 'weight'", f"edge from {ids}"):
        assert fact in str(refused.value)


def test_rows_of_text_are_counted_from_the_start_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edgemill.tasks.inputs.head.SPLIT_BYTES", 64)
    lines = ["src,dst,weight", *(f"{n},{n + 1},0.5" for n in range(40))]
    lines[31] = "30,31,nan"
    Path(tmp_path, "rows.csv").write_text("\n".join(lines) + "\n")
    with pytest.raises(InputError, match=r"rows\.csv.*30.*0.*30"):
        drive.ingest(open_source(str(tmp_path), form=Form(weights=Weights("weight"))), rows_per_block=5)


def test_types_of_weights(tmp_path: Path) -> None:
    rows = [(1, 2, 3), (2, 3, 4)]
    for kind in (pa.int8(), pa.uint64(), pa.float16(), pa.decimal128(9, 2)):
        values = (
            np.array([3, 4], np.float16)
            if pa.types.is_float16(kind)
            else pa.array([3, 4]).cast(kind, safe=False)
            if kind.bit_width < 128
            else pa.array([3, 4]).cast(pa.decimal128(21, 2))
        )
        table = pa.table({"src": [1, 2], "dst": [2, 3], "weight": pa.array(values)})
        pq.write_table(table, tmp_path / "rows.parquet")
        source = open_source(str(tmp_path), form=Form(weights=Weights("weight")))
        assert _weights_of(drive.ingest(source)) == {(u, v): float(w) for u, v, w in rows}
    pq.write_table(table.set_column(2, "weight", [["a", "b"]]), tmp_path / "rows.parquet")
    with pytest.raises(InputError, match=r"column 'weight' is string.* integers, .*or decimals"):
        open_source(str(tmp_path), form=Form(weights=Weights("weight")))
    with pytest.raises(InputError, match=r"no column 'heft', .*input\.weight_column.*'src', 'dst'"):
        open_source(str(tmp_path), form=Form(weights=Weights("heft")))
    with pytest.raises(InputError, match=r"input\.weight_column.*'dst'"):
        open_source(str(tmp_path), form=Form(weights=Weights("dst")))
