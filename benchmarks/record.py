"""Append the results of benchmarks to `benchmarks/history.csv`, the record of figures by release.

    python -m benchmarks kernels --results results.csv
    python -m benchmarks record --release 0.1.0 results.csv

A benchmark with `--results FILE` writes one line for each figure: date, commit, machine, measure, value, unit and
command.
`record` adds the release to these lines and appends them to the history. `python docs/making/figures.py` then makes
the tables of docs/numbers.md. Figures of different machines are not comparable.
"""

from __future__ import annotations

import argparse
import csv
import shlex
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import ROOT

HISTORY = ROOT / "benchmarks" / "history.csv"


@dataclass(frozen=True)
class Figure:
    """One line of the history."""

    release: str
    """Version of edgemill; empty in results that are not recorded yet."""
    date: str
    """Day of the measurement, YYYY-MM-DD."""
    commit: str
    """Abbreviated commit of the measured code."""
    machine: str
    """Processor or GPU, and the number of cores used."""
    measure: str
    """Benchmark, graph and column, such as `kernels/rmat18/λ`."""
    value: str
    unit: str
    command: str = ""
    """What was run; empty if that is not known."""


COLUMNS = tuple(field.name for field in fields(Figure))


def figures(
    benchmark: str,
    machine: str,
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    keys: Sequence[str],
    recorded: Sequence[str],
    command: str = "",
) -> list[Figure]:
    """The figures of a benchmark's table.

    `head` are the titles of the columns, `rows` their texts. The columns `keys` identify a row, those in `recorded`
    hold figures; the unit is the part of the title after the comma. `command` made the table.
    """
    day, commit = datetime.now(UTC).date().isoformat(), current_commit()
    found = []
    for row in rows:
        named = [text for title, text in zip(head, row, strict=True) if title in keys]
        for title, text in zip(head, row, strict=True):
            if title in recorded and text:
                name, _, unit = title.partition(", ")
                measure = "/".join([benchmark, *named, name])
                found.append(Figure("", day, commit, machine, measure, text, unit, command))
    return found


def command_of(arguments: Sequence[str]) -> str:
    """The command that ran a benchmark with these arguments, without options that do not change what it measures."""
    kept, rest = [], list(arguments)
    while rest:
        word = rest.pop(0)
        name, equals, _ = word.partition("=")
        if name not in ("--results", "--machine", "--cache"):
            kept.append(word)
        elif not equals and rest:
            rest.pop(0)
    return shlex.join(["python", "-m", "benchmarks", *kept])


def current_commit() -> str:
    """The abbreviated commit of the checkout; empty if it is not a Git checkout."""
    command = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def read(path: Path) -> list[Figure]:
    """The figures of a results file or of the history, none without a file. Raises ValueError for other columns."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    if not rows or tuple(rows[0]) != COLUMNS:
        raise ValueError(f"{path} does not have the columns {', '.join(COLUMNS)}")
    return [Figure(*row) for row in rows[1:]]


def append(path: Path, new: Sequence[Figure]) -> None:
    """Append figures to a results file or to the history; creates the file if there is none."""
    new_file = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new_file:
            writer.writerow(COLUMNS)
        writer.writerows(astuple(one) for one in new)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this command."""
    parser.add_argument("files", nargs="*", type=Path, help="results files to append")
    parser.add_argument("--release", default="", help="version that was measured; needed with results files")
    parser.add_argument("--history", type=Path, default=HISTORY)


def report(options: argparse.Namespace) -> None:
    """Append the results."""
    if options.files and not options.release:
        raise SystemExit("record needs --release with results files")
    new = [replace(one, release=options.release) for path in options.files for one in read(path)]
    append(options.history, new)
    print(f"{len(new)} figures appended to {options.history}")
