"""The page of numbers has what the record says, and each of its figures tells its command, machine and day."""

from __future__ import annotations

import csv

import pytest

import figures

OLD = {
    "measure": "a/b",
    "machine": "M, 2 cores",
    "value": "1",
    "command": "edgemill run",
    "date": "2026-11-01",
}
TABLE = figures.Table(("graph", "s"), (("one", figures.Cell(("other", "a/b"), "M")),))


def test_the_page_and_its_picture_are_what_the_record_says() -> None:
    page = figures.PAGE.read_text(encoding="utf-8")
    assert figures.renewed(page) == page, "run python docs/making/figures.py"
    assert figures.PICTURE.read_text(encoding="utf-8") == figures.drawn(), "run python docs/making/figures.py"
    assert [name for _, name, _ in figures.MADE.findall(page)] == list(figures.TABLES)


def test_every_cell_has_a_figure_but_those_of_graphs_by_machine() -> None:
    """A misspelt measure would leave its cell empty."""
    known = figures.history()
    for name, table in figures.TABLES.items():
        cells = [[one for one in row if isinstance(one, figures.Cell)] for row in table.rows]
        there = [[figures.found(one, known) is not None for one in row] for row in cells]
        if name in ("runs", "levels"):
            assert all(any(row) for row in there) and all(any(column) for column in zip(*there, strict=True))
        else:
            assert sum(not one for row in there for one in row) <= (name == "nights")


def test_the_last_figure_of_a_measure_counts() -> None:
    known = [OLD, {**OLD, "value": "2"}, {**OLD, "value": "3", "machine": "another"}]
    made = figures.made(TABLE, known).splitlines()
    assert made[-3:] == ["| one | 2 |", "", "- `edgemill run`. M, 2 cores, 1 November 2026."]


def test_a_figure_without_a_command_is_refused() -> None:
    with pytest.raises(ValueError, match="a/b"):
        figures.made(TABLE, [{**OLD, "command": ""}])


def test_commands_differ_by_machine_and_row() -> None:
    cell = figures.Cell(("c",), "", "later")
    table = figures.Table(("graph", "s"), (*TABLE.rows, ("two", cell)))
    told = figures.made(table, [OLD, {**OLD, "measure": "c", "command": "x"}]).splitlines()[-2:]
    assert [line.partition(":")[0] for line in told] == ["- one", "- two (later)"]


def test_the_record_has_its_columns() -> None:
    with figures.HISTORY.open(encoding="utf-8", newline="") as file:
        assert next(csv.reader(file))[-4:] == ["measure", "value", "unit", "command"]
