"""Reading files of each format: the same rows as from Parquet, wherever a file is cut, and one clear message for each
file that cannot be read.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgemill.pipeline.settings.sources import load_settings
from edgemill.tasks.errors import InputAbsent, InputError, UsageError
from edgemill.tasks.estimate.sampling import take_sample
from edgemill.tasks.ids.id_types import from_internal
from edgemill.tasks.ingest.reading import count_rows, read_rows
from edgemill.tasks.inputs import head as heads
from edgemill.tasks.inputs.formats import lines
from edgemill.tasks.inputs.formats.form import Form
from edgemill.tasks.inputs.formats.input_format import every_format, format_named_by, format_of_bytes
from edgemill.tasks.inputs.formats.unread import why_not_read
from edgemill.tasks.inputs.open_source import open_source
from edgemill.tasks.inputs.sources import Source, plan_blocks
from files_of_rows import FILES, SNAP

TABLES = {
    "int64": pa.table({"src": [1, 2**53 + 1, -5, 7], "dst": [2, 3, 2**62, 7], "weight": [0.5, 1.5, 0.25, 2.0]}),
    "uint64": pa.table(
        {"src": pa.array([1, 2**63, 2**64 - 1], "uint64"), "dst": pa.array([2, 3, 0], "uint64"), "weight": [0.5, 1, 2]}
    ),
    "text": pa.table(
        {"src": ["a", "é ü", 'q"u', "x,y;z"], "dst": ["b", "#c", "d\\e", "it's"], "weight": [0.5, 1, 2, 3]}
    ),
}


def rows(source: Source, rows_per_block: int = 2) -> list[tuple[Any, Any]]:
    """Ids of all rows, in order."""
    found = [read_rows(source, block) for block in plan_blocks(source, rows_per_block)]
    return [
        pair
        for own in found
        for pair in zip(
            from_internal(own.source, source.id_type).to_pylist(),
            from_internal(own.target, source.id_type).to_pylist(),
            strict=True,
        )
    ]


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("name", FILES)
def test_the_same_rows_as_from_parquet(tmp_path: Path, name: str, kind: str) -> None:
    table, path = TABLES[kind], tmp_path / name
    FILES[name](table, path)
    expected = list(zip(table["src"].to_pylist(), table["dst"].to_pylist(), strict=True))
    source = open_source(str(path))
    assert (rows(source), source.id_type, source.notes) == (expected, table.schema.field("src").type, ())
    assert count_rows(source) == len(table)
    sample = take_sample(source, 1000)
    assert (sample.rows, sample.rows_read, sample.left_out) == (len(table), len(table), 0)
    wanted = open_source(str(path), form=Form(where="weight > 0.5"))
    assert rows(wanted) == [
        row for row, weight in zip(expected, table["weight"].to_pylist(), strict=True) if weight > 0.5
    ]


@pytest.mark.parametrize("name", SNAP)
def test_files_without_names_of_columns(tmp_path: Path, name: str) -> None:
    SNAP[name](TABLES["int64"].select(["src", "dst"]), tmp_path / name)
    source = open_source(str(tmp_path))
    assert rows(source) == [(1, 2), (2**53 + 1, 3), (-5, 2**62), (7, 7)]
    assert (source.source_column, source.target_column) == ("src", "dst")
    (note,) = source.notes
    assert re.match(f"{tmp_path / name} .*no names of columns.*: .* src, dst$", note)


def test_a_third_column_without_a_name(tmp_path: Path) -> None:
    (tmp_path / "temporal.txt").write_text("1 2 100\n2 3 200\n")
    assert rows(open_source(str(tmp_path), form=Form(where="column_3 > 100"))) == [(2, 3)]


@given(
    content=st.lists(st.sampled_from([b"1,2", b"33,44", b"", b"# c", b"5,6\r"]), max_size=12).map(b"\n".join),
    cuts=st.lists(st.integers(0, 60), max_size=4),
    chunk=st.integers(1, 9),
    ended=st.booleans(),
)
@settings(max_examples=300)
def test_each_line_is_in_one_range(content: bytes, cuts: list[int], chunk: int, ended: bool) -> None:
    content += b"\n" * ended
    ends = sorted({0, len(content), *(cut for cut in cuts if cut < len(content))})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "CHUNK_BYTES", chunk)
        runs = [
            b"".join(lines.chunks_of_lines(io.BytesIO(content), None, start, stop)) for start, stop in pairwise(ends)
        ]
    assert b"".join(runs) == content
    at = 0
    for run in runs:  # each starts with a whole line
        assert not run or not at or content[:at].endswith(b"\n")
        at += len(run)


@pytest.mark.parametrize("name", ["rows.csv", "windows.csv", "unended.csv", "rows.tsv", "rows.jsonl"])
def test_a_file_of_text_is_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(heads, "SPLIT_BYTES", 64)
    table = pa.table({"src": list(range(100)), "dst": list(range(1, 101))})
    FILES[name](table, tmp_path / name)
    source = open_source(str(tmp_path))
    assert len(source.files[0].row_groups) > 8
    assert len(plan_blocks(source, 10)) > 4
    assert rows(source, 10) == [(at, at + 1) for at in range(100)]


def test_errors_name_the_bad_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number counts all lines of the file, in all ranges, with comments and empty lines."""
    monkeypatch.setattr(heads, "SPLIT_BYTES", 100)
    monkeypatch.setattr("edgemill.tasks.inputs.formats.text_heads.HEAD_BYTES", 60)
    good = [f"{at},{at + 1}" for at in range(40)]
    for line, why in (
        ("x,1", "column 'src' has 'x', which is not how an integer of the type int64 is written"),
        (
            "1,99999999999999999999",
            "column 'dst' has '99999999999999999999', which is not how an integer of the type int64",
        ),
        ("1", "has 1 fields, and the other lines have 2: '1'"),
    ):
        text = ["# c", "src,dst", "", *good, "# late", line, *good]
        (tmp_path / "rows.csv").write_text("\n".join(text))
        source = open_source(str(tmp_path), form=Form(id_type="int64"))
        with pytest.raises(InputError, match=re.escape(f"{tmp_path}/rows.csv: line 45") + ".*" + re.escape(why)):
            rows(source, 1000)
    bad: list[tuple[str, str]] = [
        ('{"src": "x", "dst": 1}', "column 'src' has \"x\", and other ids are int64"),
        ('{"src": 1 "dst": 1}', "is not JSON: "),
        ('{"src": 1, "dst": ' + "[" * 20_000 + "]" * 20_000 + "}", "is not JSON: "),
        ("[1, 2]", "is not a JSON object"),
    ]
    (tmp_path / "rows.csv").unlink()
    for line, why in bad:
        good_rows = [json.dumps({"src": at, "dst": at + 1}) for at in range(40)]
        (tmp_path / "rows.jsonl").write_text("\n".join([*good_rows, line, *good_rows]))
        with pytest.raises(InputError, match=re.escape(f"{tmp_path}/rows.jsonl: line 41") + ".*" + re.escape(why)):
            rows(open_source(str(tmp_path)), 1000)


def text(*files: tuple[str, str]) -> Callable[[Path], object]:
    return lambda folder: [(folder / name).write_text(content) for name, content in files]


def raw(name: str, content: bytes) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes(content)


REFUSED: dict[str, tuple[Callable[[Path], object], str]] = {
    "several formats": (
        text(("a.csv", "1,2\n"), ("b.jsonl", "{}\n")),
        r"has files of several formats: 1 csv \(a\.csv\) and 1 jsonl \(b\.jsonl\); say which to .* --input-format",
    ),
    "Excel": (
        raw("a.xlsx", b"PK"),
        r"is xlsx, which edgemill does not read; .* COPY \(SELECT src, dst FROM read_xlsx\('.*a\.xlsx'\)",
    ),
    "Avro": (raw("a.avro", b"Obj"), r"DuckDB: COPY \(.*read_avro\('.*a\.avro'\)\) TO 'edges\.parquet'"),
    "zip": (raw("a.csv.zip", b"PK"), "has a compression that edgemill does not read: unpack it"),
    "a JSON array": (
        text(("a.json", '[{"src": 1}]')),
        r"is one JSON array, not JSON lines: .*read_json\('.*a\.json'\)",
    ),
    "empty": (raw("a.csv", b""), r"a\.csv is empty \(0 bytes\)"),
    "UTF-16": (raw("a.csv", "1,2\n".encode("utf-16")), "is UTF-16 text: write it as UTF-8"),
    "Latin-1": (raw("a.csv", b"src,dst\n\xe9,b\n"), "is not UTF-8 text"),
    "bytes": (raw("a.csv", b"\0\1\2\3"), "is not text"),
    "no gzip": (raw("a.csv.gz", b"1,2\n"), r"a\.csv\.gz cannot be read as csv"),
    "no Arrow": (raw("a.arrow", b"1,2\n"), r"a\.arrow cannot be read as Arrow IPC"),
    "old Feather": (raw("a.feather", b"FEA1...."), "is Feather version 1, which edgemill does not read"),
    "fractions": (text(("a.jsonl", '{"src": 1.5, "dst": 2}\n')), "column 'src' is double, but ids are"),
    "one column": (text(("a.csv", "src\n1\n")), "space divides fields"),
    "a name twice": (text(("a.csv", "src,src\n1,2\n")), "has 2 columns named 'src'"),
    "other types": (
        text(("a.jsonl", '{"src": 1, "dst": 2}\n'), ("b.jsonl", '{"src": "x", "dst": "y"}\n')),
        r"b\.jsonl: column 'src' has text in its first rows, and column 'src' of .*a\.jsonl has whole numbers",
    ),
    "another column": (
        text(("a.csv", "src,dst\n1,2\n"), ("b.csv", "src,to\n1,2\n")),
        r"b\.csv has no column 'dst'; it has",
    ),
    "another width": (text(("a.txt", "1 2\n"), ("b.txt", "1 2 3\n")), r"b\.txt has 3 columns in its first line"),
}


@pytest.mark.parametrize("fault", REFUSED)
def test_files_that_are_refused(tmp_path: Path, fault: str) -> None:
    write, why = REFUSED[fault]
    write(tmp_path)
    with pytest.raises(InputError, match=why):
        rows(open_source(str(tmp_path)))


def test_a_folder_with_notes_beside_the_edges(tmp_path: Path) -> None:
    pq.write_table(TABLES["int64"], tmp_path / "a.parquet")
    text(("README.txt", "notes"), ("_metadata.json", "{}"), ("schema.json", "{}"))(tmp_path)
    assert open_source(str(tmp_path)).format == "parquet"


def test_the_setting_of_the_format(tmp_path: Path) -> None:
    FILES["rows.csv"](TABLES["int64"], tmp_path / "part-00000")
    with pytest.raises(InputError, match=r"part-00000.*--input-format"):
        open_source(str(tmp_path / "part-00000"))
    with pytest.raises(InputAbsent, match="Arrow IPC"):
        open_source(str(tmp_path))
    for path in (tmp_path, tmp_path / "part-00000", tmp_path / "part-*"):
        assert len(rows(open_source(str(path), form=Form(format="csv")))) == 4
    FILES["rows.jsonl"](TABLES["int64"], tmp_path / "b.jsonl")
    assert open_source(str(tmp_path), form=Form(format="jsonl")).format == "jsonl"
    pq.write_table(TABLES["int64"], tmp_path / "unnamed")
    assert open_source(str(tmp_path / "unnamed")).format == "parquet"


@pytest.mark.parametrize(
    ("form", "content", "expected"),
    [
        (Form(id_type="string"), "src,dst\n007,7\n", [("007", "7")]),
        (Form(), "src,dst\n007,042\n", [("007", "042")]),  # as a number it would lose its zeros
        (Form(id_type="uint64"), "src,dst\n8,7\n", [(8, 7)]),
        (Form(header=False), "a,b\nc,d\n", [("a", "b"), ("c", "d")]),
        (Form(header=True, delimiter=":"), "1:2\n3:4\n", [(3, 4)]),
        (Form(comment=""), "#a,b\n#c,d\n", [("#c", "d")]),
        (Form(comment="//"), "// x\nsrc,dst\n1,2\n// y\n", [(1, 2)]),
        (Form(), 'src,dst\n"",b\n"a,b",c\n', [("", "b"), ("a,b", "c")]),
    ],
)
def test_the_settings_of_text(tmp_path: Path, form: Form, content: str, expected: list[Any]) -> None:
    (tmp_path / "a.csv").write_text(content)
    source, target = (
        ("1", "2") if form.header and form.delimiter else ("#a", "b") if form.comment == "" else (None, None)
    )
    assert rows(open_source(str(tmp_path), source, target, form=form)) == expected


def test_empty_fields_are_null(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('src,dst\na,\n,b\nNA,"null"\n')
    source = open_source(str(tmp_path))
    found = [read_rows(source, block).left_out for block in plan_blocks(source, 10)]
    assert rows(source) == [("NA", "null")]
    assert [(own.nulls, own.source_nulls, own.target_nulls) for own in found] == [(2, 1, 1)]


def test_settings_of_another_format(tmp_path: Path) -> None:
    pq.write_table(TABLES["int64"], tmp_path / "a.parquet")
    for form, name in (
        (Form(header=True), "header"),
        (Form(delimiter=";"), "delimiter"),
        (Form(id_type="string"), "id_type"),
    ):
        with pytest.raises(UsageError, match=rf"input\.{name}.*CSV"):
            open_source(str(tmp_path), form=form)


def test_the_advice_to_convert_a_graph_works() -> None:
    assert "networkx.read_graphml('a.graphml')" in str(why_not_read("a.graphml"))
    assert why_not_read("a.unknown") is None


def test_formats_declare_what_tells_them_apart(tmp_path: Path) -> None:
    """No two have a suffix or a first byte in common, and each is found by both. Unknown names are refused."""
    formats = every_format()
    suffixes = [suffix for own in formats.values() for suffix in (*own.suffixes, *own.other_suffixes)]
    assert len(set(suffixes)) == len(suffixes) and all(own.suffixes and own.title for own in formats.values())
    for name, own in formats.items():
        assert {format_named_by(f"A{suffix.upper()}") for suffix in own.suffixes} == {name}
        assert {format_named_by(f"a{suffix}", of_data_alone=True) for suffix in own.other_suffixes} <= {None}
        assert {format_of_bytes(mark + b"\0\1") for mark in own.marks} <= {name}
    assert format_of_bytes(b"par1,2") is None and format_of_bytes(b"%%MATRIXmarket") == "mtx"
    with pytest.raises(UsageError, match=r"input\.format.*'xls'"):
        load_settings(None, {"input.path": "a", "output.path": "b", "input.format": "xls"})
