"""An earlier result that another run replaces while it is read: one version is read whole, or one error says so."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

import runs
from edgemill.pipeline import InputError, Result, mine, update
from edgemill.pipeline.events import Events
from edgemill.pipeline.explorer.api import Api
from edgemill.pipeline.nightly import delta
from edgemill.pipeline.results import saving
from edgemill.tasks.storage.folders import Folder
from edgemill.tasks.verify.reading import Flaw
from edgemill.tasks.verify.result import verify
from in_process import call

FIRST = [(9 * c + u, 9 * c + v) for c in range(4) for u, v in combinations(range(8), 2)]
SECOND = [(7 * c + u, 7 * c + v) for c in range(3) for u, v in combinations(range(6), 2)]
OPTIONS: dict[str, Any] = {"device": "cpu", "report": False, "incremental": "auto"}
CHANGED = "changed during the run"


@pytest.fixture(scope="module")
def versions(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two results that one place has one after the other."""
    folder = tmp_path_factory.mktemp("versions")
    made = []
    for name, rows in (("first", FIRST), ("second", SECOND)):
        rows_file = runs.write_rows(folder / f"{name}.parquet", rows)
        made.append(mine(rows_file, folder / name, **OPTIONS).path)
    return made


@pytest.fixture
def place(versions: list[Path], tmp_path: Path) -> Path:
    """The first result at a place of its own."""
    shutil.copytree(versions[0], tmp_path / "base")
    runs.write_rows(tmp_path / "batch.parquet", [(500, 501), (500, 502), (501, 502)])
    runs.write_rows(tmp_path / "night.parquet", [*FIRST, (500, 501)])
    return tmp_path / "base"


@pytest.fixture
def replace(versions: list[Path], place: Path) -> Callable[[], None]:
    """Put the second result there, as a run does."""

    def act() -> None:
        shutil.copytree(versions[1], place.with_name("new"))
        os.rename(place, place.with_name("old"))
        os.rename(place.with_name("new"), place)
        shutil.rmtree(place.with_name("old"))

    return act


def at_event(monkeypatch: pytest.MonkeyPatch, number: int, act: Callable[[], None]) -> list[str]:
    """Act when a run emits its event of this number; the names of its events."""
    emit = Events.emit
    seen: list[str] = []

    def also(self: Events, event: str, /, **fields: Any) -> None:
        if len(seen) == number:
            act()
        seen.append(event)
        emit(self, event, **fields)

    monkeypatch.setattr(Events, "emit", also)
    return seen


Run = Callable[[Path], Result]
RUNS: dict[str, Run] = {
    "a batch": lambda base: update(base, base.with_name("out"), insert=base.with_name("batch.parquet"), **QUIET),
    "a night": lambda base: mine(base.with_name("night.parquet"), base.with_name("out"), previous=str(base), **OPTIONS),
    "a full run": lambda base: mine(
        base.with_name("night.parquet"), base.with_name("out"), previous=str(base), full_every=1, **OPTIONS
    ),
}
QUIET: dict[str, Any] = {"device": "cpu", "report": False}


@pytest.mark.parametrize("number", range(0, 17, 4))
@pytest.mark.parametrize("name", RUNS)
def test_an_earlier_result_that_is_replaced_during_a_run(
    place: Path, replace: Callable[[], None], monkeypatch: pytest.MonkeyPatch, name: str, number: int
) -> None:
    """At any of its events: nothing is published from two results."""
    run = Result(place).manifest.run
    events = at_event(monkeypatch, number, replace)
    try:
        made = RUNS[name](place)
    except InputError as error:
        assert CHANGED in str(error)
        assert "base" in str(error) and run in str(error)
        assert not place.with_name("out").exists()
        return
    tracks = made.manifest.tracks
    assert tracks is not None and tracks.previous is not None
    known = {tracks.previous.run} | ({made.manifest.update.base_run} if made.manifest.update else set())
    is_after = number >= len(events) or "run_finished" in events[:number]
    assert known == ({run} if is_after else {Result(place).manifest.run}), (number, events)
    assert runs.flaws(made.path) == []


def test_an_error_while_a_result_is_replaced_says_so(
    place: Path, replace: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        replace()
        raise IndexError("index 17 is out of bounds")

    monkeypatch.setattr("edgemill.pipeline.updating.updating.find_groups", fail)
    with pytest.raises(InputError, match=CHANGED):
        RUNS["a night"](place)
    with pytest.raises(IndexError):  # without a replaced result it stays what it is
        monkeypatch.setattr("edgemill.pipeline.updating.updating.find_groups", lambda *_: [][0])
        RUNS["a night"](place)


@pytest.mark.parametrize(
    "read",
    [
        lambda result: result.edges.to_arrow(),
        lambda result: result.edges.to_pandas(),
        lambda result: result.vertices.to_networkx(),
        lambda result: list(result.edges._batches()),
    ],
    ids=["arrow", "pandas", "networkx", "batches"],
)
def test_tables_of_a_replaced_result(place: Path, replace: Callable[[], None], read: Callable[[Result], Any]) -> None:
    result, known = Result(place), Result(place)
    _ = known.edges, known.vertices  # their footers are read
    replace()
    for opened in (result, known):
        with pytest.raises(InputError, match=CHANGED):
            read(opened)
        assert opened.is_replaced
    read(Result(place))


def test_a_copy_of_a_result_that_is_replaced(
    place: Path, replace: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is replaced after its first file was copied: the copy is not published."""
    result, copy = Result(place), saving._copy
    copied: list[int] = []

    def and_replace(*arguments: Any) -> None:
        copy(*arguments)
        if not copied:
            replace()
        copied.append(1)

    monkeypatch.setattr(saving, "_copy", and_replace)
    with pytest.raises(InputError, match=CHANGED):
        result.save(place.with_name("saved"))
    assert copied and not place.with_name("saved").exists()


def test_a_delta_table_of_a_result_that_is_replaced(
    place: Path, replace: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It gets no version from files of two results, and the next try makes one of the new result."""
    table, result, add = Folder(str(place.with_name("tables") / "edges")), Result(place), delta.add_file

    def and_replace(*arguments: Any) -> None:
        if not result.is_replaced:
            replace()
        add(*arguments)

    monkeypatch.setattr("edgemill.pipeline.nightly.delta.add_file", and_replace)
    assert delta.commit(result, "edges", table) is None
    made = delta.commit(Result(place), "edges", table)
    assert made is not None and (made.version, made.is_new) == (0, True)
    assert [name for name in table.names() if name.endswith(".parquet")] == [
        f"{Result(place).manifest.run}-part-00000.parquet"
    ]


def test_a_result_that_is_written_again_as_it_was_is_not_replaced(place: Path) -> None:
    """As by a copy of a backup."""
    result = Result(place)
    shutil.copytree(place, place.with_name("copy"))
    shutil.rmtree(place)
    os.rename(place.with_name("copy"), place)
    assert result.edges.to_arrow().num_rows == len(FIRST)
    assert not result.is_replaced


COMMANDS = [
    ["show", "{base}"],
    ["top", "{base}"],
    ["of", "{base}", "1"],
    ["diff", "{base}", "{base}"],
    ["report", "{base}", "--output", "{base}.html"],
    ["ktruss", "{base}", "-k", "3"],
    ["verify", "{base}"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_commands_that_read_a_replaced_result(
    place: Path, replace: Callable[[], None], monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    """It is replaced right after its manifest was read, where rows of two results would be mixed."""
    where = "edgemill.tasks.verify.result.check_files" if command[0] == "verify" else "edgemill.pipeline.results.result"
    if command[0] == "verify":

        def check(*_: object) -> None:
            replace()
            raise Flaw("edges/part-00000.parquet is missing")

        monkeypatch.setattr(where, check)
    else:
        opened: list[str] = []
        dataset = Result._dataset

        def and_replace(self: Result, table: str) -> Any:
            if not opened:
                replace()
            opened.append(table)
            return dataset(self, table)

        monkeypatch.setattr(Result, "_dataset", and_replace)
    ended = call(*[word.format(base=place) for word in command])
    assert (ended.exit_code, CHANGED in ended.stderr) == (3, True), ended.output
    assert not place.with_name("base.html").exists()


def test_a_result_that_is_replaced_while_it_is_opened(
    place: Path, replace: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    check = Result._refuse_other_sizes
    checked: list[int] = []

    def and_replace(self: Result) -> None:
        if not checked:
            replace()
        checked.append(1)
        check(self)

    monkeypatch.setattr(Result, "_refuse_other_sizes", and_replace)
    assert len(Result(place).edges.to_arrow()) == len(SECOND)
    assert len(checked) == 2


def test_the_explorer_notices(place: Path, replace: Callable[[], None]) -> None:
    api = Api(Result(place))
    assert not api.replaced()
    replace()
    assert api.replaced()


def test_verify_tells_a_replaced_result_from_a_wrong_one(place: Path) -> None:
    assert verify(place).ok
    (place / "edges/part-00000.parquet").unlink()
    assert not verify(place).ok
