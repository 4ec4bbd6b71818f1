"""Conditions on rows: DuckDB selects the same random rows by random conditions; errors have their offset."""

from __future__ import annotations

import datetime
import pickle
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgemill.tasks.errors import EdgemillError, UsageError
from edgemill.tasks.ingest.reading import read_rows
from edgemill.tasks.inputs.formats.form import Form
from edgemill.tasks.inputs.formats.statistics import matching_row_groups
from edgemill.tasks.inputs.open_source import open_source
from edgemill.tasks.inputs.partitions import partition_types, partition_values, texts_of_path
from edgemill.tasks.inputs.sources import plan_blocks
from edgemill.tasks.where.condition import FEW_VALUES, MAX_COMPARISONS, parse_where
from edgemill.tasks.where.expression import cannot_match, expression_of
from examples import examples

DAY = datetime.date(2026, 11, 1)
SCHEMA = pa.schema(
    {
        "n": pa.int64(),
        "weight": pa.float64(),
        "name": pa.string(),
        "date": pa.date32(),
        "seen": pa.timestamp("us"),
        "on": pa.bool_(),
        "price": pa.decimal128(9, 2),
    }
)
ROW = st.fixed_dictionaries(
    {
        "n": st.one_of(st.none(), st.integers(-3, 3), st.sampled_from([2**53, 2**53 + 1, -(2**63)])),
        "weight": st.one_of(st.none(), st.sampled_from([-1.5, 0.0, 0.5, 1.0])),
        "name": st.one_of(st.none(), st.sampled_from(["", "a", "ab", "it's", "%"])),
        "date": st.one_of(st.none(), st.sampled_from([DAY, DAY + datetime.timedelta(1)])),
        "seen": st.one_of(st.none(), st.sampled_from([datetime.datetime(2026, 11, 1, hour) for hour in (0, 5)])),
        "on": st.one_of(st.none(), st.booleans()),
        "price": st.one_of(st.none(), st.sampled_from([Decimal("0.50"), Decimal("1.00")])),
    }
)
VALUES = {
    "n": ["0", "-2", "2", "0.5", "-1.5", "9007199254740993"],
    "weight": ["0.5", "1", "-1.5", "0"],
    "name": ["'a'", "''", "'it''s'"],
    "date": ["'2026-11-01'", "DATE '2026-11-02'"],
    "seen": ["'2026-11-01 05:00:00'", "TIMESTAMP '2026-11-01 00:00:00'"],
    "price": ["0.5", "1"],
}
COLUMNS = st.sampled_from(sorted(VALUES))


@st.composite
def predicates(draw: st.DrawFn) -> str:
    column = draw(COLUMNS)
    values = st.sampled_from(VALUES[column])
    whole = st.sampled_from([value for value in VALUES[column] if column != "n" or "." not in value])
    quoted = draw(st.sampled_from([column, f'"{column}"']))
    negated = draw(st.sampled_from(["", "not "]))
    match draw(st.sampled_from(["order", "mirrored", "equals", "in", "between", "null", "like", "on"])):
        case "order":
            return f"{quoted} {draw(st.sampled_from(['<', '<=', '>', '>=']))} {draw(values)}"
        case "mirrored":
            return f"{draw(values)} {draw(st.sampled_from(['<', '<=', '>', '>=']))} {quoted}"
        case "equals":
            return f"{quoted} {draw(st.sampled_from(['=', '<>', '!=']))} {draw(whole)}"
        case "in":
            least = draw(st.sampled_from([1, FEW_VALUES + 1]))
            return f"{quoted} {negated}in ({', '.join(draw(st.lists(whole, min_size=least, max_size=least + 2)))})"
        case "between":
            return f"{quoted} {negated}between {draw(values)} and {draw(values)}"
        case "null":
            return f"{quoted} is {negated}null"
        case "like":
            return f"name {negated}like {draw(st.sampled_from(['%a%', '_', 'a%']).map(repr))}"
        case _:
            return '"on"'  # a keyword of DuckDB


CONDITIONS = st.recursive(
    predicates(),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["and", "or", "AND"]), inner).map(lambda parts: f"({' '.join(parts)})"),
        inner.map(lambda text: f"not ({text})"),
    ),
    max_leaves=6,
)


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as opened:
        yield opened


@given(rows=st.lists(ROW, max_size=8), condition=CONDITIONS)
@settings(max_examples=examples(60))
def test_duckdb_selects_the_same_rows(
    database: duckdb.DuckDBPyConnection, rows: list[dict[str, Any]], condition: str
) -> None:
    table = pa.Table.from_pylist(
        [{"row": at, **row} for at, row in enumerate(rows)], pa.schema([("row", pa.int64()), *SCHEMA])
    )
    wanted = expression_of(
        pickle.loads(pickle.dumps(parse_where(condition))), dict(zip(SCHEMA.names, SCHEMA.types, strict=True))
    )
    database.register("t", table)
    right = database.execute(f"SELECT row FROM t WHERE {condition} ORDER BY row").fetchall()
    assert table.filter(wanted)["row"].to_pylist() == [row for (row,) in right]


def types(**columns: pa.DataType) -> dict[str, pa.DataType]:
    return columns


@pytest.mark.parametrize(
    ("text", "why", "at"),
    [
        ("weight >", "the condition ends here, and a column or a value is missing", 9),
        ("weight > 0.5 and", "a column or a value is missing", 17),
        ("weight", "weight is double: compare it, as in weight > 0", 1),
        ("weight > 0.5 0", "'0' is unexpected", 14),
        ("(weight > 0.5", "')' is missing after the condition in parentheses", 14),
        ("weight > 'x", "the quote ' is not closed", 10),
        ("weight ~ 1", "'~' is unexpected here", 8),
        ("weight = null", "null equals nothing: write is null or is not null", 10),
        ("height > 1", "the input has no column 'height'; it has n, weight, name, date, zoned", 1),
        ('name = "a"', "the input has no column 'a'; it has n, weight, name, date, zoned; text needs single", 8),
        ("weight > 'a'", "weight is double, and 'a' is not a value of that type", 10),
        ("n > 9223372036854775808", "n is int64, and 9223372036854775808 is not a value of that type", 5),
        ("n = 0.5", "n is int64, which 0.5 never equals", 5),
        ("date >= '2026-13-01'", "date is date32[day], and '2026-13-01' is not a value of that type", 9),
        ("name like n", "like needs a text in single quotes", 11),
        ("n like 'a'", "n is int64, but like applies to text", 1),
        ("n in ()", "a column or a value is expected instead of ')'", 7),
        ("1 = 1", "neither side of the comparison is a column", 1),
        ("n = name", "n is int64 and name is string: they cannot be compared", 3),
        ("n not 5", "a comparison is missing", 7),
        ("- > 1", "a number is missing after -", 3),
    ],
)
def test_errors_and_their_offsets(text: str, why: str, at: int) -> None:
    known = types(n=pa.int64(), weight=pa.float64(), name=pa.string(), date=pa.date32(), zoned=pa.timestamp("s", "UTC"))
    with pytest.raises(
        UsageError, match=f"^input.where: .*{re.escape(why)}.*, at character {at} of: {re.escape(text)}$"
    ):
        expression_of(parse_where(text), known)


EVERY_TYPE = types(
    n=pa.int64(),
    u=pa.uint64(),
    weight=pa.float64(),
    small=pa.float32(),
    price=pa.decimal128(9, 2),
    name=pa.string(),
    date=pa.date32(),
    at=pa.timestamp("ns"),
    second=pa.timestamp("s"),
    zoned=pa.timestamp("us", "UTC"),
    time=pa.time64("us"),
    short=pa.time32("s"),
    id=pa.binary(16),
    on=pa.bool_(),
)
LIMITS = {
    "parentheses": "(" * 101 + "n > 1" + ")" * 101,
    "not": "not " * 101 + "n > 1",
    "both": "not (" * 51 + "n > 1" + ")" * 51,
    "a list": f"n in ({'1,' * 10_000}1)",
    "lists": " and ".join([f"n in ({'1,' * 4_999}1)"] * 3),
    "and": " and ".join(["n > 1"] * (MAX_COMPARISONS + 1)),
    "or": " or ".join(["n > 1"] * (MAX_COMPARISONS + 1)),
    "short lists": " or ".join(["n in (1, 2, 3)"] * MAX_COMPARISONS),
    "a list of numbers with a point": f"weight in ({'1,' * MAX_COMPARISONS}1)",
    "between": " and ".join(["n between 1 and 2"] * (MAX_COMPARISONS + 1)),
    "like": f"name like '{'%_' * 501}'",
    "characters": f"name = '{'a' * 1_000_000}'",
    "blanks": "n > 1" + " " * 1_000_000,
    "digits": "n = " + "9" * 100_000,
    "digits of a fraction": "weight = 0." + "9" * 100_000,
    "an exponent": "weight = 1e999999999",
    "an exponent of an integer": "n > 1e999999999",
    "an exponent of a decimal": "price = -1e999999999",
    "a small exponent": "n < 1e-999999999",
    "digits of an exponent": "n = 1e" + "9" * 5_000,
    "an exponent in a list": "n in (1, 1e999999999)",
    "an exponent of between": "n between 1 and 1e999999999",
    "above float64": "weight < 1e400",
    "below float64": "weight = 1e-400",
    "above float64, of float32": "small > 1e309",
    "above int64": "n > 1e19",
    "above uint64": "u < 1e20",
    "below uint64": "u > -1",
    "above decimals": "price < 1e100",
    "the year 10000": "date < '10000-01-01'",
    "the year 0": "date > '0000-01-01'",
    "above timestamps": "at < '9999-12-31'",
    "below timestamps": "at > '0001-01-01'",
    "above the last year": "zoned < '9999-12-31T23:59:59-14:00'",
    "below the first year": "zoned > '0001-01-01T00:00:00+14:00'",
    "a part of a second": "second = '2026-11-01 00:00:00.5'",
    "a part of a second of a time": "short = '12:00:00.5'",
    "nanoseconds": "at = '2026-11-01 00:00:00.123456789'",
    "a time of a zone": "time < '12:00+02:00'",
    "the hour 25": "time < '25:00'",
    "no UUID": "id = '00'",
    "NUL": "n = 1\0",
    "NUL in a name": "n\0 = 1",
    "half of a character": "name = '\ud800'",
    "other digits": "n = １",
    "nothing": " ",
}


@pytest.mark.parametrize("limit", LIMITS)
def test_limits_of_a_condition(limit: str) -> None:
    """Each ends at once in a short message, with the setting and an offset."""
    with pytest.raises(UsageError, match=r"^input\.where") as caught:
        expression_of(parse_where(LIMITS[limit]), EVERY_TYPE)
    assert len(str(caught.value)) < 600
    assert limit == "nothing" or "at character " in str(caught.value)


@pytest.mark.parametrize(
    ("condition", "count"),
    [
        ("n in (" + ",".join(map(str, range(10_000))) + ")", 10_000),
        ("n not in (" + ",".join(map(str, range(10_000))) + ")", 5_000),
        ("name in (" + ",".join(f"'{at:090}'" for at in range(10_000)) + ")", 10_000),
        (" and ".join([f"n <> {at}" for at in range(MAX_COMPARISONS)]), 15_000 - MAX_COMPARISONS),
        (" or ".join([f"n = {at}" for at in range(MAX_COMPARISONS)]), MAX_COMPARISONS),
        ("not " * 98 + "n < 5", 5),
        ("(" * 99 + "n < 5" + ")" * 99, 5),
        (f"name like '{'%_' * 499}'", 0),
        (f"name like '{'_' * 90}'", 15_000),
        (f"weight in ({','.join(map(str, range(MAX_COMPARISONS)))})", MAX_COMPARISONS),
    ],
)
def test_conditions_within_the_limits(condition: str, count: int) -> None:
    """Arrow ends the process for 10,000 comparisons, and for a list of as many values if each is compared."""
    rows = range(15_000)
    table = pa.table(
        {"n": pa.array(rows), "name": [f"{at:090}" for at in rows], "weight": pa.array(rows).cast(pa.float64())}
    )
    parsed = pickle.loads(pickle.dumps(parse_where(condition)))
    wanted = expression_of(parsed, dict(zip(table.schema.names, table.schema.types, strict=True)))
    assert table.filter(wanted).num_rows == count


def test_row_groups_are_skipped_by_a_long_list(tmp_path: Path) -> None:
    pq.write_table(pa.table({"src": range(100), "dst": range(1, 101)}), tmp_path / "a.parquet", row_group_size=10)
    source = open_source(str(tmp_path), form=Form(where=f"src in ({','.join(map(str, range(30, 50)))})"))
    assert source.where is not None
    assert matching_row_groups(
        str(tmp_path / "a.parquet"),
        source.files[0].version,
        {},
        tuple(range(10)),
        {"src": pa.int64()},
        source.where.expression({}),
    ) == (3, 4)


def test_a_type_that_arrow_does_not_compare(tmp_path: Path) -> None:
    half = pa.array([0.5], pa.float16())
    pq.write_table(pa.table({"src": [1], "dst": [2], "half": half}), tmp_path / "a.parquet")
    with pytest.raises(UsageError, match=r"input\.where: .*half > 0\.1: .*; cast the column"):
        open_source(str(tmp_path), form=Form(where="half > 0.1"))


def test_other_types() -> None:
    zoned, ids = pa.timestamp("s", "Europe/Berlin"), [bytes(16), bytes([1] * 16)]
    table = pa.table(
        {
            "at": pa.array([0, 3600], pa.timestamp("s")).cast(pa.timestamp("s", "UTC")).cast(zoned),
            "id": pa.array(ids, pa.binary(16)),
            "word": pa.array(["a", "b"]).dictionary_encode(),
            "u": pa.array([0, 2**64 - 1], pa.uint64()),
        }
    )
    known = dict(zip(table.schema.names, table.schema.types, strict=True))
    plain = table.set_column(2, "word", table["word"].cast(pa.string()))
    for text, rows in (
        ("at >= '1970-01-01 01:00:00'", 1),  # in UTC
        ("at >= '1970-01-01T01:00:00+01:00'", 2),
        ("id = '01010101-0101-0101-0101-010101010101'", 1),
        ("word <> 'a'", 1),
        ("u = 18446744073709551615", 1),
        ("u >= 0.5", 1),
    ):
        assert plain.filter(expression_of(parse_where(text), known)).num_rows == rows, text


def test_hive_partitions() -> None:
    paths = ["/in/dt=2026-11-01/kind=a%2Fb/x.parquet", "/in/dt=2026-11-02/kind=__HIVE_DEFAULT_PARTITION__/x.parquet"]
    texts = [texts_of_path("/in", path) for path in paths]
    assert texts == [{"dt": "2026-11-01", "kind": "a/b"}, {"dt": "2026-11-02", "kind": None}]
    known = partition_types(texts)
    assert known == {"dt": pa.date32(), "kind": pa.string()}
    assert partition_types([{"h": "0"}, {"h": "23"}]) == {"h": pa.int64()}
    values = [partition_values(own, known) for own in texts]
    for text, left in (
        ("dt > '2026-11-01'", [True, False]),
        ("dt > '2026-11-01' and n = 1", [True, False]),
        ("dt > '2026-11-01' or n = 1", [False, False]),
        ("not dt > '2026-11-01'", [False, True]),
        ("not (dt > '2026-11-01' and n = 1)", [False, False]),
        ("kind is null", [True, False]),
        ("kind = 'a/b'", [False, True]),
        ("n = 1", [False, False]),
    ):
        assert [cannot_match(parse_where(text), known, own) for own in values] == left, text


PLAIN, ZEROS, DAYS = ("7", "10", "1001"), ("7", "10", "01001"), ("2026-11-01", "2026-11-02", "2026-11-03")


@pytest.mark.parametrize(
    ("folders", "condition", "read"),
    [
        (PLAIN, "code = 10", ("10",)),
        (PLAIN, "code = '10'", ("10",)),
        (PLAIN, "code < 1000", ("7", "10")),
        (PLAIN, "code in ('7', '1001')", ("7", "1001")),
        (PLAIN, "code <> '7'", ("10", "1001")),
        (PLAIN, "code like '10%'", ("10", "1001")),
        (PLAIN, "code is not null and not code = '7'", ("10", "1001")),
        (ZEROS, "code = '01001'", ("01001",)),
        (ZEROS, "code = '10'", ("10",)),
        (ZEROS, "code < '1'", ("01001",)),
        (("01001",), "code = '01001'", ("01001",)),
        (("20261101", "20261102"), "code >= 20261102", ("20261102",)),
        (("20261101", "20261102"), "code = '20261102'", ("20261102",)),
        (("7", "__HIVE_DEFAULT_PARTITION__"), "code = 7", ("7",)),
        (("7", "__HIVE_DEFAULT_PARTITION__"), "code is null", ("__HIVE_DEFAULT_PARTITION__",)),
        (("%30%31", "a%2Fb"), "code = '01'", ("%30%31",)),
        (("1", "9999999999999999999"), "code = '9999999999999999999'", ("9999999999999999999",)),
        (("-1", "1"), "code = '-1'", ("-1",)),
        (("", "1"), "code = ''", ("",)),
        (DAYS, "code >= '2026-11-02'", DAYS[1:]),
        ((*DAYS, "rest"), "code = '2026-11-02'", ("2026-11-02",)),
        (("٣", "3"), "code = '٣'", ("٣",)),
    ],
)
def test_values_of_folders(tmp_path: Path, folders: tuple[str, ...], condition: str, read: tuple[str, ...]) -> None:
    """A folder that comes later may have another kind of value: it does not change which rows a condition selects."""
    for folder in folders:
        (tmp_path / f"code={folder}").mkdir()
        pq.write_table(pa.table({"src": [1], "dst": [2]}), tmp_path / f"code={folder}" / "a.parquet")
    source = open_source(str(tmp_path), form=Form(where=condition))
    assert sorted(Path(file.path).parent.name.removeprefix("code=") for file in source.files) == sorted(read)
    found = [read_rows(source, block) for block in plan_blocks(source, 9)]
    assert sum(map(len, found)) == len(read)


@pytest.mark.parametrize(
    ("folders", "condition", "why"),
    [
        (PLAIN, "code < '1000'", "the folders code=… have whole numbers: write 1000 without quotes, at character 8"),
        (PLAIN, "code = '10' or code > 5", "write 10 without quotes, at character 8"),
        (PLAIN, "code between '1' and '2'", "write 1 without quotes"),
        (ZEROS, "code = 7", "the folders code=… have text, such as '01001': write '7', at character 8"),
        (ZEROS, "code in ('7', 01001)", "write '01001', at character 15"),
        (ZEROS, "-5 < code", "write '-5', at character 1"),
        (("-1", "1"), "code = 1", "have text, such as '-1': write '1'"),
        (("1", "9999999999999999999"), "code = 1", "such as '9999999999999999999': write '1'"),
        ((*DAYS, "rest"), "code > 5", "have text, such as '2026-11-01': write '5'"),
        (DAYS, "code = 20261101", "code is date32"),
        (("01", "02"), "code = n", "code is string and n is int64: they cannot be compared"),
    ],
)
def test_values_of_folders_of_another_kind(tmp_path: Path, folders: tuple[str, ...], condition: str, why: str) -> None:
    for folder in folders:
        (tmp_path / f"code={folder}").mkdir()
        pq.write_table(pa.table({"src": [1], "dst": [2], "n": [3]}), tmp_path / f"code={folder}" / "a.parquet")
    with pytest.raises(UsageError, match=rf"input\.where.*{re.escape(why)}"):
        open_source(str(tmp_path), form=Form(where=condition))


@given(rows=st.lists(ROW, min_size=1, max_size=8), condition=CONDITIONS, group=st.integers(1, 3))
@settings(max_examples=examples(60))
def test_skipped_row_groups_have_no_matching_row(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]], condition: str, group: int
) -> None:
    ends = [("src", pa.int64()), ("dst", pa.int64())]
    table = pa.Table.from_pylist(
        [{"src": at, "dst": at + 1, **row} for at, row in enumerate(rows)], pa.schema([*ends, *SCHEMA])
    )
    path = tmp_path_factory.mktemp("groups") / "rows.parquet"
    pq.write_table(table, path, row_group_size=group)
    source = open_source(str(path), form=Form(where=condition))
    found = [read_rows(source, block) for block in plan_blocks(source, 3)]
    wanted = table.filter(expression_of(parse_where(condition), dict(zip(SCHEMA.names, SCHEMA.types, strict=True))))
    assert [id for part in found for id in part.source.tolist()] == wanted["src"].to_pylist()
    assert sum(part.left_out.filtered for part in found) == len(table) - len(wanted)


def test_damaged_footers_end_in_an_error_or_an_answer(tmp_path: Path) -> None:
    """Arrow's reader of statistics aborts the process on some of these."""
    path = tmp_path / "rows.parquet"
    columns = {"src": range(9), "dst": range(1, 10), "weight": [0.5 * at for at in range(9)], "name": list("abcdefghi")}
    pq.write_table(pa.table({name: list(values) for name, values in columns.items()}), path, row_group_size=5)
    whole, ends = path.read_bytes(), 0
    start = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    for bit in range(start * 8, (len(whole) - 8) * 8, 61):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        try:
            source = open_source(str(path), form=Form(where="weight > 3 and name <> 'b'"))
            for block in plan_blocks(source, 100):
                read_rows(source, block)
        except EdgemillError:
            ends += 1
    assert ends > 10
