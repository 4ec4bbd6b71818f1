"""Events: the log, the records for the manifest, and the displays."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from edgemill.pipeline.events import Events, Listener
from edgemill.pipeline.monitor.display import JsonDisplay, LineDisplay, LiveDisplay, display_for
from edgemill.pipeline.output.manifest import ExchangeRecord
from edgemill.tasks.errors import InputError

EXCHANGE = ExchangeRecord(
    exchange=41, step=3, open_bands=7, settled=10, unsettled=1234567, messages=4, bytes=99, evaluations=5, seconds=0.1
)


def lines(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


def test_log_has_one_json_object_per_event(tmp_path: Path) -> None:
    log, events = tmp_path / "log.jsonl", Events()
    events.emit("too early for the log")
    with events.recording(log, {"cluster": {"workers": None}}):
        with events.stage("read", tasks=2) as stage:
            stage.task_done()
            stage.task_done()
        events.exchange(EXCHANGE)
        events.emit("run_finished", edges=np.int64(3), λ="é")
    names = ["run_started", "stage_started", "task_done", "task_done", "stage_finished", "exchange", "run_finished"]
    logged = lines(log)
    assert [line["event"] for line in logged] == names
    assert {line["run"] for line in logged} == {events.run_id}
    assert all(line["time"].endswith("+00:00") for line in logged)
    assert logged[0]["settings"] == {"cluster": {"workers": None}}
    assert (logged[3]["stage"], logged[3]["done"], logged[3]["tasks"]) == ("read", 2, 2)
    assert logged[5]["unsettled"] == 1234567
    assert logged[6]["edges"] == 3
    assert [record.stage for record in events.stages] == ["read"]
    assert events.exchanges == [EXCHANGE]


def test_failure_is_the_last_line_of_the_log(tmp_path: Path) -> None:
    log, events = tmp_path / "log.jsonl", Events()
    with pytest.raises(InputError), events.recording(log, {}), events.stage("read", 1):
        raise InputError("x.parquet is truncated")
    last = lines(log)[-1]
    assert (last["event"], last["error"], last["exit_code"]) == ("run_failed", "x.parquet is truncated", 3)
    assert events.stages == []


def test_seconds_of_a_stage_are_without_those_of_stages_within_it(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter([0.0, 1.0, 2.0, 4.0, 5.0, 6.0, 7.0, 10.0])
    monkeypatch.setattr("edgemill.pipeline.events.time", SimpleNamespace(perf_counter=lambda: next(now)))
    with Events() as events, events.stage("bound", 0):
        with events.stage("restore", 1), events.stage("read", 1):
            pass
        with events.stage("keep", 1):
            pass
    assert [(record.stage, record.seconds) for record in events.stages] == [
        ("read", 2.0),
        ("restore", 2.0),
        ("keep", 1.0),
        ("bound", 5.0),
    ]


def test_events_of_many_threads_stay_whole(tmp_path: Path) -> None:
    log, events = tmp_path / "log.jsonl", Events()
    with events.recording(log, {}), ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: events.emit("tick", number=number, text="x" * 5000), range(200)))
    assert sorted(line["number"] for line in lines(log)[1:]) == list(range(200))


def run_stages(display: Listener) -> None:
    with Events(display) as events:
        with events.stage("read", tasks=12) as stage:
            stage.task_done(12)
        with events.stage("bound", tasks=16) as stage:
            stage.task_done(5)
            events.exchange(EXCHANGE)


def test_a_pipe_is_quiet_unless_verbose() -> None:
    stream = io.StringIO()
    run_stages(display_for(stream))
    assert stream.getvalue() == ""
    verbose = display_for(stream, verbose=True)
    assert isinstance(verbose, LineDisplay)
    run_stages(verbose)
    read, bound = stream.getvalue().splitlines()
    assert read.startswith("read: 0.0")
    assert read.endswith(" s, 12 tasks")
    assert bound.endswith(" s, 16 tasks, 3 steps, 41 exchanges")


def keeping(events: Events) -> None:
    """The search writes two checkpoints between its exchanges."""
    events.exchange(EXCHANGE)
    for _ in range(2):
        with events.stage("keep", tasks=1) as keep:
            keep.task_done()


def test_a_stage_within_another_in_a_pipe() -> None:
    stream = io.StringIO()
    with Events(display_for(stream, verbose=True)) as events, events.stage("bound", tasks=16):
        keeping(events)
    *kept, bound = stream.getvalue().splitlines()
    assert [line.split(" s, ") for line in kept] == [["keep: 0.00", "1 task"]] * 2
    assert bound.endswith(" s, 16 tasks, 3 steps, 41 exchanges")


def test_a_stage_within_another_on_a_terminal() -> None:
    """After the inner stage has ended, the outer one still runs, and one line shows the seconds of all repetitions."""
    console = Console(file=io.StringIO(), width=110)
    display = LiveDisplay(console)

    def shown() -> list[str]:
        with console.capture() as captured:
            console.print(display)
        return captured.get().rstrip().splitlines()

    with Events(display) as events, events.stage("bound", tasks=0):
        keeping(events)
        kept, bound = shown()
        assert kept.split() == ["keep", "0.00", "s"]
        assert bound.startswith("bound ")
        assert bound.endswith(" 10 of 1,234,577 edges settled  step 3  exchange 41")
        with events.stage("keep", tasks=4):
            _, bound, keep = shown()
            assert bound.startswith("bound ") and bound.endswith(" exchange 41")
            assert keep.startswith("keep ") and keep.endswith(" 0/4")


@pytest.mark.parametrize("verbose", [True, False])
def test_what_is_told_in_any_pipe(verbose: bool) -> None:
    stream = io.StringIO()
    with Events(display_for(stream, verbose)) as events:
        events.emit("serving", what="dashboard", address="http://127.0.0.1:8787/status")
        events.emit("checkpoint_refused", reason="it is damaged")
        events.emit("performance_report_failed", reason="no room")
    told = stream.getvalue().splitlines()
    assert told.pop(0) == "dashboard: http://127.0.0.1:8787/status"
    assert told.pop() == "Warning: the performance report could not be written: no room"
    assert told == ["starting over: it is damaged"] * verbose


def test_json_is_what_the_log_has(tmp_path: Path) -> None:
    stream, log = io.StringIO(), tmp_path / "log.jsonl"
    display = display_for(stream, as_json=True)
    assert isinstance(display, JsonDisplay)
    with Events(display) as events, events.recording(log, {}):
        events.exchange(EXCHANGE)
        events.emit("run_finished", edges=np.int64(3), λ="two\nlines")
    assert stream.getvalue() == log.read_text()
    assert len(stream.getvalue().splitlines()) == 3


def test_several_listen_and_all_are_closed() -> None:
    class Listens:
        def __init__(self, fails: bool = False) -> None:
            self.heard: list[str] = []
            self.fails = fails

        def show(self, event: Mapping[str, Any]) -> None:
            self.heard.append(event["event"])

        def close(self) -> None:
            self.heard.append("closed")
            if self.fails:
                raise OSError("cannot be closed")

    first, second = Listens(fails=True), Listens()
    with pytest.raises(OSError, match="cannot be closed"), Events(first) as events:
        events.emit("one")
        events.add(second)
        events.emit("two")
    assert (first.heard, second.heard) == (["one", "two", "closed"], ["two", "closed"])


def test_a_terminal_is_live(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    stream = Terminal()
    display = display_for(stream, verbose=False)
    assert isinstance(display, LiveDisplay)
    # Of runs in several threads one is live: it takes the place of the process's stderr until it ends.
    other, stderr = display_for(Terminal(), verbose=True), sys.stderr
    assert isinstance(other, LineDisplay)
    run_stages(display)
    assert sys.stderr is stderr
    assert stream.getvalue().endswith("\x1b[?25h")  # the cursor is back
    display.close()  # again
    assert isinstance(display_for(Terminal()), LiveDisplay)


def test_live_display_shows_the_running_stage() -> None:
    console = Console(file=io.StringIO(), width=110)
    display = LiveDisplay(console)
    shown: list[Mapping[str, Any]] = [
        {"event": "stage_finished", "stage": "read", "seconds": 1.25},
        {"event": "stage_started", "stage": "bound", "tasks": 16},
        {"event": "task_done", "stage": "bound", "done": 5, "tasks": 16},
        {"event": "exchange", **asdict(EXCHANGE)},
    ]
    for event in shown:
        display.show(event)
    with console.capture() as captured:
        console.print(display)
    display.close()
    finished, running = captured.get().rstrip().splitlines()
    assert finished.split() == ["read", "1.25", "s"]
    assert running.startswith("bound         0:00")
    assert running.endswith("5/16  10 of 1,234,577 edges settled  step 3  exchange 41")


def line_of(display: LiveDisplay, width: int = 110) -> str:
    console = Console(file=io.StringIO(), width=width)
    with console.capture() as captured:
        console.print(display)
    return " ".join(captured.get().split())


def test_peeling_shows_edges_settled_of_all_and_no_time_left() -> None:
    display = LiveDisplay(Console(file=io.StringIO(), width=110))
    with Events(display) as events, events.stage("bound", tasks=0):
        events.emit("level", level=7, unsettled=4_000_000, edges=15_038_083)
        assert line_of(display).endswith(" 11,038,083 of 15,038,083 edges settled level 7")
        with (narrow := Console(file=io.StringIO(), width=80)).capture() as captured:
            narrow.print(display)
        assert "11,038,083 of 15,038,083 edges settled\n" in captured.get()  # not broken


def test_a_time_left_is_told_where_it_is_known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    clock, begin = [0.0], datetime.now(UTC).replace(microsecond=0)
    own = SimpleNamespace(now=lambda _: begin + timedelta(seconds=clock[0]), fromisoformat=datetime.fromisoformat)
    for module in ("events", "monitor.display"):
        monkeypatch.setattr(f"edgemill.pipeline.{module}.datetime", own)
    display = LiveDisplay(Console(file=io.StringIO(), width=110))
    with Events(display) as events, events.recording(tmp_path / "log.jsonl", {"bounding": {"max_seconds": 90.0}}):
        with events.stage("read", tasks=40) as read:
            clock[0] = 20.0
            read.task_done(3)
            assert "left" not in line_of(display)  # too few tasks for an estimate
            read.task_done(1)
            assert line_of(display).endswith("4/40 about 3:00 left")
        with events.stage("triangulate", tasks=8) as mixed:
            clock[0] = 30.0
            mixed.task_done(5)
            assert line_of(display).endswith(" 5/8")
        with events.stage("bound", tasks=0):
            clock[0] = 60.0
            assert line_of(display).endswith("at most 1:00 left")
