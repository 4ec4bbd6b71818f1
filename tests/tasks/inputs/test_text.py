"""Text files as people write them: ids, comments, blanks and line ends. The same rows give the same ids in any order
and any files, and wherever the inspected head, a part or a chunk ends; or the run is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgemill.tasks.errors import InputError, UsageError
from edgemill.tasks.ids.id_types import from_internal
from edgemill.tasks.ingest.left_out import NONE, LeftOut
from edgemill.tasks.ingest.reading import count_rows, read_rows
from edgemill.tasks.inputs import head as heads
from edgemill.tasks.inputs.formats import lines, text_heads
from edgemill.tasks.inputs.formats.form import Form, Weights
from edgemill.tasks.inputs.open_source import open_source
from edgemill.tasks.inputs.sources import Source, plan_blocks, read_with_types

CSV = Form(header=True)
SMALL = {"head": 48, "part": 16, "chunk": 8}
"""Bytes of the inspected head, of a part of a file, and of a chunk."""


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Heads, parts and chunks of a few bytes."""
    _set_sizes(monkeypatch, **SMALL)


def _set_sizes(patch: pytest.MonkeyPatch, head: int, part: int, chunk: int) -> None:
    patch.setattr(text_heads, "HEAD_BYTES", head)
    patch.setattr(heads, "SPLIT_BYTES", part)
    patch.setattr(lines, "CHUNK_BYTES", chunk)


@dataclass(frozen=True)
class Read:
    """What was read."""

    rows: list[tuple[Any, Any]]
    id_type: pa.DataType
    notes: tuple[str, ...]
    left_out: LeftOut
    source: Source


def read(path: Path, form: Form = CSV, ends: tuple[str | None, str | None] = (None, None)) -> Read:
    """All rows, as a run reads them."""

    def rows_of(source: Source) -> Read:
        found = [read_rows(source, block) for block in plan_blocks(source, 2)]
        columns = [
            [id for own in found for id in from_internal(getattr(own, end), source.id_type).to_pylist()]
            for end in ("source", "target")
        ]
        left_out = sum((own.left_out for own in found), NONE)
        return Read(list(zip(*columns, strict=True)), source.id_type, source.notes, left_out, source)

    return read_with_types(open_source(str(path), *ends, form=form), rows_of)


def write(folder: Path, content: str | bytes, name: str = "a.csv") -> Path:
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder / name


OTHER = [
    *(
        "007",
        "00",
        "0x7",
        "0X7",
        "+7",
        "-0",
        "-07",
        " 7",
        "7 ",
        "\t7",
        "７",
        "\u00a07",
        "7.",
        "7.0",
        "1e3",
        ".5",
        "1_000",
    ),
    *("1-2", "-", "a", "NA", "true", "2026-01-01", "18446744073709551616", "-9223372036854775809", "7\u2028"),
]
"""Texts that are no integers as these print."""


@pytest.mark.parametrize("place", ["head", "later", "second file", "first file"])
@pytest.mark.parametrize("value", OTHER)
@pytest.mark.usefixtures("small")
def test_one_id_that_is_not_written_as_an_integer_makes_all_ids_text(tmp_path: Path, value: str, place: str) -> None:
    good = [(str(at), str(at + 1)) for at in range(10, 30)]
    at = 0 if place == "head" else len(good)
    rows = [*good[:at], ("8", value), *good[at:]]
    files = {"second file": [good, [("8", value)]], "first file": [[("8", value)], good]}.get(place, [rows])
    for number, own in enumerate(files):
        write(tmp_path, "src,dst\n" + "".join(f"{a},{b}\n" for a, b in own), f"{number}.csv")
    found = read(tmp_path)
    assert (found.id_type, sorted(found.rows)) == (pa.string(), sorted(rows))
    number, line = {"head": (0, 2), "later": (0, 22), "second file": (1, 2), "first file": (0, 2)}[place]
    (note,) = found.notes
    assert all(fact in note for fact in (f"{tmp_path}/{number}.csv", str(line), f"{value!r}"))
    assert ("input.strip" in note) == (value.strip() != value)
    with pytest.raises(InputError, match=re.escape(f"{number}.csv")):
        read(tmp_path, replace(CSV, id_type="int64"))


INTEGERS: Mapping[str, tuple[Sequence[str], pa.DataType]] = {
    "signed": (["0", "-1", "7", str(2**63 - 1), str(-(2**63))], pa.int64()),
    "unsigned": (["0", "1", str(2**63), str(2**64 - 1)], pa.uint64()),
    "above and below": (["-1", "1", str(2**63)], pa.string()),
    "in quotes": (['"7"', "8"], pa.int64()),
    "a leading zero in quotes": (["7", '"07"'], pa.string()),
    "empty in quotes": (["7", '""'], pa.string()),
    "ending in zero": (["0", "10", "100", "200"], pa.int64()),
}


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.usefixtures("small")
def test_the_type_of_integers_does_not_depend_on_their_order(tmp_path: Path, name: str) -> None:
    texts, kind = INTEGERS[name]
    values = [text.strip('"') if kind == pa.string() else int(text.strip('"')) for text in texts]
    for order in (1, -1):
        write(tmp_path, "src,dst\n" + "".join(f"{text},{text}\n" for text in texts[::order] for _ in range(4)))
        found = read(tmp_path)
        assert (found.id_type, set(found.rows)) == (kind, {(value, value) for value in values})


WRITTEN = ["7", "8", "0", "-3", "12", "007", "0x7", " 7", "7 ", "+7", "é", "1.5", str(2**63), "x", "70"]


@given(
    rows=st.lists(st.tuples(*[st.sampled_from(WRITTEN) | st.sampled_from(WRITTEN[:5])] * 2), min_size=1, max_size=12),
    seed=st.randoms(use_true_random=False),
    files=st.integers(1, 3),
    sizes=st.fixed_dictionaries(
        {"head": st.sampled_from([30, 60, 2**20]), "part": st.integers(9, 40), "chunk": st.integers(1, 40)}
    ),
)
@settings(max_examples=60)
def test_rows_in_any_order_and_any_files(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[str, str]],
    seed: Random,
    files: int,
    sizes: dict[str, int],
) -> None:
    shuffled, folder = seed.sample(rows, len(rows)), tmp_path_factory.mktemp("rows")
    for number in range(files):
        own = "".join(f"{a},{b}\n" for a, b in shuffled[number::files])
        write(folder, f"src,dst\n{own}", f"{seed.randint(0, 9)}-{number}.csv")
    kind, parse = _model([value for row in rows for value in row])
    with pytest.MonkeyPatch.context() as patch:
        _set_sizes(patch, **sizes)
        found = read(folder)
        counted = count_rows(found.source)
    assert (found.id_type, sorted(found.rows)) == (kind, sorted((parse(a), parse(b)) for a, b in rows))
    assert counted == len(rows)


def _model(values: Sequence[str]) -> tuple[pa.DataType, Any]:
    if not all(re.fullmatch("0|-?[1-9][0-9]*", value) for value in values):
        return pa.string(), str
    numbers = [int(value) for value in values]
    if max(numbers) < 2**63:
        return pa.int64(), int
    return (pa.uint64(), int) if min(numbers) >= 0 else (pa.string(), str)


@pytest.mark.parametrize("value", ['"7"', "7.0", "1e3", "-0", "true", '"a"', "[1]", str(2**64), str(-(2**63) - 1)])
@pytest.mark.usefixtures("small")
def test_ids_of_json_have_one_type(tmp_path: Path, value: str) -> None:
    """Values of JSON have types, so that another one is refused in any order."""
    good = ['{"src": 1, "dst": 2}'] * 9
    for at in (0, 9):
        rows = [*good[:at], f'{{"src": 8, "dst": {value}}}', *good[at:]]
        write(tmp_path, "\n".join(rows), "a.jsonl")
        with pytest.raises(InputError, match=r"a\.jsonl: (line|column)"):
            read(tmp_path, Form())
    write(tmp_path, '{"src": "a", "dst": 1}\n' + '{"src": "a", "dst": "b"}\n', "a.jsonl")


@pytest.mark.usefixtures("small")
def test_large_ids_of_json_in_any_order(tmp_path: Path) -> None:
    rows = [f'{{"src": {value}, "dst": 2}}' for value in (1, 2, 2**64 - 1)]
    for order in (1, -1):
        write(tmp_path, "\n".join(rows[::order]), "a.jsonl")
        found = read(tmp_path, Form())
        assert (found.id_type, found.rows) == (pa.uint64(), [(1, 2), (2, 2), (2**64 - 1, 2)][::order])
        write(tmp_path, "\n".join([*rows, '{"src": -1, "dst": 2}'][::order]), "a.jsonl")
        with pytest.raises(InputError, match=r"a\.jsonl: (line|column)"):
            read(tmp_path, Form())


CONDITIONS: Mapping[str, tuple[Sequence[str], str, list[tuple[int, int]] | str]] = {
    "a fraction among integers": (["1", "2", "1.5"], "w > 1.2", [(1, 2), (2, 2)]),
    "an exponent among integers": (["1", "2", "1e2"], "w > 1", [(1, 2), (2, 2)]),
    "blanks around integers": (["1", " 2", "3 "], "w > 1", [(1, 2), (2, 2)]),
    "a text among integers": (["1", "2", "x"], "w > 1", "'w'|w > 1"),
    "a leading zero among integers": (["1", "2", "002"], "w > 1", "'w'|w > 1"),
    "another word among booleans": (["true", "false", "maybe"], "w = true", "'w'|w = true"),
}


@pytest.mark.parametrize("name", CONDITIONS)
@pytest.mark.usefixtures("small")
def test_a_column_of_a_condition_is_read_in_any_order(tmp_path: Path, name: str) -> None:
    """A value of another type gives the same rows, or an error in any order: of the condition, or of the line."""
    values, where, expected = CONDITIONS[name]
    rows = [f"{at},2,{value}\n" for at, value in enumerate(values)]
    for order in (1, -1):
        write(tmp_path, "src,dst,w\n" + "".join(rows[::order]))
        if isinstance(expected, str):
            with pytest.raises((InputError, UsageError), match=expected):
                read(tmp_path, replace(CSV, where=where))
        else:
            assert sorted(read(tmp_path, replace(CSV, where=where)).rows) == expected


@pytest.mark.usefixtures("small")
def test_a_condition_on_ids_that_become_text(tmp_path: Path) -> None:
    for rows in (["1,2", "7,8", "9,3", "007,9"], ["007,9", "9,3", "1,2", "7,8"]):
        write(tmp_path, "src,dst\n" + "\n".join(rows) + "\n")
        assert read(tmp_path, replace(CSV, where="src = '007'")).rows == [("007", "9")]
        with pytest.raises(UsageError, match=r"src.*5"):
            read(tmp_path, replace(CSV, where="src > 5"))


@pytest.mark.usefixtures("small")
def test_prefixes_and_weights_beside_ids_that_become_text(tmp_path: Path) -> None:
    write(tmp_path, "src,dst,w\n" + "1,2,1\n" * 5 + "007,2,0.5\n1,3, 2\n")
    form = replace(CSV, bipartite="prefix", weights=Weights("w"))
    assert read(tmp_path, form).rows[-2:] == [("src:007", "dst:2"), ("src:1", "dst:3")]
    write(tmp_path, "src,dst,w\n" + "1,2,1\n" * 9 + "7,2,x\n")
    with pytest.raises(InputError, match=r"a\.csv: line 11: .*'w' has 'x'"):
        read(tmp_path, form)


COMMENTS: Mapping[str, tuple[str, Form, int | str]] = {
    "as SNAP has them": ("# Nodes: 3 Edges: 2\n# FromNodeId\tToNodeId\n1\t2\n2\t3\n", Form(), 2),
    "as KONECT has them": ("% sym unweighted\n% 2 3 3\n1 2\n2 3\n", Form(), 2),
    "rows of text below": ("# a comment\nsrc,dst\na,b\n#\n# more, of it\nb,c\n", Form(), 3),
    "a row that is commented out": ("#1,2\nsrc,dst\n1,2\n2,3\n#3,4\n", Form(), 2),
    "names of columns in a comment": ("#src,dst\n1,2\n2,3\n", Form(), 1),
    "another prefix in rows": ("# titles\n%C3%81,%C3%82\nb,c\n", Form(header=False), 1),
    "all rows": ("#a,#b\n#b,#c\n#c,#a\n", Form(), "#a,#b"),
    "percent-encoded": ("%E4%B8,%E6%96\nabc,def\n", Form(), "%E4%B8,%E6%96"),
    "percent-encoded, later": ("src,dst\nabc,def\nabc,ghi\nghi,jkl\n%E4%B8,%E6%96\n", Form(), "%E4%B8,%E6%96"),
    "names of columns of text in a comment": ("#src,dst\na,b\nb,c\n", Form(), "#src,dst"),
    "text with spaces": ("# x\n#a   b\na b\n", Form(header=False), "#a   b"),
    "later only": ("src,dst\n1,2\n2,3\n3,4\n4,5\n5,6\n# the end\n", Form(), "# the end"),
    "in a file without others": ("src,dst\n1,2\n#3,4\n", Form(), "#3,4"),
    "only comments": ("# Nodes: 0\n# FromNodeId\tToNodeId\n", Form(), 2),
    "the setting": ("#a,#b\n#b,#c\n", Form(comment="#"), 2),
    "the setting for none": ("#a,#b\n#b,#c\n", Form(comment="", header=False), 0),
    "another prefix in the setting": ("// x\nsrc,dst\na,b\n//c,d\n", Form(comment="//"), 2),
}


@pytest.mark.parametrize("name", COMMENTS)
@pytest.mark.parametrize("sizes", [SMALL, {"head": 2**20, "part": 2**20, "chunk": 2**20}])
def test_comments_are_counted_or_asked_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, sizes: dict[str, int]
) -> None:
    content, form, expected = COMMENTS[name]
    _set_sizes(monkeypatch, **sizes | {"head": max(sizes["head"], content.index("\n") + 1)})
    write(tmp_path, content, "a.txt")
    if isinstance(expected, str):
        wanted = [f"a.txt: a? ?line.*may be a comment or a row: {re.escape(repr(expected))}", 'input.comment=""']
        with pytest.raises(InputError, match=".*".join(wanted)) as error:
            read(tmp_path, form)
        assert f"input.comment={expected[0]!r}" in str(error.value)
        return
    found = read(tmp_path, form)
    shown = [line for line in content.split("\n") if line.startswith(form.comment or content[0])] if expected else []
    assert found.left_out.comments == len(shown) == expected
    assert len(found.rows) == sum(1 for line in content.split("\n") if line) - expected - found.source.layout.header  # type: ignore[union-attr]
    if expected:
        assert repr(shown[0]) in " ".join(found.left_out.notes("csv"))


@pytest.mark.parametrize("order", [("a.csv", "b.csv"), ("b.csv", "a.csv")])
def test_comments_in_one_of_several_files(tmp_path: Path, order: tuple[str, str]) -> None:
    write(tmp_path, "src,dst\n1,2\n", order[0])
    write(tmp_path, "# late\nsrc,dst\n2,3\n", order[1])
    found = read(tmp_path, Form())
    assert (sorted(found.rows), found.left_out.comments) == ([(1, 2), (2, 3)], 1)


@pytest.mark.parametrize("prefix", ["#", "%"])
def test_text_rows_with_a_prefix_are_asked_about_in_any_order(tmp_path: Path, prefix: str) -> None:
    rows = ["a,b", f"{prefix}c,d", "e,f"]
    for turn in range(3):
        write(tmp_path, "\n".join(rows[turn:] + rows[:turn]) + "\n")
        with pytest.raises(InputError, match=re.escape(f"'{prefix}c,d'")):
            read(tmp_path, Form(header=False))


LAYOUTS: Mapping[str, tuple[str | bytes, Form, list[tuple[Any, Any]] | str]] = {
    "a space after the comma": ("src,dst\na, b\n c,d\n", CSV, [("a", " b"), (" c", "d")]),
    "a space after the comma, stripped": ("src, dst\na, b\n c ,d\n", Form(strip=True), [("a", "b"), ("c", "d")]),
    "integers, stripped": ("src,dst\n1, 7\n2 ,8\n", replace(CSV, strip=True), [(1, 7), (2, 8)]),
    "quotes, stripped": ('src,dst\n" a" , "b ,"" c "\n', replace(CSV, strip=True), [("a", 'b ," c')]),
    "non-breaking spaces, stripped": ("src,dst\n\u00a07,8\u3000\n", replace(CSV, strip=True), [(7, 8)]),
    "tabs, stripped": ("1\t 2\n2\t3\n", Form(strip=True), [(1, 2), (2, 3)]),
    "aligned columns": ("   1     2\n 100    20\n   3   400\n", Form(), [(1, 2), (100, 20), (3, 400)]),
    "aligned columns of three": ("  1   2  0.5\n 10  20  1.5\n", Form(), [(1, 2), (10, 20)]),
    "aligned columns with names": ("src    dst\na      b\nlong   c\n", CSV, [("a", "b"), ("long", "c")]),
    "tabs mixed with spaces": ("1 2\n2\t3\n3 \t 4\n", Form(), [(1, 2), (2, 3), (3, 4)]),
    "spaces in quotes": ('"a  b" c\nd    e\n', Form(header=False), [("a  b", "c"), ("d", "e")]),
    "a blank at line ends": ("1 2 \n2 3 \n", Form(), [(1, 2), (2, 3)]),
    "lines of blanks": ("1 2\n   \n\n2 3\n", Form(), [(1, 2), (2, 3)]),
    "lines of blanks between commas": ("1,2\n   \n2,3\n", Form(), "line 2 has 1 fields"),
    "a delimiter at line ends": ("1,2,\n2,3,\n", Form(), [(1, 2), (2, 3)]),
    "carriage returns": (b"1 2\r2 3\r3 4\r", Form(), [(1, 2), (2, 3), (3, 4)]),
    "carriage returns, comments": (b"# x\r1,2\r2,3\r# y\r3,4", Form(), [(1, 2), (2, 3), (3, 4)]),
    "carriage returns, names": (b"src,dst\ra,b\rb,c\r", Form(), [("a", "b"), ("b", "c")]),
    "Windows": (b"src,dst\r\n1,2\r\n2,3\r\n", Form(), [(1, 2), (2, 3)]),
    "Windows, aligned": (b"1   2\r\n22  3\r\n", Form(), [(1, 2), (22, 3)]),
    "empty attributes in braces": ("1 2 {}\n2 3 {}\n", Form(), [(1, 2), (2, 3)]),
    "attributes in braces": (
        "1 2 {'weight': 3}\n2 3 {'weight': 4}\n",
        Form(),
        "write_edgelist.*data=False.*read_edgelist",
    ),
    "some attributes in braces": ("1 2 {}\n2 3 {'weight': 4}\n", Form(), "write_edgelist"),
    "attributes in braces, commas": ("1,2,{'a': 3, 'b': 1}\n", Form(), "write_edgelist.*delimiter=','"),
    "attributes in braces, tabs": ("1\t2\t{'a': 3, 'b': 1}\n", Form(), [(1, 2)]),
    "a byte order mark": (b"\xef\xbb\xbfsrc,dst\n1,2\n", Form(), [(1, 2)]),
    "NUL": (b"1,2\n2,3\n3,4\x00\n" + b"5,6\n" * 2000, Form(), "is not text"),
    "NUL, late": (b"1,2\n" * 2000 + b"3,\x004\n", Form(), r"line 2,001 has a NUL byte"),
    "no line feed at the end": (b"1,2\n2,3", Form(), [(1, 2), (2, 3)]),
    "a line break in quotes": ('src,dst\na,b\n"c\nd",e\n', Form(), "line 3 has a quoted field that holds a line break"),
    "a line break in a column that is not read": (
        *('src,dst,n\n1,2,"x\n3,4,y"\n5,6,z\n', CSV),
        "line 2 has a quoted field that holds a line break",
    ),
    "a quote in a field": ('src,dst\n5" pipe,b\n', CSV, [('5" pipe', "b")]),
    "a delimiter of several characters": ("1::2\n2::3\n", Form(), "input.delimiter"),
    "a long line": ("src,dst\n" + "x" * 5000 + ",b\na,c\n", CSV, [("x" * 5000, "b"), ("a", "c")]),
}


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("chunk", [2**20, 7])
def test_layouts_of_real_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, chunk: int) -> None:
    content, form, expected = LAYOUTS[name]
    monkeypatch.setattr(lines, "CHUNK_BYTES", chunk)
    monkeypatch.setattr(heads, "SPLIT_BYTES", 2**24 if chunk > 7 else 9)
    write(tmp_path, content, "a.txt")
    if isinstance(expected, str):
        with pytest.raises(InputError, match=expected) as error:
            read(tmp_path, form)
        assert "null" not in str(error.value)
    else:
        found = read(tmp_path, form, ("src", "dst"))
        assert (found.rows, found.left_out.nulls) == (expected, 0)


def test_ids_with_outer_blanks_are_counted(tmp_path: Path) -> None:
    write(tmp_path, "src,dst\na, b\nb ,c\nd,e\né,\u00a0é\n")
    (note,) = read(tmp_path).left_out.notes("csv")
    assert re.match("3 ids .*blank, such as (' b'|'b ')", note)
    assert str(tmp_path / "a.csv") in note
    assert "--set input.strip=true" in note
    stripped = read(tmp_path, replace(CSV, strip=True))
    assert stripped.rows == [("a", "b"), ("b", "c"), ("d", "e"), ("é", "é")]
    assert not stripped.left_out.notes("csv")
    write(tmp_path, '{"src": "a ", "dst": "b"}\n', "a.jsonl")
    (tmp_path / "a.csv").unlink()
    (note,) = read(tmp_path, Form()).left_out.notes("jsonl")
    assert "'a '" in note
    assert "input.strip" not in note
    with pytest.raises(UsageError, match=r"input\.strip.*CSV"):
        open_source(str(tmp_path), form=Form(strip=True))


def test_a_byte_order_mark_in_a_later_file(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv"):
        write(tmp_path, b"\xef\xbb\xbfsrc,dst\n1,2\n", name)
    assert read(tmp_path, Form()).rows == [(1, 2), (1, 2)]
