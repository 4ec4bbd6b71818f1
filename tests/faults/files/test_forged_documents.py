"""Each value of each JSON document that edgemill reads back, replaced by an attacker: a message, and nothing elsewhere.

The seals of the documents are right, since anyone may compute them.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, product
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

import runs
from edgemill.pipeline import ClusterLost, mine
from edgemill.pipeline.output.lock import LockOwner
from edgemill.tasks.storage.checksums import is_intact, with_checksum_key, with_checksum_line
from forging import forged, forgeries, places, text, untouched
from in_process import call

CLIQUES = [(9 * c + u, 9 * c + v) for c in range(4) for u, v in combinations(range(8), 2)]
CODES = {0, 2, 3, 4, 5, 6, 7, 8, 9}
"""Documented exit codes but 1, which is a defect, or what `verify` and `status` say of a result."""
QUIET = ["--device", "cpu", "--set", "output.report=false"]


class Document(NamedTuple):
    """A document, how to write it, and the commands that read it."""

    path: Path
    read: Callable[[str], list[Any]]
    """The JSON values in its text."""
    write: Callable[[Sequence[str]], str]
    """The text of these values."""
    commands: list[list[str]]
    prepare: Callable[[], object] = lambda: None
    """Called before each command: a run removes its checkpoint."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a night, its pointer and its Delta tables, and next to it the files of someone else."""
    folder = tmp_path_factory.mktemp("forged")
    (folder / "victim").mkdir()
    (folder / "victim/letters").write_text("dear all")
    (folder / "home").mkdir()
    home = folder / "home"
    runs.write_rows(home / "rows.parquet", CLIQUES)
    runs.write_rows(home / "batch.parquet", [(500, 501), (0, 500)])
    mine(
        home / "rows.parquet",
        home / "results/{date}",
        date="2026-11-01",
        device="cpu",
        report=False,
        incremental="auto",
        output={"format": "delta"},
    )
    before = os.getcwd()
    os.chdir(home)
    yield home
    os.chdir(before)


BASE = "results/2026-11-01"
UPDATE = ["update", BASE, "--insert", "batch.parquet", "--output", "new", *QUIET]


def sealed(values: Sequence[str]) -> str:
    found = with_checksum_key(values[0])
    assert is_intact(found)
    return found.decode()


def with_line(values: Sequence[str]) -> str:
    return with_checksum_line(values[0].encode()).decode()


def manifest(home: Path) -> Document:
    def read(content: str) -> list[Any]:
        found = json.loads(content)
        del found["sha256"]
        return [found]

    report = ["report", BASE, "--output", "new.html"]
    commands = [["show", BASE, "--detail", "--json"], ["status", BASE], ["verify", BASE], UPDATE, report]
    night = ["run", "--input", "rows.parquet", "--output", "results/{date}", "--date", "2026-11-02", *QUIET]
    commands += [["diff", BASE, BASE], ["show", BASE], [*night, "--set", "nightly.incremental=auto"]]
    return Document(home / BASE / "manifest.json", read, sealed, commands)


def state(home: Path) -> Document:
    def read(content: str) -> list[Any]:
        return [json.loads(content.partition("\n")[2])]

    same = ["run", "--input", "rows.parquet", "--output", "new", *QUIET, "--set", f"nightly.previous={BASE}"]
    return Document(home / BASE / "state/index.json", read, with_line, [UPDATE, same])


def pointer(home: Path) -> Document:
    path = home / "results/latest"
    if path.is_symlink():
        path.unlink()
        path.write_text(json.dumps({"format": "edgemill-pointer", "format_version": 1, "result": "2026-11-01"}))
    at = "results/latest"
    commands = [["show", at], ["verify", at], ["status", at]]
    return Document(path, lambda content: [json.loads(content)], lambda values: values[0], commands)


def lock(home: Path) -> Document:
    path = home / ".new.edgemill.lock"
    owner = LockOwner.here("20261101T120000-abcdef").model_copy(update={"pid": 2**22 + 1})
    path.write_bytes(owner.as_json())
    run = ["run", "--input", "rows.parquet", "--output", "new", *QUIET, "--set", f"nightly.previous={BASE}"]
    return Document(path, lambda content: [json.loads(content)], lambda values: values[0], [["status", "new"], run])


def log(home: Path) -> Document:
    commands = [["status", BASE], ["status", BASE, "--json"]]
    return Document(home / BASE / "log.jsonl", by_line, "\n".join, commands)


def delta(home: Path) -> Document:
    night = ["run", "--input", "rows.parquet", "--output", "results/{date}", "--date", "2026-11-01", *QUIET]
    night += ["--set", "output.format=delta", "--set", "nightly.incremental=auto", "--set", "nightly.latest=false"]
    path = home / "results/current/dn_graphs/_delta_log" / f"{0:020}.json"
    night[night.index("2026-11-01")] = "2026-11-03"
    return Document(path, by_line, "\n".join, [night])


def checkpoint(home: Path) -> Document:
    kept, place = home / "kept", home / ".new.edgemill.checkpoint"
    run = ["run", "--input", "rows.parquet", "--output", "new", *QUIET, "--set", "checkpoint.every_seconds=0"]
    if not kept.exists():

        def lose(*_: object) -> None:
            raise ClusterLost("planted")

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("edgemill.pipeline.run.tables.bound", lose)
            assert call(*run).exit_code == 4
        (home / "new.failed.log.jsonl").unlink()
        place.rename(kept)

    def prepare() -> None:
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(kept, place)

    prepare()
    commands = [["status", "new"], run]
    return Document(
        place / "graph.json", lambda content: [json.loads(content.partition("\n")[2])], with_line, commands, prepare
    )


def by_line(content: str) -> list[Any]:
    return [json.loads(line) for line in content.splitlines()]


def forgery_of(document: Document, values: list[Any], number: int, place: tuple[Any, ...], value: Any) -> str:
    """The text of a document with another value at a place of one of its JSON values."""
    texts = [text(one, 1 if len(values) == 1 else None) for one in values]
    texts[number] = text(forged(values[number], place, value), 1 if len(values) == 1 else None)
    return document.write(texts)


@pytest.mark.parametrize(
    ("make", "most"),
    [(manifest, 20), (state, 6), (pointer, 8), (lock, 5), (log, 8), (delta, 1), (checkpoint, 2)],
    ids=lambda own: getattr(own, "__name__", ""),
)
def test_forged_values(home: Path, make: Callable[[Path], Document], most: int) -> None:
    try_forgeries(home, make(home), most)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    "make", [manifest, state, pointer, lock, log, delta, checkpoint], ids=lambda make: make.__name__
)
def test_all_forged_values(home: Path, make: Callable[[Path], Document]) -> None:
    try_forgeries(home, make(home), 20_000)


@pytest.mark.parametrize("name", ["../../../victim/letters", "/etc/passwd", "../log.jsonl", ""])
@pytest.mark.parametrize("rows", ["rows.parquet", "more.parquet"])
def test_names_in_the_index_of_a_state(home: Path, name: str, rows: str) -> None:
    """No night takes a file over by them: neither one without changes, which reads none of the files, nor another."""
    document = state(home)
    runs.write_rows(home / "more.parquet", [*CLIQUES, (700, 701)])
    content, before = document.path.read_text(), {*everything(home)}
    (index,) = document.read(content)
    index["files"][name] = index["files"]["high"]
    document.path.write_text(document.write([text(index, 1)]))
    run = ["run", "--input", rows, "--output", "new", *QUIET, "--set", f"nightly.previous={BASE}"]
    with untouched(home.parent / "victim"), untouched(home.parent, reads=False):
        ended = call(*run)
    document.path.write_text(content)
    assert ended.exit_code == 0, ended.output
    assert all(path.relative_to(home).parts[0] == "new" for path in {*everything(home)} - before)
    assert runs.flaws(home / "new", home / rows) == []
    clean(home, before)


VERTICES = ("settings", "input", "vertices")
"""The table of attributes of vertices, which an update reads again, wherever it is."""


def try_forgeries(home: Path, document: Document, most: int) -> None:
    content = document.path.read_text()
    values, outside = document.read(content), home.parent / "victim/letters"
    where = [(number, place) for number, value in enumerate(values) for place in places(value) if place != VERTICES]
    made = [*product(where, forgeries(outside), document.commands)]
    before = {*everything(home)}
    for number in sorted(Random(7).sample(range(len(made)), min(most, len(made)))):
        (at, place), value, command = made[number]
        forgery = forgery_of(document, values, at, place, value)
        document.prepare()
        document.path.write_text(forgery)
        with untouched(outside.parent), untouched(home.parent, reads=False):
            ended = call(*command)
        told = f"{number}: {' '.join(command)}\n{place} {value!r}\n{difference(content, forgery)}\n{ended.output}"
        mistakes = {1} if command[0] in ("verify", "status") else set()
        assert ended.exit_code in CODES | mistakes, told
        assert not re.search(r"\bunexpected \w+:", ended.output), told  # libraries write of unexpected characters
        assert "Traceback" not in ended.output, told
        for path in sorted({*everything(home)} - before, reverse=True):
            own = path.relative_to(home).parts
            assert own[0].startswith(("new", ".new")) or own[:2] >= ("results", "2026-11-02"), (path, told)
        clean(home, before)
        if document.path.parent.exists():
            document.path.write_text(content)


def difference(old: str, new: str) -> str:
    lines = {*old.splitlines()}
    return "\n".join(line[:200] for line in new.splitlines() if line not in lines)[:1000]


def everything(home: Path) -> list[Path]:
    return [path for path in home.rglob("*") if "current" not in path.parts]


def clean(home: Path, before: set[Path]) -> None:
    for path in home.iterdir():
        if path not in before or path.name.startswith(".new.edgemill.checkpoint"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    for path in (home / "results").iterdir():
        if path not in before and path.name != "current":
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
