"""Damaged files that edgemill wrote: they are refused by name, or read as they were, but never give other rows."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from click.testing import Result as Ended

from damage import DAMAGES, Span, damaged
from edgemill.pipeline import Result
from edgemill.pipeline.output.manifest import read_manifest
from edgemill.tasks.errors import InputError
from edgemill.tasks.generate import generate
from edgemill.tasks.ingest.reading import read_rows
from edgemill.tasks.inputs.open_source import open_source
from edgemill.tasks.inputs.opening import READ_ERRORS
from edgemill.tasks.inputs.sources import plan_blocks
from edgemill.tasks.storage.parquet_checksum import checksummed_writer, read_footer
from edgemill.tasks.verify.result import verify
from examples import examples
from in_process import call
from trials import Outcome, Trials

CODECS = ("zstd", "snappy", "gzip", "lz4", "none")
OFTEN = [CODECS[0], *(pytest.param(codec, marks=pytest.mark.slow) for codec in CODECS[1:])]
"""The first each time, all with the slow tests."""


@pytest.fixture(scope="session")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    (path,) = generate("rmat", tmp_path_factory.mktemp("generated") / "in", files=1, seed=4, scale=10, edge_factor=8)
    return path


@pytest.fixture(scope="session")
def published(tmp_path_factory: pytest.TempPathFactory, rows: Path) -> Callable[[str], Path]:
    """A result for each compression, with string ids in dictionaries and several row groups."""
    folder = tmp_path_factory.mktemp("published")
    table = pq.read_table(rows)
    names = [pc.binary_join_element_wise("v", column.cast(pa.string()), "") for column in table.columns]
    pq.write_table(pa.table(names, names=["src", "dst"]), folder / "in.parquet")
    results: dict[str, Path] = {}

    def of(codec: str) -> Path:
        if codec not in results:
            own = ["--set", f"output.compression={codec}", "--set", "output.row_group_rows=1500"]
            run(folder / "in.parquet", folder / codec, *own)
            results[codec] = folder / codec
        return results[codec]

    return of


def run(rows: Path, out: Path, *arguments: str) -> Ended:
    return call("run", "--input", str(rows), "--output", str(out), "--device", "cpu", *arguments)


def spans(path: Path) -> list[Span]:
    """Positions of a file's data pages, dictionary pages and footer."""
    metadata = pq.read_metadata(path)
    chunks = [metadata.row_group(g).column(c) for g in range(metadata.num_row_groups) for c in range(2)]
    pages = [
        (c.data_page_offset, (c.dictionary_page_offset or c.data_page_offset) + c.total_compressed_size) for c in chunks
    ]
    dictionaries = [(c.dictionary_page_offset, c.data_page_offset) for c in chunks if c.dictionary_page_offset]
    size = path.stat().st_size
    found = [pages[0], pages[-1], (size - metadata.serialized_size - 8, size)]
    return found + dictionaries[:1]


def source_rows(path: Path) -> list[Any]:
    """All ids, as a run reads them."""
    source = open_source(str(path), "src", "dst")
    read = [read_rows(source, block) for block in plan_blocks(source, 4000)]
    return [ids.tolist() for block in read for ids in (block.source, block.target)]


def outcome(read: Callable[[], Any], right: Any, path: Path) -> Outcome:
    """The outcome of reading a damaged file. An error must have exit code 3 and name the file."""
    try:
        return "same" if read() == right else "wrong"
    except InputError as error:
        return "refused" if str(path) in str(error) else "wrong"


def try_input(original: Path, folder: Path, times: int, trials: Trials) -> None:
    path, right = folder / "damaged.parquet", source_rows(original)
    wrong = []
    for number, (kind, content) in enumerate(damaged(original.read_bytes(), spans(original), times, seed=times)):
        path.write_bytes(content)
        found = outcome(lambda: source_rows(path), right, path)
        trials(f"input of ours: {kind}", found)
        if found == "wrong":
            wrong.append((number, kind))
    assert not wrong


def test_a_generated_graph(generated: Path, tmp_path: Path, trials: Trials) -> None:
    try_input(generated, tmp_path, examples(600), trials)


@pytest.mark.parametrize("codec", OFTEN)
def test_edges_of_a_result_as_input(
    published: Callable[[str], Path], tmp_path: Path, trials: Trials, codec: str
) -> None:
    original = published(codec) / "edges" / "part-00000.parquet"
    assert len(spans(original)) == 4
    try_input(original, tmp_path, examples(240), trials)


@pytest.mark.parametrize("codec", OFTEN)
def test_input_of_others_without_checksums(tmp_path: Path, codec: str) -> None:
    """The reader reports the damage that it notices. docs/limits.md names the damage that it does not."""
    original, path = tmp_path / "whole.parquet", tmp_path / "damaged.parquet"
    names = [f"vertex {i * i}" for i in range(400)]
    pq.write_table(pa.table({"src": names, "dst": names[::-1]}), original, compression=codec)
    noticed = 0
    for _, content in damaged(original.read_bytes(), spans(original), 200, seed=3):
        path.write_bytes(content)
        try:
            source_rows(path)
        except InputError as error:
            assert str(path) in str(error)
            noticed += 1
    assert 100 <= noticed < 200


def test_every_bit_of_a_footer(tmp_path: Path, trials: Trials) -> None:
    """Also of its length, its seal and the end of the last page."""
    (path,) = generate("chain", tmp_path / "in", files=1, seed=1, triangles=20)
    content = path.read_bytes()
    right = read_footer(io.BytesIO(content))
    first = len(content) - right.serialized_size - 120
    for at in range(first, len(content)):
        for bit in range(8):
            changed = bytearray(content)
            changed[at] ^= 1 << bit
            try:
                assert read_footer(io.BytesIO(changed)).equals(right), (at, bit)
                assert at < len(content) - right.serialized_size - 8  # outside, where nothing is read
                trials("footer of ours: bit flip", "same")
            except READ_ERRORS:
                trials("footer of ours: bit flip", "refused")


@pytest.mark.slow
@pytest.mark.parametrize("codec", CODECS)
def test_every_bit_of_a_file(trials: Trials, codec: str) -> None:
    """Also in page headers, which only the checksums of their pages cover."""
    table = pa.table({"src": [f"v{i % 7}" for i in range(90)], "dst": [f"w{i}" for i in range(90)]})
    file = io.BytesIO()
    with checksummed_writer(file, table.schema, compression=codec, data_page_size=300, write_batch_size=20) as writer:
        writer.write_table(table, row_group_size=50)
    content = file.getvalue()
    for at in range(len(content)):
        for bit in range(8):
            changed = bytearray(content)
            changed[at] ^= 1 << bit
            try:
                metadata = read_footer(io.BytesIO(changed))
                whole = pq.ParquetFile(pa.BufferReader(changed), metadata=metadata, page_checksum_verification=True)
                assert whole.read(use_threads=False).equals(table), (at, bit)
                trials("file of ours: bit flip", "same")
            except READ_ERRORS:
                trials("file of ours: bit flip", "refused")


@pytest.mark.parametrize("damage", range(len(DAMAGES)))
def test_a_run_of_a_damaged_input(generated: Path, tmp_path: Path, trials: Trials, damage: int) -> None:
    content = generated.read_bytes()
    *_, (kind, changed) = damaged(content, [(1000, len(content) // 2)], damage + 1, seed=7)
    path, out = tmp_path / "damaged.parquet", tmp_path / "out"
    path.write_bytes(changed)
    found = run(path, out)
    assert (found.exit_code, out.exists()) == (3, False)
    assert found.stderr.startswith(f"Error: {path}")
    trials(f"run of a damaged input: {kind}", "refused")


def test_tables_of_a_result(published: Callable[[str], Path], trials: Trials) -> None:
    """They are noticed when the result is opened, and by `edgemill verify`."""
    out = published("zstd")
    right = [table.to_table() for table in (Result(out).edges, Result(out).vertices)]
    for path in (out / "edges" / "part-00000.parquet", out / "vertices" / "part-00000.parquet"):
        content = path.read_bytes()
        try:
            for kind, changed in damaged(content, spans(path), examples(400), seed=5):
                path.write_bytes(changed)
                checks = verify(out).checks
                assert (checks[-1].name, checks[-1].ok) == ("files", False)
                try:
                    result = Result(out)
                    assert [result.edges.to_table(), result.vertices.to_table()] == right
                    trials(f"table of a result: {kind}", "same")
                except (InputError, *READ_ERRORS):
                    trials(f"table of a result: {kind}", "refused")
        finally:
            path.write_bytes(content)


def test_the_manifest_of_a_result(published: Callable[[str], Path], trials: Trials) -> None:
    """They are noticed by `edgemill show`, when the result is opened, and by `edgemill verify`."""
    out = published("zstd")
    path, right = out / "manifest.json", read_manifest(out)
    content = path.read_bytes()
    try:
        places = [(0, len(content)), (len(content) - 100, len(content))]
        for kind, changed in damaged(content, places, examples(1000), seed=6):
            path.write_bytes(changed)
            found = outcome(lambda: read_manifest(out), right, out)
            trials(f"manifest of a result: {kind}", found)
            assert found != "wrong", kind
            checks = verify(out).checks
            assert found == "same" or (checks[0].name, checks[0].ok) == ("manifest", False)
    finally:
        path.write_bytes(content)
