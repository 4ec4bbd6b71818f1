"""Markers of complete inputs, on a disk and in a store."""

from __future__ import annotations

from pathlib import Path

import fsspec
import pytest

from edgemill.tasks.errors import InputIncomplete, UsageError
from edgemill.tasks.inputs.finding import refuse_unmarked

MARKER = "_SUCCESS"


@pytest.mark.parametrize(
    ("path", "folder"),
    [
        ("day", "day"),
        ("day/", "day"),
        ("day/a.parquet", "day"),
        ("day/*.parquet", "day"),
        ("day/part=*/a.parquet", "day"),
        ("day/[ab].parquet", "day"),
        ("*.parquet", "."),
        ("odd[1]", "odd[1]"),
    ],
)
def test_the_folder_of_the_marker(path: str, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("day/part=1", "odd[1]"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("day/a.parquet", "day/part=1/a.parquet", "odd[1]/a.parquet", "a.parquet"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    for given in (path, f"{tmp_path}/{path}", f"file://{tmp_path}/{path}"):
        with pytest.raises(InputIncomplete, match=r"is not complete: .*_SUCCESS is not there; run again"):
            refuse_unmarked(given, MARKER)
    (tmp_path / folder / MARKER).touch()
    for given in (path, f"{tmp_path}/{path}", f"file://{tmp_path}/{path}"):
        refuse_unmarked(given, MARKER)
    (tmp_path / folder / MARKER).unlink()
    (tmp_path / folder / MARKER).mkdir()
    with pytest.raises(InputIncomplete):
        refuse_unmarked(path, MARKER)


def test_a_missing_input_is_not_complete(tmp_path: Path) -> None:
    with pytest.raises(InputIncomplete, match=r"_SUCCESS.*there") as caught:
        refuse_unmarked(str(tmp_path / "none"), MARKER)
    assert caught.value.exit_code == 8


def test_in_a_store() -> None:
    files = fsspec.filesystem("memory")
    files.pipe_file("/complete/day/a.parquet", b"")
    for path in ("memory://complete/day", "memory://complete/day/*.parquet", "memory://complete/day/a.parquet"):
        with pytest.raises(InputIncomplete, match=r"memory://complete/day/_SUCCESS.*there"):
            refuse_unmarked(path, MARKER)
    files.pipe_file("/complete/day/_SUCCESS", b"")
    for path in ("memory://complete/day", "memory://complete/day/*.parquet", "memory://complete/day/a.parquet"):
        refuse_unmarked(path, MARKER)


def test_a_store_that_cannot_be_opened() -> None:
    with pytest.raises(UsageError, match="cannot be opened"):
        refuse_unmarked("nowhere://bucket/day", MARKER)
