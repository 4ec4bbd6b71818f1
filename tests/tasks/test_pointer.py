"""Pointers to results: moved from one moment to the next, followed, and never in place of something else."""

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
from edgemill.tasks.places import Place, place_of
from edgemill.tasks.pointer import follow, point, pointed, refuse_others

_numbers = count()


@pytest.fixture(params=["disk", "store", "disk without links"])
def root(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A folder with results of two days."""
    in_store = request.param == "store"
    place = Place(f"memory://pointers/{next(_numbers)}") if in_store else place_of(tmp_path)
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
def test_it_is_moved_and_followed(root: Place, name: str) -> None:
    latest = root.within(name.format("latest"))
    assert pointed(latest) is None
    assert follow(latest) == latest
    for day in ("2026-11-19", "2026-11-20", "2026-11-19", "2026-11-19"):
        result = root.within(name.format(day))
        point(latest, result)
        assert (pointed(latest), follow(latest)) == (result, result)
        assert follow(latest).read("manifest.json") == day.encode()
        assert follow(result) == result
    refuse_others(latest)
    left = [entry for entry in (*root.names(), *root.within("latest").names()) if ".edgemill-" in entry]
    assert not left


def test_what_it_is(tmp_path: Path) -> None:
    """On a disk any program can follow it, also when the folder has moved."""
    (tmp_path / "a/2026-11-20").mkdir(parents=True)
    point(place_of(tmp_path / "a/latest"), place_of(tmp_path / "a/2026-11-20"))
    (tmp_path / "a").rename(tmp_path / "b")
    assert (tmp_path / "b/latest").readlink() == Path("2026-11-20")
    assert follow(place_of(tmp_path / "b/latest")) == place_of(tmp_path / "b/2026-11-20")
    point(Place("memory://what/latest"), Place("memory://what/2026-11-20"))
    content = json.loads(fsspec.filesystem("memory").cat_file("/what/latest"))
    assert content == {"format": "edgemill-pointer", "format_version": 1, "result": "2026-11-20"}


def test_readers_always_find_it(tmp_path: Path) -> None:
    """While it is moved a thousand times: one result or the other."""
    days = [tmp_path / day for day in ("2026-11-19", "2026-11-20")]
    for day in days:
        day.mkdir()
        (day / "manifest.json").write_text(day.name)
    latest = tmp_path / "latest"
    point(place_of(latest), place_of(days[0]))

    def move(latest: Path, days: list[Path]) -> None:
        for at in range(1000):
            point(place_of(latest), place_of(days[at % 2]))

    with ThreadPoolExecutor(1) as pool:
        moves = pool.submit(move, latest, days)
        found = set()
        while not moves.done():
            found.add((latest / "manifest.json").read_text())
        moves.result()
    assert found <= {day.name for day in days}
    assert sorted(os.listdir(tmp_path)) == ["2026-11-19", "2026-11-20", "latest"]


def test_something_else_is_left_alone(root: Place) -> None:
    root.files.makedirs(root.path("folder"), exist_ok=True)
    for there, file in (("folder", "folder/x"), ("file", "file")):
        latest = root.within(there)
        root.files.pipe_file(root.path(file), b"mine")
        with pytest.raises(UsageError, match=r"is there and is not a pointer: move it away, or .*nightly.latest=false"):
            point(latest, root.within("2026-11-20"))
        assert root.files.cat_file(root.path(file)) == b"mine"
        assert follow(latest) == latest


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b'{"format": "edgemill-pointer"', "is damaged"),
        (b'{"format": "edgemill-pointer", "format_version": 1}', "is damaged"),
        (b'{"format": "edgemill-pointer", "format_version": 2, "result": "x"}', "has format version 2"),
        (b'{"format": "edgemill-pointer", "format_version": 1, "result": "/etc"}', "no place beside it"),
        (b'{"format": "edgemill-pointer", "format_version": 1, "result": "s3://b/x"}', "no place beside it"),
        (b'{"format": "edgemill-pointer", "format_version": 1, "result": 3}', "no place beside it"),
        (b'["edgemill-pointer"]', "is damaged"),
    ],
)
def test_a_damaged_pointer_is_told(root: Place, text: bytes, message: str) -> None:
    root.files.pipe_file(root.path("latest"), text)
    with pytest.raises(InputError, match=message):
        follow(root.within("latest"))


def test_nowhere_to_write(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=r"cannot make .*/file/latest point to \.\./x: "):
        point(place_of(tmp_path / "file/latest"), place_of(tmp_path / "x"))
    assert os.listdir(tmp_path) == ["file"]


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "symlink", full)
    with pytest.raises(OutOfRoom, match=r"cannot make .*/latest point to x: No space left"):
        point(place_of(tmp_path / "latest"), place_of(tmp_path / "x"))
    assert os.listdir(tmp_path) == []


def test_a_link_of_a_user_s_own(tmp_path: Path) -> None:
    (tmp_path / "result").mkdir()
    (tmp_path / "link").symlink_to("result")
    (tmp_path / "chain").symlink_to("link")
    assert follow(place_of(tmp_path / "chain")) == place_of(tmp_path / "result")


@pytest.mark.parametrize("asked", ["exists", "cat_file"])
def test_a_store_that_cannot_be_reached(monkeypatch: pytest.MonkeyPatch, asked: str) -> None:
    """Is told of as such, whichever question is the first that it does not answer: nothing is taken for absent."""
    root = Place(f"memory://pointers/{next(_numbers)}")
    latest = root.within("latest")
    point(latest, root.within("2026-11-20"))

    def unreachable(*_: object, **__: object) -> None:
        raise ConnectionError('Could not connect to the endpoint URL: "https://store.example:9000"')

    monkeypatch.setattr(type(latest.files), asked, unreachable)
    with pytest.raises(
        StoreLost, match=rf"^cannot (look at|read) {root}/latest: Could not connect to the endpoint URL"
    ):
        follow(latest)
