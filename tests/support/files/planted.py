"""A folder of another user, and what this user plants at paths of edgemill."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from edgemill.pipeline import Result, mine
from edgemill.tasks.generate import generate

ALWAYS = {"every_seconds": 0.0}
"""Checkpoints at each chance."""
PLANTED: dict[str, Callable[[Path, Path], object]] = {
    "link": lambda place, victim: place.symlink_to(victim),
    "dangling link": lambda place, victim: place.symlink_to(victim / "nothing"),
    "file": lambda place, victim: place.write_text("mine"),
    "pipe": lambda place, victim: os.mkfifo(place),
}


def make_victim(tmp_path: Path) -> Path:
    """A folder of another user. The test fails if anything in it changes."""
    folder = tmp_path / "victim"
    (folder / "inner").mkdir(parents=True)
    (folder / "letters").write_text("dear all")
    (folder / "inner/graph.json").write_text("{}")
    return folder


def whole(victim: Path) -> bool:
    found = {str(path.relative_to(victim)): path.is_file() and path.read_text() for path in victim.rglob("*")}
    return found == {"letters": "dear all", "inner": False, "inner/graph.json": "{}"}


def given_away(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give a file to another user: root changes the owner, other users pretend to have another id."""
    if os.geteuid() == 0:
        os.lchown(path, 65534, 65534)
    else:
        there = path.lstat().st_uid
        monkeypatch.setattr(os, "geteuid", lambda: there + 1)
        monkeypatch.setattr(Path, "mkdir", _refuse)


def _refuse(*_: object, **__: object) -> None:
    raise PermissionError(errno.EACCES, "Permission denied")


def rows(tmp_path: Path) -> Path:
    """A small graph."""
    generate("rmat", str(tmp_path / "rows"), files=1, seed=4, scale=8, edge_factor=6)
    return tmp_path / "rows"


def run(tmp_path: Path, **settings: Any) -> Result:
    """Mine it in two shards, with checkpoints at each chance."""
    given: dict[str, Any] = {"device": "cpu", "partitions": 2, "output.report": False, "checkpoint": ALWAYS}
    return mine(tmp_path / "rows", settings.pop("out", tmp_path / "out"), **(given | settings))
