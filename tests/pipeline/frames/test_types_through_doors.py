"""Every type of an id, a weight and an attribute through every door: exact, or refused with column, type and cast."""

from __future__ import annotations

import csv
import datetime as dt
import math
import uuid
from collections.abc import Callable, Iterator
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import dask.config
import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from dask import dataframe
from dask.base import compute

import lakes
from edgemill.pipeline import InputError, Result, mine, update
from edgemill.pipeline.inputs.frame_input import FrameInput
from edgemill.pipeline.opening.batch import BatchInput
from edgemill.pipeline.settings.models import InputSettings
from edgemill.tasks.attributes import open_attributes, plan_attribute_blocks, read_attributes
from edgemill.tasks.ids.id_types import from_internal
from edgemill.tasks.ingest.reading import read_rows
from edgemill.tasks.inputs.formats.form import Form, Weights
from edgemill.tasks.inputs.open_source import open_source
from edgemill.tasks.inputs.sources import Source, plan_blocks
from edgemill.tasks.storage.folders import Folder
from edgemill.tasks.verify.result import verify

dd: Any = dataframe
QUIET: dict[str, Any] = {"output.report": False}
NUMBERS = [3, 1, 2, 3]
"""What is in every column, in the form of its type."""


def text(number: int) -> str:
    return f"v{number}"


def key(number: int) -> uuid.UUID:
    return uuid.UUID(int=number << 70 | 5)


def dictionary(values: pa.Array) -> pa.Array:
    """As a dictionary of distinct values."""
    return pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 0], pa.int16()), values.slice(0, 3))


def runs(values: pa.Array) -> pa.Array:
    """Run-end-encoded, and sliced, so that its first run begins before it."""
    ends = pa.array([3, 4, 5, 6], pa.int32())
    return pa.RunEndEncodedArray.from_arrays(ends, values).slice(2)


def of(kind: pa.DataType, value: Callable[[int], Any] = int) -> pa.Array:
    return pa.array([value(number) for number in NUMBERS], kind)


DAY = dt.date(2026, 11, 29)
TEXTS = {"string": pa.string(), "large_string": pa.large_string(), "string_view": pa.string_view()}
INTEGERS = {
    str(kind): kind
    for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())
}
COLUMNS: dict[str, pa.Array] = {
    **{name: of(kind) for name, kind in INTEGERS.items()},
    **{name: of(kind, text) for name, kind in TEXTS.items()},
    "large_uint64": of(pa.uint64(), lambda n: 2**63 + n),
    "small_int64": of(pa.int64(), lambda n: -(2**63) + n),
    "float16": pa.array([float(n) for n in NUMBERS], pa.float32()).cast(pa.float16()),
    "float32": of(pa.float32(), float),
    "float64": of(pa.float64(), float),
    "fraction": of(pa.float64(), lambda n: n / 2),
    "nan": of(pa.float64(), lambda n: math.nan),
    "bool": of(pa.bool_(), lambda n: n > 1),
    "decimal32": of(pa.decimal32(5, 0)),
    "decimal64": of(pa.decimal64(15, 0)),
    "decimal128": of(pa.decimal128(38, 0)),
    "decimal256": of(pa.decimal256(60, 0)),
    "short_decimal": of(pa.decimal128(9, 0)),
    "negative_decimal": of(pa.decimal128(38, 0), lambda n: -(2**63) + n),
    "large_decimal": of(pa.decimal128(38, 0), lambda n: 2**63 + n),
    "huge_decimal": of(pa.decimal128(38, 0), lambda n: 2**64 + n),
    "money": of(pa.decimal128(12, 2), lambda n: Decimal(n)),
    "binary": of(pa.binary(), lambda n: text(n).encode()),
    "large_binary": of(pa.large_binary(), lambda n: text(n).encode()),
    "binary_view": of(pa.binary_view(), lambda n: text(n).encode()),
    "binary16": of(pa.binary(16), lambda n: key(n).bytes),
    "binary4": of(pa.binary(4), lambda n: n.to_bytes(4, "big")),
    "uuid": of(pa.uuid(), lambda n: key(n).bytes),
    "json": pa.ExtensionArray.from_storage(pa.json_(), of(pa.string(), str)),
    "opaque": pa.ExtensionArray.from_storage(pa.opaque(pa.string(), "t", "v"), of(pa.string(), text)),
    "date32": of(pa.date32(), lambda n: DAY.replace(day=n)),
    "date64": of(pa.date64(), lambda n: DAY.replace(day=n)),
    "timestamp": of(pa.timestamp("us"), lambda n: dt.datetime(2026, 11, n)),
    "timestamp_utc": of(pa.timestamp("us", "UTC"), lambda n: dt.datetime(2026, 11, n)),
    "time32": of(pa.time32("s"), lambda n: dt.time(n)),
    "time64": of(pa.time64("us"), lambda n: dt.time(n)),
    "duration": of(pa.duration("us"), lambda n: dt.timedelta(n)),
    "null": pa.nulls(len(NUMBERS)),
    "list": of(pa.list_(pa.int64()), lambda n: [n]),
    "struct": of(pa.struct([("a", pa.int64())]), lambda n: {"a": n}),
    "map": of(pa.map_(pa.string(), pa.int64()), lambda n: [("a", n)]),
}
COLUMNS |= {
    f"{how.__name__}_{name}": how(COLUMNS[name])
    for how in (dictionary, runs)
    for name in (
        *INTEGERS,
        *TEXTS,
        "float64",
        "bool",
        "decimal128",
        "money",
        "binary",
        "binary16",
        "date32",
        "timestamp",
    )
}
COLUMNS["dictionary_uuid"] = dictionary(COLUMNS["uuid"])
COLUMNS["runs_of_dictionary"] = runs(dictionary(COLUMNS["string_view"]))

SECOND = " 2"
"""What is added to the name of a column for the other end."""
WIDE = pa.table(
    {name + end: column for name, column in COLUMNS.items() for end in ("", SECOND)}
    | {"one": [1, 2, 3, 4], "two": [2, 3, 4, 5], "weigh": [1.0, 2, 3, 4]}
)


def without(*prefixes: str, names: tuple[str, ...] = ()) -> pa.Table:
    """The columns that a library takes."""
    kept = [
        name
        for name in WIDE.column_names
        if (plain := name.removesuffix(SECOND)) not in names and not plain.startswith(prefixes)
    ]
    return WIDE.select(kept)


PLAIN = without("runs_", names=("dictionary_string_view", "dictionary_uuid"))
OF_PANDAS = without("runs_", names=("map", "dictionary_string_view", "dictionary_uuid", "dictionary_bool"))
OF_POLARS = without("runs_", names=("decimal256", "opaque", "json"))
OF_DELTA = without(
    "runs_",
    "time",
    "duration",
    names=(
        "dictionary_string_view",
        "large_uint64",
        "float16",
        "decimal32",
        "decimal64",
        "decimal256",
        "dictionary_timestamp",
        "timestamp",
        "null",
        "dictionary_uuid",
        "uuid",
        "dictionary_binary16",
    ),
)
OF_ICEBERG = without(
    "runs_",
    "dictionary_",
    "time32",
    names=(
        "large_uint64",
        "decimal32",
        "decimal64",
        "decimal256",
        "json",
        "opaque",
        "date64",
        "duration",
        "null",
        "float16",
    ),
)


class Door:
    """A way into edgemill for one table: what the library gives, and an input of it."""

    def __init__(self, exported: pa.Table, make: Callable[[list[str]], Any], *, is_file: bool = False) -> None:
        self.types = dict(zip(exported.schema.names, exported.schema.types, strict=True))
        self.exported = exported
        self.make = make
        """Of the names of columns, if it is no file."""
        self.is_file = is_file
        self.has_statistics = not (is_file and str(make([])).endswith(".arrow"))
        """Whether the range of decimals is known before they are read."""

    def open(self, folder: Path, ends: tuple[str, str], weight: str | None = None) -> Source:
        """The input, with these columns."""
        if self.is_file:
            form = Form(weights=None if weight is None else Weights(weight, "max"))
            return open_source(str(self.make([])), *ends, form=form)
        given: dict[str, Any] = {} if weight is None else {"weight_column": weight, "repeats": "max"}
        how = InputSettings(path="frame", source_column=ends[0], target_column=ends[1], **given)
        frame = self.make([*ends, *([] if weight is None else [weight])])
        return FrameInput(frame).open(how, Folder(str(folder)), compute)


def ipc(path: Path, table: pa.Table, is_stream: bool = False) -> Path:
    with (pa.ipc.new_stream if is_stream else pa.ipc.new_file)(path, table.schema) as writer:
        writer.write_table(table)
    return path


def made(name: str, folder: Path) -> Door:
    """The door of this name, with all types that its library has."""
    match name:
        case "parquet":
            pq.write_table(PLAIN, folder / "a.parquet")
            read = pq.ParquetFile(folder / "a.parquet", arrow_extensions_enabled=True).read()
            return Door(read, lambda _: folder / "a.parquet", is_file=True)
        case "ipc" | "ipc stream":
            path = ipc(folder / "a.arrow", WIDE.drop_columns(["dictionary_uuid", "dictionary_uuid 2"]), name != "ipc")
            opened = pa.ipc.open_file(path) if name == "ipc" else pa.ipc.open_stream(path)
            return Door(opened.read_all(), lambda _: path, is_file=True)
        case "delta":
            lakes.delta(folder / "delta", OF_DELTA)
            files = [str(path) for path in (folder / "delta").glob("*.parquet")]
            return Door(pq.ParquetFile(files[0]).read(), lambda _: folder / "delta", is_file=True)
        case "iceberg":
            table = lakes.iceberg(folder, OF_ICEBERG)
            (task,) = table.scan().plan_files()
            read = pq.ParquetFile(task.file.file_path.removeprefix("file://"), arrow_extensions_enabled=True).read()
            return Door(read, lambda _: table.location().removeprefix("file://"), is_file=True)
        case "table":
            return Door(WIDE, WIDE.select)
        case "batch":
            return Door(WIDE, lambda names: WIDE.select(names).to_batches()[0])
        case "reader":
            return Door(WIDE, lambda names: WIDE.select(names).to_reader())
        case "dataset":
            return Door(PLAIN, lambda names: ds.dataset(PLAIN.select(names)))
        case "pandas":
            frame = OF_PANDAS.to_pandas()
            return Door(pa.Table.from_pandas(frame, preserve_index=False), lambda names: frame[names])
        case "pandas of arrow":
            own = WIDE.to_pandas(types_mapper=pd.ArrowDtype)
            return Door(pa.Table.from_pandas(own, preserve_index=False), lambda names: own[names])
        case "polars":
            eager = pl.from_arrow(OF_POLARS)
            assert isinstance(eager, pl.DataFrame)
            more = eager.with_columns(enum=pl.col("string").cast(pl.Enum(["v1", "v2", "v3"])))
            more = more.with_columns(pl.col("enum").alias("enum 2"))
            return Door(more.to_arrow(compat_level=pl.CompatLevel.newest()), more.select)
        case "lazy polars":
            lazy = pl.from_arrow(OF_POLARS)
            assert isinstance(lazy, pl.DataFrame)
            return Door(lazy.to_arrow(), lambda names: lazy.lazy().select(names))
        case "duckdb":
            source = without(names=("float16", "decimal256"))
            huge = duckdb.sql(
                'SELECT 3::HUGEINT AS hugeint, 3::HUGEINT AS "hugeint 2", range AS one, range + 1 AS two '
                "FROM range(1, 5)"
            )
            assert huge is not None
            exported = duckdb.from_arrow(source).to_arrow_table()
            for name in ("hugeint", "hugeint 2"):
                exported = exported.append_column(name, pa.array(NUMBERS[:1] * 4, huge.to_arrow_table()[name].type))
            return Door(
                exported,
                lambda names: (
                    huge.project(", ".join(f'"{one}"' for one in names))
                    if "hugeint" in names
                    else duckdb.from_arrow(source.select(names))
                ),
            )
        case "dask":
            kept = [one for one in OF_PANDAS.column_names if not one.startswith("dictionary_") or "_string" in one]
            parts = OF_PANDAS.select(kept).to_pandas()  # as pandas frames, whose other dictionaries are tried
            with dask.config.set({"dataframe.convert-string": False}):
                given = dd.from_pandas(parts, npartitions=2)
            return Door(pa.Table.from_pandas(parts, preserve_index=False), lambda names: given[names])
    raise AssertionError(name)


DOORS = (
    *("parquet", "ipc", "ipc stream", "delta", "iceberg", "table", "batch", "reader", "dataset", "pandas"),
    *("pandas of arrow", "polars", "lazy polars", "duckdb", "dask"),
)


@pytest.fixture(scope="module", params=DOORS)
def door(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Door:
    return made(request.param, tmp_path_factory.mktemp("door"))


def value_type(kind: pa.DataType) -> pa.DataType:
    while pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        kind = kind.value_type
    return kind


def is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_uuid(kind: pa.DataType) -> bool:
    return bool(kind == pa.uuid() or kind == pa.binary(16))


def python(value: Any) -> Any:
    return value.bytes if isinstance(value, uuid.UUID) else int(value) if isinstance(value, Decimal) else value


def ids_or_reasons(door: Door, name: str) -> tuple[list[Any] | None, list[str]]:
    """The ids that a column must give, or what the message about it must name."""
    kind = value_type(door.types[name])
    values = [python(value) for value in door.exported[name].to_pylist()]
    if pa.types.is_null(kind):
        return [], []
    if pa.types.is_integer(kind) or is_text(kind) or is_uuid(kind):
        return values, []
    if not (pa.types.is_decimal(kind) and kind.scale == 0):
        return None, [repr(name), str(door.types[name]), f'CAST("{name}" AS ']
    most = 2**63 if not door.has_statistics or min(values) < 0 else 2**64
    if min(values) >= -(2**63) and max(values) < most:
        return values, []
    return None, [repr(name), str(min(value for value in values if not -(2**63) <= value < most)), "cast"]


def read(source: Source) -> tuple[list[Any], list[Any], list[float] | None]:
    """The ids of both ends and the weights, as the result would have them."""
    rows = [read_rows(source, block) for block in plan_blocks(source, 1000)]
    ends = [
        [python(one) for own in rows for one in from_internal(getattr(own, end), source.id_type).to_pylist()]
        for end in ("source", "target")
    ]
    weights = [float(one) for own in rows if own.weight is not None for one in own.weight]
    return ends[0], ends[1], weights if source.weights is not None else None


def names_of(door: Door) -> Iterator[str]:
    return (name for name in door.types if f"{name}{SECOND}" in door.types)


def folders(place: Path) -> Iterator[Path]:
    for number in range(1_000):
        (folder := place / str(number)).mkdir()
        yield folder


def test_ids_of_every_type(door: Door, tmp_path: Path) -> None:
    wrong = []
    for name, folder in zip(names_of(door), folders(tmp_path), strict=False):
        expected, reasons = ids_or_reasons(door, name)
        found: Any
        try:
            source = door.open(folder, (name, name + SECOND))
            kind = value_type(door.types[name])
            assert pa.types.is_null(kind) or pa.types.is_decimal(kind) or is_text(kind) or source.id_type == kind
            found = read(source)
            right = found == (expected, expected, None)
        except InputError as error:
            found = str(error)
            right = expected is None and all(reason in found for reason in reasons)
        if not right:
            wrong.append((name, door.types[name], expected or reasons, found))
    assert wrong == []


def test_weights_of_every_type(door: Door, tmp_path: Path) -> None:
    wrong = []
    for name, folder in zip(names_of(door), folders(tmp_path), strict=False):
        kind, values = value_type(door.types[name]), door.exported[name].to_pylist()
        is_number = any(test(kind) for test in (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal))
        reasons = [repr(name), str(door.types[name]), f'CAST("{name}" AS DOUBLE)']
        if pa.types.is_null(kind) or name == "nan":
            reasons = [repr(name), "the weight null" if values[0] is None else "the weight nan"]
        found: Any
        try:
            found = read(door.open(folder, ("one", "two"), name))
            right = is_number and found == ([1, 2, 3, 4], [2, 3, 4, 5], [float(value) for value in values])
        except InputError as error:
            found = str(error)
            right = (not is_number or name == "nan") and all(reason in found for reason in reasons)
        if not right:
            wrong.append((name, door.types[name], found))
    assert wrong == []


@pytest.mark.parametrize("kind", ["parquet", "delta", "iceberg"])
def test_attributes_of_every_type(kind: str, tmp_path: Path) -> None:
    door, wrong = made(kind, tmp_path), []
    publishable = (
        *(is_text, pa.types.is_integer, pa.types.is_float32, pa.types.is_float64, pa.types.is_boolean),
        *(pa.types.is_date, pa.types.is_timestamp, pa.types.is_decimal),
    )
    for name in names_of(door):
        plain, values = value_type(door.types[name]), door.exported[name].to_pylist()
        found: Any
        try:
            source = open_attributes(str(door.make([])), pa.int64(), id_column="one", columns=[name])
            (block,) = plan_attribute_blocks(source, 1000)
            found = read_attributes(source, block).values[name].to_pylist()
            right = pa.types.is_null(plain) or any(test(plain) for test in publishable)
            right = right and (found == values or name.startswith("nan"))
        except InputError as error:
            found = str(error)
            right = not any(test(plain) for test in publishable)
            right = right and all(one in found for one in (repr(name), str(plain), f'CAST("{name}" AS VARCHAR)'))
        if not right:
            wrong.append((name, plain, found))
    assert wrong == []


def test_ids_of_attributes_of_every_type(tmp_path: Path) -> None:
    door, wrong = made("parquet", tmp_path), []
    for name, folder in zip(names_of(door), folders(tmp_path), strict=False):
        expected, reasons = ids_or_reasons(door, name)
        found: Any
        try:
            id_type = pa.int64() if expected is None else door.open(folder, (name, name + SECOND)).id_type
            source = open_attributes(str(door.make([])), id_type, id_column=name, columns=["one"])
            (block,) = plan_attribute_blocks(source, 1000)
            ids = read_attributes(source, block).ids
            own = ids.to_numpy() if pa.types.is_integer(ids.type) else ids
            found = [python(one) for one in from_internal(own, id_type).to_pylist()]
            right = expected is not None and found == sorted(expected)
        except InputError as error:
            found = str(error)
            is_null = pa.types.is_null(door.types[name])
            right = expected is None and all(one in found for one in (repr(name), str(door.types[name])))
            right = right or (is_null and repr(name) in found)
        if not right:
            wrong.append((name, door.types[name], expected or reasons, found))
    assert wrong == []


BASES: dict[str, list[Any]] = {
    "int32": [1, 2, 3],
    "int64": [1, 2, 3],
    "uint64": [2**63 + 1, 2**63 + 2, 3],
    "string": ["v1", "v2", "v3"],
    "uuid": [key(n).bytes for n in (1, 2, 3)],
    "binary16": [key(n).bytes for n in (1, 2, 3)],
}
"""Type of the ids of a result → ids of a triangle."""


def triangle(name: str, extra: tuple[int, ...] = ()) -> pa.Table:
    """A triangle and, of its vertices, more pairs of equal ids."""
    kind = COLUMNS[name].type
    ids = pa.array(BASES[name], kind)
    return pa.table({"src": ids.take(pa.array([0, 1, 0, *extra])), "dst": ids.take(pa.array([1, 2, 2, *extra]))})


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Result]:
    place = tmp_path_factory.mktemp("bases")
    return {name: mine(triangle(name), place / name, **QUIET) for name in BASES}


def kind_of(kind: pa.DataType) -> str:
    """Ids of one kind can be compared."""
    if pa.types.is_integer(kind) or (pa.types.is_decimal(kind) and kind.scale == 0):
        return "integers"
    return "text" if is_text(kind) else "UUIDs" if is_uuid(kind) else "other"


def test_batches_of_every_type(bases: dict[str, Result], tmp_path: Path) -> None:
    door, wrong = Door(WIDE, WIDE.select), []
    for (base_name, base), name in product(bases.items(), names_of(door)):
        own, kind = COLUMNS[base_name].type, value_type(door.types[name])
        if base_name != "int64" and (kind_of(kind) != kind_of(own) or name.startswith(("runs", "dictionary_"))):
            continue  # int64 stands for all types
        expected, reasons = ids_or_reasons(door, name)
        if expected is not None and kind_of(kind) != kind_of(own):
            expected, reasons = None, ["insert", base_name]
        if expected is not None and kind_of(own) == "integers":
            least, most = (0, 2**64) if own == pa.uint64() else (-(2 ** (own.bit_width - 1)), 2 ** (own.bit_width - 1))
            if any(not least <= value < most for value in expected):
                expected, reasons = None, [repr("src"), base_name, "cast"]
        table = door.make([name, name + SECOND]).rename_columns(["src", "dst"])
        batch = BatchInput(base, FrameInput(table), None)
        found: Any
        try:
            source = batch.open(InputSettings(path="batch"), Folder(str(tmp_path)), compute)
            assert batch.batch is not None
            found = [python(one) for one in from_internal(batch.batch.inserted.graph.ids, source.id_type).to_pylist()]
            right = expected is not None and found == sorted(set(expected)) and source.id_type == own
        except InputError as error:
            found = str(error)
            right = pa.types.is_null(kind) or (
                expected is None
                and all((one if one == str(door.types[name]) else one.replace(name, "src")) in found for one in reasons)
            )
        if not right:
            wrong.append((base_name, name, door.types[name], expected or reasons, found))
    assert wrong == []


@pytest.mark.parametrize(
    ("base", "batch"),
    [
        ("int64", "int32"),
        ("int32", "int64"),
        ("uint64", "int64"),
        ("uuid", "uuid"),
        ("uuid", "binary16"),
        ("binary16", "uuid"),
        ("string", "dictionary_string_view"),
    ],
)
def test_an_update_keeps_type_and_tracks(bases: dict[str, Result], tmp_path: Path, base: str, batch: str) -> None:
    table = pa.table({"src": COLUMNS[batch].slice(0, 1), "dst": COLUMNS[batch].slice(1, 1)})
    new = update(bases[base], tmp_path / "out", insert=table, **QUIET)
    assert new.manifest.input.id_type == bases[base].manifest.input.id_type
    for own, other in ((new.vertices, bases[base].vertices), (new.edges, bases[base].edges)):
        assert own.schema == other.schema
    assert logical_types(new) == logical_types(bases[base])
    tracks = [one.dn_graphs.to_table()["track"].to_pylist() for one in (bases[base], new)]
    assert tracks[0] == tracks[1] != []


def logical_types(result: Result) -> list[str]:
    """The logical type of the ids in each file of vertices."""
    found = [fragment.metadata.schema.column(0).logical_type.type for fragment in result.vertices.get_fragments()]
    return sorted(set(found))


def test_a_batch_of_text_is_read_as_the_result_was(tmp_path: Path) -> None:
    """Digits are text in a graph with ids of text, and a file with a line of names alone has no rows."""
    base = mine(pa.table({"src": ["007", "a"], "dst": ["a", "8"]}), tmp_path / "base", **QUIET)
    for number, (text, edges) in enumerate((("src,dst\n007,8\n", 3), ("src,dst\n", 2))):
        (tmp_path / f"{number}.csv").write_text(text)
        new = update(base, tmp_path / f"out{number}", insert=tmp_path / f"{number}.csv", **QUIET)
        assert new.manifest.input.id_type == "string"
        assert new.edges.count_rows() == edges


@pytest.mark.parametrize(("first", "second"), [("uuid", "binary16"), ("binary16", "uuid")])
def test_a_night_of_raw_bytes_keeps_the_tracks_of_uuids(tmp_path: Path, first: str, second: str) -> None:
    place = tmp_path / "night-{date}"
    nights = [
        mine(triangle(name, (0,) * number), place, date=f"2026-11-0{number + 1}", **QUIET)
        for number, name in enumerate((first, second))
    ]
    tracks = [one.dn_graphs.to_table()["track"].to_pylist() for one in nights]
    assert tracks[0] == tracks[1] != []
    assert [one.manifest.input.id_type for one in nights] == [
        {"uuid": "uuid", "binary16": "fixed_size_binary[16]"}[name] for name in (first, second)
    ]


EMPTY = [pa.float64(), pa.string(), pa.bool_(), pa.null(), pa.list_(pa.int64()), pa.timestamp("s"), pa.uuid()]


@pytest.mark.parametrize("form", ["parquet", "arrow", "arrows"])
@pytest.mark.parametrize("ids", ["int64", "string", "uuid"])
def test_a_file_without_rows_may_have_any_types(tmp_path: Path, form: str, ids: str) -> None:
    good = triangle(ids).append_column("weight", pa.array([1.0, 2, 3]))
    good = good.append_column("kind", pa.array(["a", "a", "b"]))
    for number, kind in enumerate([*EMPTY, None]):
        empty = good if kind is None else pa.table({name: pa.array([], kind) for name in good.column_names})
        path = tmp_path / f"part-{number}.{form}"
        pq.write_table(empty, path) if form == "parquet" else ipc(path, empty, form == "arrows")
    how = Form(weights=Weights("weight", "max"), where="kind = 'a'")
    source = open_source(str(tmp_path), form=how)
    assert source.id_type == COLUMNS[ids].type
    assert len(read(source)[0]) == 2


def test_attributes_without_rows_may_have_any_types(tmp_path: Path) -> None:
    for number, kind in enumerate(EMPTY):
        pq.write_table(pa.table({"id": pa.array([], kind), "name": pa.array([], kind)}), tmp_path / f"{number}.parquet")
    pq.write_table(pa.table({"id": [1], "name": ["a"]}), tmp_path / "full.parquet")
    source = open_attributes(str(tmp_path), pa.int64())
    assert source.schema == pa.schema([("name", pa.string())])
    (block,) = plan_attribute_blocks(source, 1000)
    assert read_attributes(source, block).values["name"].to_pylist() == ["a"]


@pytest.mark.parametrize(
    "make", [lambda: pd.DataFrame({"src": [], "dst": []}), lambda: pl.DataFrame({"src": [], "dst": []})]
)
def test_a_frame_without_rows(tmp_path: Path, make: Callable[[], Any]) -> None:
    how = InputSettings(path="frame")
    source = FrameInput(make()).open(how, Folder(str(tmp_path)), compute)
    assert read(source) == ([], [], None)


def test_nulls_within_dictionaries_and_runs_are_nulls(tmp_path: Path) -> None:
    values = pa.array([7, None, 9])
    coded = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), values)
    ends = pa.RunEndEncodedArray.from_arrays(pa.array([1, 2, 3], pa.int32()), values)
    for number, column in enumerate((coded, ends)):
        assert column.null_count == 0
        path = ipc(tmp_path / f"{number}.arrow", pa.table({"src": column, "dst": [1, 2, 3]}))
        source = open_source(str(path))
        (rows,) = (read_rows(source, block) for block in plan_blocks(source, 1000))
        assert (rows.source.tolist(), rows.left_out.source_nulls) == ([7, 9], 1)


def test_polars_categories_of_a_parquet_file(tmp_path: Path) -> None:
    frame = pl.DataFrame({"src": ["a", "b"], "dst": ["b", "a"]})
    for number, kind in enumerate((pl.Categorical(), pl.Enum(["a", "b"]))):
        frame.with_columns(pl.all().cast(kind)).write_parquet(tmp_path / f"{number}.parquet")
        assert read(open_source(str(tmp_path / f"{number}.parquet"))) == (["a", "b"], ["b", "a"], None)


def test_a_condition_on_views_runs_and_decimals(tmp_path: Path) -> None:
    columns = ("string_view", "dictionary_string_view", "runs_string_view", "decimal64", "runs_of_dictionary")
    path = ipc(tmp_path / "a.arrow", WIDE.select(["one", "two", *columns]))
    for name in columns:
        value = "3" if name == "decimal64" else "'v3'"
        assert read(open_source(str(path), "one", "two", form=Form(where=f"{name} = {value}")))[0] == [1, 4]


def test_cells_of_csv_of_every_type(tmp_path: Path) -> None:
    """CSV has text alone: ids are what is written there, or the message names the column."""
    wrong = []
    for name, column in COLUMNS.items():
        if name.startswith(("runs_", "binary4", "binary16", "dictionary_binary16")):
            continue
        path = tmp_path / f"{name}.csv"
        try:
            pa.csv.write_csv(pa.table({"src": column, "dst": column}), path)
        except pa.ArrowInvalid:  # a type that no CSV has
            continue
        with path.open() as lines:
            cells = [row["src"] for row in csv.DictReader(lines)]
        found: Any
        try:
            found = read(open_source(str(path)))[0]
            right = [str(one) for one in found] == [cell for cell in cells if cell]
        except InputError as error:
            found = str(error)
            right = "'src'" in found and not pa.types.is_integer(column.type) and not is_text(column.type)
        if not right:
            wrong.append((name, cells, found))
    assert wrong == []


@pytest.mark.parametrize(
    ("name", "form"),
    [
        *(
            ("dictionary_string_view", "arrow"),
            ("runs_string", "arrow"),
            ("decimal128", "arrow"),
            ("decimal32", "arrow"),
        ),
        *(("large_decimal", "parquet"), ("uuid", "parquet"), ("dictionary_binary16", "parquet"), ("uint8", "parquet")),
    ],
)
def test_results_are_verified_with_their_input(tmp_path: Path, name: str, form: str) -> None:
    """A whole run, of a triangle."""
    column = COLUMNS[name]
    table = pa.table({"src": column.slice(0, 3), "dst": column.slice(1, 3)})
    path = tmp_path / f"rows.{form}"
    pq.write_table(table, path) if form == "parquet" else ipc(path, table)
    result = mine(path, tmp_path / "out", **QUIET)
    assert [one for one in verify(result.path, path).checks if not one[1]] == []
    assert [python(one) for one in result.vertices.to_table()["id"].to_pylist()] == sorted(
        map(python, column.to_pylist()[:3])
    )
    assert result.edges.to_table()["lambda"].to_pylist() == [1, 1, 1]
