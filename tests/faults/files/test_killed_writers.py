"""A process that is killed at any of its changes to the disk: the next one does its work, and leaves nothing else."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import combinations, count
from pathlib import Path
from typing import Any

import pytest

import runs
from edgemill.pipeline import Result, mine
from edgemill.pipeline.nightly.delta import commit
from edgemill.pipeline.output.new_path import new_file, new_folder
from edgemill.pipeline.report.report import write_report
from edgemill.tasks.storage.atomic import atomic_file, create_file, link_or_copy, make_link
from edgemill.tasks.storage.folders import Folder
from edgemill.tasks.storage.pointer import set_pointer
from edgemill.tasks.update.state_index import carry_state, is_unfinished

CALLS = (
    *("link", "rename", "replace", "unlink", "rmdir", "mkdir", "symlink", "fsync", "fchmod", "write", "remove"),
    *("open", "truncate"),
)
"""Functions of os that change a disk."""


class Killed(BaseException):
    """The process is dead: nothing that it still does has an effect."""


@contextmanager
def killed_at(number: int) -> Iterator[list[str]]:
    """Stop the world before this change to the disk. What was called before, and how."""
    made: list[str] = []

    def dying(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def act(*arguments: Any, **more: Any) -> Any:
            if name == "open" and not (len(arguments) > 1 and arguments[1] & (os.O_CREAT | os.O_TRUNC)):
                return call(*arguments, **more)
            if len(made) >= number:
                raise Killed
            made.append(name)
            return call(*arguments, **more)

        return act

    with pytest.MonkeyPatch.context() as patch:
        for name in CALLS:
            patch.setattr(os, name, dying(name, getattr(os, name)))
        yield made


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> list[Result]:
    """Three results of one graph."""
    folder = tmp_path_factory.mktemp("results")
    rows = runs.write_rows(folder / "rows.parquet", combinations(range(6), 2))
    names = ("first", "second", "third")
    return [mine(rows, folder / name, device="cpu", report=False, incremental="auto") for name in names]


def a_pointer(results: list[Result], place: Path) -> None:
    set_pointer(Folder(str(place / "latest")), Folder(str(place / "day")))


def a_link(results: list[Result], place: Path) -> None:
    make_link(place / "link", "day")


def a_file(results: list[Result], place: Path) -> None:
    with atomic_file(place / "file") as file:
        file.write(b"whole")


def a_new_file(results: list[Result], place: Path) -> None:
    with suppress(FileExistsError):
        create_file(place / "created", b"whole")


def a_file_of_the_user(results: list[Result], place: Path) -> None:
    with new_file(place / "page.html", overwrite=True) as file:
        file.write(b"whole")


def a_folder_of_the_user(results: list[Result], place: Path) -> None:
    with new_folder(place / "changes", ["a"], overwrite=True) as folder, new_file(folder / "a") as file:
        file.write(b"whole")


def a_hard_link(results: list[Result], place: Path) -> None:
    link_or_copy(results[0].path / "manifest.json", place / "linked")


def a_state(results: list[Result], place: Path) -> None:
    states = Folder(str(place / "states"))
    for name in states.names():
        if is_unfinished(states.subfolder(name)):
            states.remove(name)
    if not (place / "states/new/index.json").exists():
        carry_state(Folder(str(results[0].path / "state")), states.subfolder("new"), "new")


def a_report(results: list[Result], place: Path) -> None:
    if not (place / "reported").exists():  # the copy may be killed, too
        (shutil.copytree(results[0].path, place / "copy", dirs_exist_ok=True)).rename(place / "reported")
    write_report(place / "reported")


def delta_tables(results: list[Result], place: Path) -> None:
    for result in results[:2]:
        assert commit(result, "edges", Folder(str(place / "edges"))) is not None


QUICK = [a_pointer, a_link, a_file, a_new_file, a_file_of_the_user, a_folder_of_the_user, a_hard_link, a_state]
SLOW = [a_report, delta_tables]


@pytest.mark.parametrize("again", [False, True], ids=["new", "again"])
@pytest.mark.parametrize("write", QUICK, ids=lambda write: write.__name__)
def test_a_writer_that_is_killed(
    results: list[Result], tmp_path: Path, write: Callable[[list[Result], Path], None], again: bool
) -> None:
    try_all(results, tmp_path, write, again)


@pytest.mark.parametrize("write", SLOW, ids=lambda write: write.__name__)
def test_a_long_writer_that_is_killed(
    results: list[Result], tmp_path: Path, write: Callable[[list[Result], Path], None]
) -> None:
    """At some of its changes."""
    try_all(results, tmp_path, write, False, step=7)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("again", [False, True], ids=["new", "again"])
@pytest.mark.parametrize("write", SLOW, ids=lambda write: write.__name__)
def test_a_long_writer_that_is_killed_at_every_change(
    results: list[Result], tmp_path: Path, write: Callable[[list[Result], Path], None], again: bool
) -> None:
    try_all(results, tmp_path, write, again)


def try_all(
    results: list[Result],
    tmp_path: Path,
    write: Callable[[list[Result], Path], None],
    again: bool,
    step: int = 1,
) -> None:
    """Kill a writer at each of its changes in turn; what is there after the next one is what one leaves."""
    wanted: set[str] | None = None
    for number in count(step=step):
        place = tmp_path / f"place-{number}"
        (place / "day").mkdir(parents=True)
        if again:
            write(results, place)
        ended = False
        with killed_at(number) as made, suppress(Killed):
            write(results, place)
            ended = True
        write(results, place)
        write(results, place)
        left = {name_of(path, place) for path in place.rglob("*")}
        if wanted is None:
            fresh = tmp_path / "undisturbed"
            (fresh / "day").mkdir(parents=True)
            for _ in range(2 + again):
                write(results, fresh)
            wanted = {name_of(path, fresh) for path in fresh.rglob("*")}
        assert left == wanted, (number, made)
        shutil.rmtree(place)
        if ended:
            assert number > 0 or made == []
            return


def name_of(path: Path, place: Path) -> str:
    """The name of a path; versions of a Delta table have one name."""
    return re.sub(r"\d{20}\.json", "version.json", path.relative_to(place).as_posix())


RUN = """
import os, sys
sys.path[:0] = {support!r}
number, calls, made = int(sys.argv[1]), {calls!r}, []

def dying(name, call):
    def act(*arguments, **more):
        if name == "open" and not (len(arguments) > 1 and arguments[1] & (os.O_CREAT | os.O_TRUNC)):
            return call(*arguments, **more)
        if {place!r} in str(arguments) or more.get("dir_fd") is not None or name == "fsync":
            if len(made) >= number:
                os._exit(9)
            made.append(name)
        return call(*arguments, **more)
    return act

from edgemill.pipeline import Result, mine
first = Result({first!r})
for name in calls:
    setattr(os, name, dying(name, getattr(os, name)))
if {saves!r}:
    first.save({place!r} + "/out", overwrite=True)
else:
    mine({rows!r}, {place!r} + "/out", previous={first!r}, device="cpu", report=False, overwrite=True, fresh=True)
"""


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("saves", [True, False], ids=["a copy", "a run"])
def test_a_process_that_is_killed(results: list[Result], tmp_path: Path, saves: bool) -> None:
    """The next process takes the lock over."""
    for number in count(step=3):
        place = tmp_path / f"place-{number}"
        place.mkdir()
        first = results[0].path
        facts = {"place": str(place), "first": str(first), "rows": str(first.with_name("rows.parquet")), "saves": saves}
        script = RUN.format(support=sys.path, calls=CALLS, **facts)
        codes = [
            subprocess.run([sys.executable, "-c", script, str(at)], check=False).returncode for at in (number, 10**6)
        ]
        assert codes[1] == 0
        assert {path.name for path in place.iterdir()} == {"out"}, (number, [*place.iterdir()])
        assert runs.flaws(place / "out") == []
        if codes[0] == 0:
            return
