"""A result on a disk: writing and reading of the manifest, tables, summary."""

from __future__ import annotations

import io
import json
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from edgemill.pipeline.cli.show import print_result, summary_lines
from edgemill.pipeline.output.manifest import LambdaRecord, Manifest, PartitionRecord, is_result, read_manifest
from edgemill.pipeline.results.result import Result
from edgemill.tasks.errors import EdgemillError, InputError, UsageError

WriteResult = Callable[..., Manifest]


def test_manifest_reads_back(tmp_path: Path, write_result: WriteResult) -> None:
    written = write_result(tmp_path)
    assert read_manifest(tmp_path) == written
    assert pickle.loads(pickle.dumps(written)) == written
    content = json.loads((tmp_path / "manifest.json").read_text())
    assert content["lambda"] == {"max": 1, "sum": 3, "histogram": [[1, 3]], "vertices": None}
    assert content["format_version"] == 1
    assert set(content["versions"]) >= {"edgemill", "dask", "numba", "numpy", "pyarrow", "python"}
    assert written.seconds == 1.5


def test_manifest_is_written_once(tmp_path: Path, write_result: WriteResult) -> None:
    write_result(tmp_path)
    with pytest.raises(FileExistsError):
        write_result(tmp_path)


def test_result_opens_what_the_manifest_lists(tmp_path: Path, write_result: WriteResult) -> None:
    write_result(tmp_path)
    (tmp_path / "edges/part-00002.parquet").write_bytes(b"stray")
    result = Result(tmp_path)
    assert result.edges.to_table().to_pydict() == {
        "src": [1, 1, 2],
        "dst": [2, 3, 3],
        "support": [1, 1, 1],
        "lambda": [1, 1, 1],
    }
    assert result.vertices.count_rows() == 3
    assert result.converged
    assert repr(result) == f"Result({str(tmp_path)!r}: 3 edges, lambda max 1)"


@pytest.mark.parametrize(
    ("damage", "kind", "message"),
    [
        (lambda out: (out / "manifest.json").unlink(), InputError, "is not an edgemill result"),
        (lambda out: (out / "manifest.json").write_text("{"), InputError, "is not an edgemill result"),
        (
            lambda out: (out / "manifest.json").write_text('{"format": "other"}'),
            InputError,
            "is not an edgemill result",
        ),
        (lambda out: edit(out, format_version=3), InputError, "has format version 3; this edgemill reads 1 and 2"),
        (lambda out: edit(out, settings={"programs": {"run": -1}}), InputError, "is damaged: settings: "),
        (lambda out: edit(out, settings={"programs": {"own": [1]}}), InputError, "no list of names"),
        (lambda out: edit(out, counts={"rows": 1}), InputError, "is damaged: counts.self_loops: Field required"),
        (lambda out: change(out, b'"triangles": 1', b'"triangles": 3'), InputError, "is not what edgemill wrote"),
        (lambda out: (out / "edges/part-00001.parquet").unlink(), InputError, "part-00001.parquet is missing"),
        (lambda out: (out / "edges/part-00001.parquet").write_bytes(b"1"), InputError, "has 1 bytes, not"),
        (lambda out: out.rename(out.with_name("moved")), UsageError, "there is no result at"),
    ],
)
def test_message_of_a_damaged_result(
    tmp_path: Path,
    write_result: WriteResult,
    damage: Callable[[Path], object],
    kind: type[EdgemillError],
    message: str,
) -> None:
    out = tmp_path / "out"
    write_result(out)
    damage(out)
    with pytest.raises(kind, match=message):
        Result(out)


def edit(out: Path, **changes: object) -> None:
    """Remove the checksum, as in a manifest of another program."""
    path = out / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def change(out: Path, old: bytes, new: bytes) -> None:
    path = out / "manifest.json"
    assert old in path.read_bytes()
    path.write_bytes(path.read_bytes().replace(old, new, 1))


def test_only_a_folder_with_our_manifest_is_a_result(tmp_path: Path, write_result: WriteResult) -> None:
    assert not is_result(tmp_path)
    assert not is_result(tmp_path / "absent")
    (tmp_path / "manifest.json").write_text("[]")
    assert not is_result(tmp_path)
    write_result(tmp_path / "out")
    edit(tmp_path / "out", format_version=99)
    assert is_result(tmp_path / "out")


def shown(manifest: Manifest) -> str:
    console = Console(file=io.StringIO(), width=120)
    with console.capture() as captured:
        print_result(manifest, "OUT", console, detail=True)
    return captured.get()


def test_summary_of_a_result(tmp_path: Path, write_result: WriteResult) -> None:
    manifest = write_result(tmp_path)
    text = shown(manifest)
    for part in ["1 file, 100 bytes, 5 rows; columns src, dst (int64)", "1 duplicate, 1 self-loop"]:
        assert part in text
    assert "3 edges, 3 vertices, 1 triangles" in text
    assert [line.split()[0] for line in summary_lines(manifest, "OUT")] == [
        *("edges", "vertices", "triangles", "lambda", "dropped", "seconds", "output")
    ]


def test_summary_of_a_run_cut_short(tmp_path: Path, write_result: WriteResult) -> None:
    high = LambdaRecord(max=7, sum=9, histogram=[(1, 2), (7, 1)])
    manifest = write_result(tmp_path, converged=False, unsettled=1, lambda_high=high)
    assert "NOT CONVERGED: 1 edges" in shown(manifest)
    assert "lambda max  1 to 7" in summary_lines(manifest, "OUT")


def test_summary_stays_short(tmp_path: Path, write_result: WriteResult) -> None:
    part = PartitionRecord(partition=0, owned=1, inner=1, cut=0, vertices=2)
    wide = LambdaRecord(max=1000, sum=500500, histogram=[(value, 1) for value in range(1, 1001)])
    manifest = write_result(tmp_path, partitions=[part] * 130, lambda_low=wide)
    text = shown(manifest)
    assert "114 more" in text
    assert len(text.splitlines()) <= 67  # with the time outside of stages and the total time
    assert all(len(line) <= 120 for line in text.splitlines())


def test_summary_of_an_empty_graph(tmp_path: Path, write_result: WriteResult) -> None:
    nothing = LambdaRecord(max=0, sum=0, histogram=[])
    assert "0 messages" not in shown(write_result(tmp_path, lambda_low=nothing, partitions=[], exchanges=[], stages=[]))
