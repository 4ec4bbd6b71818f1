"""Pointers to results: set atomically, followed, and never written over other content."""

from __future__ import annotations

import errno
import json
import os
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import fsspec
import pytest

from edgemill.tasks.errors import InputError, OutOfRoom, StoreLost, UsageError
from edgemill.tasks.storage.folders import Folder, folder_at
from edgemill.tasks.storage.pointer import follow_pointer, pointer_target, refuse_non_pointer, set_pointer

_numbers = count()


@pytest.fixture(params=["disk", "store", "disk without links"])
def root(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    """A folder with results of two days."""
    in_store = request.param == "store"
    place = Folder(f"memory://pointers/{next(_numbers)}") if in_store else folder_at(tmp_path)
    if request.param == "disk without links":

        def refuse(*_: object, **__: object) -> None:
            raise OSError(errno.EPERM, "Operation not permitted")

        monkeypatch.setattr(os, "symlink", refuse)
    for day in ("2026-11-19", "2026-11-20"):
        for name in (day, f"{day}/lambda"):
            place.files.makedirs(place.path(name), exist_ok=True)
            place.files.pipe_file(place.path(f"{name}/manifest.json"), day.encode())
    return place


@pytest.mark.parametrize("name", ["{}", "{}/lambda"])
def test_a_pointer_is_set_and_followed(root: Folder, name: str) -> None:
    latest = root.subfolder(name.format("latest"))
    assert pointer_target(latest) is None
    assert follow_pointer(latest) == latest
    for day in ("2026-11-19", "2026-11-20", "2026-11-19", "2026-11-19"):
        result = root.subfolder(name.format(day))
        set_pointer(latest, result)
        assert (pointer_target(latest), follow_pointer(latest)) == (result, result)
        assert follow_pointer(latest).read("manifest.json") == day.encode()
        assert follow_pointer(result) == result
    refuse_non_pointer(latest)
    left = [entry for entry in (*root.names(), *root.subfolder("latest").names()) if ".edgemill-" in entry]
    assert not left


def test_a_pointer_on_a_disk_is_a_relative_link(tmp_path: Path) -> None:
    """Any program can follow it, also after the folder was moved."""
    (tmp_path / "a/2026-11-20").mkdir(parents=True)
    set_pointer(folder_at(tmp_path / "a/latest"), folder_at(tmp_path / "a/2026-11-20"))
    (tmp_path / "a").rename(tmp_path / "b")
    assert (tmp_path / "b/latest").readlink() == Path("2026-11-20")
    assert follow_pointer(folder_at(tmp_path / "b/latest")) == folder_at(tmp_path / "b/2026-11-20")
    set_pointer(Folder("memory://what/latest"), Folder("memory://what/2026-11-20"))
    content = json.loads(fsspec.filesystem("memory").cat_file("/what/latest"))
    assert content == {"format": "edgemill-pointer", "format_version": 1, "result": "2026-11-20"}


def test_readers_always_find_a_result(tmp_path: Path) -> None:
    """While the pointer changes a thousand times, readers see one of two results."""
    days = [tmp_path / day for day in ("2026-11-19", "2026-11-20")]
    for day in days:
        day.mkdir()
        (day / "manifest.json").write_text(day.name)
    latest = tmp_path / "latest"
    set_pointer(folder_at(latest), folder_at(days[0]))

    def move(latest: Path, days: list[Path]) -> None:
        for at in range(1000):
            set_pointer(folder_at(latest), folder_at(days[at % 2]))

    with ThreadPoolExecutor(1) as pool:
        moves = pool.submit(move, latest, days)
        found = set()
        while not moves.done():
            found.add((latest / "manifest.json").read_text())
        moves.result()
    assert found <= {day.name for day in days}
    assert sorted(os.listdir(tmp_path)) == ["2026-11-19", "2026-11-20", "latest"]


def test_other_content_is_not_replaced(root: Folder) -> None:
    root.files.makedirs(root.path("folder"), exist_ok=True)
    for there, file in (("folder", "folder/x"), ("file", "file")):
        latest = root.subfolder(there)
        root.files.pipe_file(root.path(file), b"mine")
        with pytest.raises(UsageError, match=r"away.*nightly.latest=false"):
            set_pointer(latest, root.subfolder("2026-11-20"))
        assert root.files.cat_file(root.path(file)) == b"mine"
        assert follow_pointer(latest) == latest


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b'{"format": "edgemill-pointer"', "is damaged"),
        (b'{"format": "edgemill-pointer", "format_version": 1}', "is damaged"),
        (b'{"format": "edgemill-pointer", "format_version": 2, "result": "x"}', "has format version 2"),
        (b'{"format": "edgemill-pointer", "format_version": 1, "result": "/etc"}', "which is not beside it"),
        (b'{"format": "edgemill-pointer", "format_version": 1, "result": "s3://b/x"}', "which is not beside it"),
        (b'{"format": "edgemill-pointer", "format_version": 1, "result": 3}', "which is not beside it"),
        (b'["edgemill-pointer"]', "is damaged"),
    ],
)
def test_a_damaged_pointer_is_an_error(root: Folder, text: bytes, message: str) -> None:
    root.files.pipe_file(root.path("latest"), text)
    with pytest.raises(InputError, match=message):
        follow_pointer(root.subfolder("latest"))


def test_nowhere_to_write(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=r"cannot make .*/file/latest point to \.\./x: "):
        set_pointer(folder_at(tmp_path / "file/latest"), folder_at(tmp_path / "x"))
    assert os.listdir(tmp_path) == ["file"]


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "symlink", full)
    with pytest.raises(OutOfRoom, match="/latest point"):
        set_pointer(folder_at(tmp_path / "latest"), folder_at(tmp_path / "x"))
    assert os.listdir(tmp_path) == []


def test_a_link_that_a_user_made(tmp_path: Path) -> None:
    (tmp_path / "result").mkdir()
    (tmp_path / "link").symlink_to("result")
    (tmp_path / "chain").symlink_to("link")
    assert follow_pointer(folder_at(tmp_path / "chain")) == folder_at(tmp_path / "result")


@pytest.mark.parametrize("asked", ["exists", "cat_file"])
def test_a_store_that_cannot_be_reached(monkeypatch: pytest.MonkeyPatch, asked: str) -> None:
    """Whichever request fails first, the error is StoreLost: nothing is reported as absent."""
    root = Folder(f"memory://pointers/{next(_numbers)}")
    latest = root.subfolder("latest")
    set_pointer(latest, root.subfolder("2026-11-20"))

    def unreachable(*_: object, **__: object) -> None:
        raise ConnectionError('Could not connect to the endpoint URL: "https://store.example:9000"')

    monkeypatch.setattr(type(latest.files), asked, unreachable)
    with pytest.raises(
        StoreLost, match=rf"^cannot (look at|read) {root}/latest: Could not connect to the endpoint URL"
    ):
        follow_pointer(latest)
