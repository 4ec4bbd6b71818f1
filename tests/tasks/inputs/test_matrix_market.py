"""Matrix Market: every entry is one edge, wherever the file is cut; the line of sizes never is; SciPy agrees."""

from __future__ import annotations

import bz2
import gzip
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import scipy.io
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from edgemill.pipeline.events import Events
from edgemill.pipeline.stages import ingesting
from edgemill.pipeline.stages.task_engine import SequentialEngine
from edgemill.tasks.device import MemorySpace
from edgemill.tasks.errors import InputError, UsageError
from edgemill.tasks.ingest.reading import count_rows, read_rows
from edgemill.tasks.inputs import head as heads
from edgemill.tasks.inputs.formats import lines
from edgemill.tasks.inputs.formats.form import Form, Weights
from edgemill.tasks.inputs.open_source import open_source
from edgemill.tasks.inputs.sources import Source, plan_blocks
from edgemill.tasks.verify.input import input_pieces

ENTRIES = [(1, 2, 0.5), (2, 3, 1e-6), (9, 9, 2.0), (3, 1, -4.0), (1, 2, 0.0)]


def matrix(kind: str = "real general", sizes: str = "9 9 5", entries: str | None = None) -> bytes:
    values = not kind.startswith("pattern")
    rows = "".join(f"{row} {column}{f' {value:g}' if values else ''}\n" for row, column, value in ENTRIES)
    first = f"%%MatrixMarket matrix coordinate {kind}\n% a comment\n\n{sizes}\n"
    return (first + (rows if entries is None else entries)).encode()


def zstd(content: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as file:
        file.write(content)
    return bytes(sink.getvalue())


def read(source: Source, rows_per_block: int = 2) -> list[tuple[Any, ...]]:
    """All rows, as the stage `read` has them: with their weights, if there are any."""
    blocks = plan_blocks(source, rows_per_block)
    ingesting.read(SequentialEngine(), Events(), source, blocks, "refuse", MemorySpace.HOST)
    found = [read_rows(source, block) for block in blocks]
    return [
        row
        for own in found
        for row in zip(
            own.source.tolist(),
            own.target.tolist(),
            *([] if own.weight is None else [own.weight.tolist()]),
            strict=True,
        )
    ]


WRITINGS: dict[str, Callable[[bytes], bytes]] = {
    "a.mtx": bytes,
    "windows.mtx": lambda content: b"\xef\xbb\xbf" + content.replace(b"\n", b"\r\n"),
    "aligned.mtx": lambda content: re.sub(rb"(?m)^(\d+) (\d+)", rb"   \1 \t  \2", content).replace(b"\n", b" \n"),
    "unended.mtx": lambda content: content.rstrip(b"\n"),
    "CAPITALS.MTX": lambda content: content.replace(b"MatrixMarket", b"matrixmarket").replace(b"general", b"GENERAL"),
    "a.mtx.gz": gzip.compress,
    "a.mtx.bz2": bz2.compress,
    "a.mtx.zst": zstd,
    "a.txt": bytes,
    "a.dat.gz": gzip.compress,
    "a": bytes,
}


@pytest.mark.parametrize(
    "kind", ["real general", "real symmetric", "integer general", "pattern general", "pattern symmetric"]
)
@pytest.mark.parametrize("name", WRITINGS)
def test_the_entries_are_the_edges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, kind: str) -> None:
    monkeypatch.setattr(heads, "SPLIT_BYTES", 7)
    monkeypatch.setattr(lines, "CHUNK_BYTES", 11)
    path, has_values = tmp_path / name, not kind.startswith("pattern")
    path.write_bytes(WRITINGS[name](matrix(kind)))
    weights = Weights("value") if has_values else None
    source = open_source(str(path), form=Form(weights=weights))
    width = 3 if has_values else 2
    assert (source.format, source.id_type, source.notes) == ("mtx", pa.int64(), ())
    assert read(source) == [entry[:width] for entry in ENTRIES]
    assert count_rows(source) == len(ENTRIES)
    if has_values:
        chosen = open_source(str(path), form=Form(where="value > 0 and value < 1"))
        assert read(chosen) == [(1, 2), (2, 3)]
    recorded = {"source_column": "src", "target_column": "dst", "format": "mtx", "layout": {"format": "mtx"}}
    if path.suffix != "":
        pieces = list(input_pieces(str(path), recorded))
        checked = [pair for own in pieces for pair in zip(own.source.to_pylist(), own.target.to_pylist(), strict=True)]
        assert checked == [entry[:2] for entry in ENTRIES]


def test_a_file_is_read_by_several_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heads, "SPLIT_BYTES", 64)
    path, rows = tmp_path / "a.mtx", [(at, at + 1) for at in range(1, 100)]
    path.write_bytes(matrix("pattern general", "100 100 99", "".join(f"{one} {other}\n" for one, other in rows)))
    source = open_source(str(path))
    assert len(source.files[0].row_groups) > 8
    assert len(plan_blocks(source, 10)) > 4
    assert read(source, 10) == rows


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(-9, 9)), max_size=12),
    st.sampled_from(["general", "symmetric"]),
    st.sampled_from(["pattern", "integer", "real"]),
)
def test_scipy_writes_what_is_read(
    tmp_path_factory: pytest.TempPathFactory, entries: list[tuple[int, int, int]], symmetry: str, field: str
) -> None:
    folder = tmp_path_factory.mktemp("scipy")
    rows, columns, values = (np.array([entry[at] for entry in entries], np.int64) for at in range(3))
    made = scipy.sparse.coo_array((values, (rows, columns)), shape=(6, 6)).tocsr().tocoo()
    if symmetry == "symmetric":
        made = scipy.sparse.coo_array(made + made.T)
    scipy.io.mmwrite(folder / "a.mtx", made, field=field, symmetry=symmetry)
    found = {frozenset((one - 1, other - 1)) for one, other in read(open_source(str(folder)))}
    written = scipy.io.mmread(folder / "a.mtx")
    assert found == {frozenset(map(int, pair)) for pair in zip(written.row, written.col, strict=True)}


REFUSED: dict[str, tuple[bytes, Form, str]] = {
    "fewer entries": (matrix(sizes="9 9 6"), Form(), r"has 5 entries, and line 4 says 6"),
    "more entries": (matrix(sizes="9 9 4"), Form(), r"has 5 entries, and line 4 says 4"),
    "an index of 0": (
        matrix(entries="1 2 1\n0 1 1\n", sizes="9 9 2"),
        Form(),
        r"line 6 has '0 1 1': .* from 1 to 9, as line 4",
    ),
    "an index above the size": (
        matrix(entries="1 10 1\n", sizes="9 9 1"),
        Form(),
        r"line 5 has '1 10 1': .*column.* 1 to 9",
    ),
    "a hexadecimal index": (matrix(entries="1 0x7 1\n", sizes="9 9 1"), Form(), "line 5 has '1 0x7 1'"),
    "an index with a point": (matrix(entries="1.0 7 1\n", sizes="9 9 1"), Form(), "line 5 has '1.0 7 1'"),
    "no value": (matrix(entries="1 2 1\n1 7\n", sizes="9 9 2"), Form(), r"line 6 has '1 7': an entry has 3 numbers"),
    "a value in a pattern": (
        matrix("pattern general", "9 9 1", "1 7 1\n"),
        Form(),
        "line 5 .* has 2 numbers: src, dst",
    ),
    "a comment between entries": (matrix(entries="1 2 1\n% late\n", sizes="9 9 2"), Form(), "line 6 has '% late'"),
    "a word for a weight": (
        matrix(entries="1 2 x\n", sizes="9 9 1"),
        Form(weights=Weights("value")),
        "line 5 has '1 2 x': its value is no number",
    ),
    "no sizes": (
        b"%%MatrixMarket matrix coordinate real general\n% c\n",
        Form(),
        "has no line with the numbers of rows",
    ),
    "two sizes": (matrix(sizes="9 5"), Form(), "line 4 has '9 5', but the numbers of rows"),
    "an array": (b"%%MatrixMarket matrix array real general\n2 2\n1\n0\n0\n1\n", Form(), "is an array, .*SciPy"),
    "complex": (matrix("complex general"), Form(), r"is complex and general, .*scipy\.io\.mmwrite"),
    "skew-symmetric": (matrix("real skew-symmetric"), Form(), "is real and skew-symmetric"),
    "hermitian": (matrix("complex hermitian"), Form(), "is complex and hermitian"),
    "a vector": (
        b"%%MatrixMarket vector coordinate real general\n2 1\n",
        Form(),
        "its first line is '%%MatrixMarket vector",
    ),
    "two sets of ids": (matrix(sizes="9 12 5"), Form(), "has 9 rows and 12 columns, .* --bipartite prefix"),
    "symmetric with directions": (matrix("real symmetric"), Form(directed=True), "is symmetric, .*--directed"),
    "no first line": (
        b"9 5 4\n1 2\n2 3\n1 3\n4 5\n",
        Form(),
        "is no Matrix Market file: its first line is not like %%Matrix",
    ),
    "weights of a pattern": (matrix("pattern general"), Form(weights=Weights("value")), "has no column 'value'"),
}


@pytest.mark.parametrize("fault", REFUSED)
@pytest.mark.parametrize("name", ["a.mtx", "a.mtx.gz"])
def test_files_that_are_refused(tmp_path: Path, fault: str, name: str) -> None:
    content, form, why = REFUSED[fault]
    path = tmp_path / name
    path.write_bytes((gzip.compress if name.endswith(".gz") else bytes)(content))
    with pytest.raises(InputError, match=re.escape(str(path)) + ".*" + why):
        read(open_source(str(path), form=form))


@pytest.mark.parametrize("shift", [-1, 1])
def test_entries_of_large_files_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shift: int) -> None:
    """Of each file: one entry too many in one file and one too few in another are two mistakes."""
    monkeypatch.setattr("edgemill.tasks.inputs.formats.matrix_market.HEAD_BYTES", 80)
    monkeypatch.setattr(heads, "SPLIT_BYTES", 40)
    for name, more in (("a.mtx", shift), ("b.mtx", -shift)):
        rows = "".join(f"{at} {at + 1}\n" for at in range(1, 41))
        (tmp_path / name).write_bytes(matrix("pattern general", f"50 50 {40 + more}", rows))
    with pytest.raises(InputError, match=rf"a\.mtx.*40.*4.*{40 + shift}"):
        read(open_source(str(tmp_path)), 1000)


def test_a_file_that_was_cut_short_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgemill.tasks.inputs.formats.matrix_market.HEAD_BYTES", 80)
    (tmp_path / "a.mtx").write_bytes(matrix("pattern general", "50 50 4000", "1 2\n" * 40))
    with pytest.raises(InputError, match="4,000 entries"):
        open_source(str(tmp_path))


def test_two_sets_of_ids_that_are_declared(tmp_path: Path) -> None:
    (tmp_path / "a.mtx").write_bytes(matrix("pattern general", "2 3 2", "1 1\n2 3\n"))
    source = open_source(str(tmp_path), form=Form(bipartite="prefix"))
    found = [read_rows(source, block) for block in plan_blocks(source, 9)]
    assert [(own.source.to_pylist(), own.target.to_pylist()) for own in found] == [
        (["src:1", "src:2"], ["dst:1", "dst:3"])
    ]


def test_settings_of_other_formats(tmp_path: Path) -> None:
    (tmp_path / "a.mtx").write_bytes(matrix())
    for form, name in (
        (Form(header=True), "header"),
        (Form(delimiter=";"), "delimiter"),
        (Form(id_type="string"), "id_type"),
    ):
        with pytest.raises(UsageError, match=rf"input\.{name}.*CSV"):
            open_source(str(tmp_path), form=form)


@pytest.mark.parametrize("kind", ["complex general", "array", "symmetric"])
def test_the_command_of_a_message_makes_a_file_that_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.chdir(tmp_path)
    dense = np.array([[0, 1, 2], [1, 0, 0], [2, 0, 0]])
    source: Any = (
        dense if kind == "array" else scipy.sparse.coo_array(dense * (1j if kind.startswith("complex") else 1))
    )
    scipy.io.mmwrite("a.mtx", source, symmetry="symmetric" if kind == "symmetric" else "general")
    with pytest.raises(InputError) as caught:
        open_source("a.mtx", form=Form(directed=True))
    exec(str(caught.value).rpartition("SciPy: ")[2], {"scipy": scipy})
    assert set(read(open_source("edges.mtx", form=Form(directed=True)))) == {(1, 2), (2, 1), (1, 3), (3, 1)}


def test_the_content_wins_over_the_name_of_a_weak_suffix(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(matrix())
    with pytest.raises(InputError, match=r"a Matrix Market file: .*--input-format mtx"):
        open_source(str(tmp_path))
    assert len(read(open_source(str(tmp_path / "a.csv"), form=Form(format="mtx")))) == 5
