"""The record of figures by release: results and the history."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks import record
from benchmarks.record import Figure

HEAD = ("graph", "edges, M", "both, s", "λ, s")
ROWS = [["a", "1", "0.5", "0.4"], ["b", "2", "", "0.6"]]
NEW = Figure("", "2026-11-22", "abc1234", "a machine", "kernels/a/both", "0.5", "s", "a command")


def test_figures_of_a_table() -> None:
    found = record.figures("kernels", "a machine", HEAD, ROWS, ("graph",), ("both, s", "λ, s"))
    assert [(one.measure, one.value, one.unit) for one in found] == [
        ("kernels/a/both", "0.5", "s"),
        ("kernels/a/λ", "0.4", "s"),
        ("kernels/b/λ", "0.6", "s"),
    ]
    assert {(one.release, one.machine) for one in found} == {("", "a machine")}
    assert all(len(one.date) == 10 for one in found)


def test_results_are_appended(tmp_path: Path) -> None:
    results, history = tmp_path / "results.csv", tmp_path / "history.csv"
    record.append(results, [NEW, replace(NEW, measure="kernels/a/λ", value="0.4")])
    for release in ("1.0", "1.1"):
        _run(f"--release={release}", f"--history={history}", str(results))
    found = record.read(history)
    assert [one.release for one in found] == ["1.0", "1.0", "1.1", "1.1"]
    assert found[0] == replace(NEW, release="1.0")


def test_the_command_of_a_figure() -> None:
    given = ["kernels", "--results", "out.csv", "--graphs", "a b", "--machine=here", "--repeats", "3"]
    command = record.command_of(given)
    assert command == "python -m benchmarks kernels --graphs 'a b' --repeats 3"
    found = record.figures("kernels", "a machine", HEAD, ROWS, ("graph",), ("both, s",), command)
    assert [one.command for one in found] == [command]


def _run(*arguments: str) -> None:
    parser = argparse.ArgumentParser()
    record.add_options(parser)
    record.report(parser.parse_args(arguments))


def test_refusals(tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    other.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=r"not have.*columns release, date"):
        record.read(other)
    with pytest.raises(SystemExit, match="needs --release"):
        _run(str(other))


def test_each_figure_of_the_history_tells_where_it_is_from() -> None:
    history = record.read(record.HISTORY)
    assert len(history) > 100 and all(one.release and one.machine and one.date for one in history)
