"""Append the results of benchmarks to `benchmarks/history.csv`, the record of figures by release.

    python -m benchmarks kernels --results results.csv
    python -m benchmarks record --release 0.1.0 results.csv
    python -m benchmarks record

A benchmark with `--results FILE` writes one line for each figure: date, commit, machine, measure, value and unit.
`record` adds the release to these lines, appends them to the history and rewrites the table of docs/benchmarks.md.
Without files it only rewrites the table. Figures of different machines are not comparable.
"""

from __future__ import annotations

import argparse
import csv
import re
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import ROOT
from benchmarks.common.table import markdown

HISTORY = ROOT / "benchmarks" / "history.csv"
PAGE = ROOT / "docs" / "benchmarks.md"
TITLE = "<!-- Figures by release -->"
SHOWN = ("both", "run", "first run", "above", "peel", "λ")
"""Last parts of the measures that the table of the page has. The history has all of them."""


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


COLUMNS = tuple(field.name for field in fields(Figure))


def figures(
    benchmark: str,
    machine: str,
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    keys: Sequence[str],
    recorded: Sequence[str],
) -> list[Figure]:
    """The figures of a benchmark's table.

    `head` are the titles of the columns, `rows` their texts. The columns `keys` identify a row, those in `recorded`
    hold figures; the unit is the part of the title after the comma.
    """
    day, commit = datetime.now(UTC).date().isoformat(), current_commit()
    found = []
    for row in rows:
        named = [text for title, text in zip(head, row, strict=True) if title in keys]
        for title, text in zip(head, row, strict=True):
            if title in recorded and text:
                name, _, unit = title.partition(", ")
                measure = "/".join([benchmark, *named, name])
                found.append(Figure("", day, commit, machine, measure, text, unit))
    return found


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


def table(history: Sequence[Figure]) -> str:
    """A Markdown table of the SHOWN measures: one line for each machine and measure, one column for each release.

    Lines and columns are in the order of the history. If a release has several values of a measure, the last one
    counts. Where a benchmark has the measure `both`, its part `λ` is left out.
    """
    releases = list(dict.fromkeys(one.release for one in history))
    measures = {one.measure for one in history}
    values: dict[tuple[str, str, str], dict[str, str]] = {}
    for one in history:
        row, _, last = one.measure.rpartition("/")
        if last in SHOWN and not (last == "λ" and f"{row}/both" in measures):
            values.setdefault((one.measure, one.machine, one.unit), {})[one.release] = one.value
    rows = [[*key, *(found.get(release, "") for release in releases)] for key, found in values.items()]
    return markdown(["measure", "machine", "unit", *releases], rows)


def write_table(page: Path, text: str) -> None:
    """Replace the table that follows TITLE in a page. Raises LookupError if the page has no such table."""
    before = page.read_text(encoding="utf-8")
    pattern = re.compile(rf"{re.escape(TITLE)}\n\n(\|[^\n]*\n)*")
    if not pattern.search(before):
        raise LookupError(f"{page} has no line {TITLE}")
    page.write_text(pattern.sub(lambda _: f"{TITLE}\n\n{text}\n", before), encoding="utf-8")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this command."""
    parser.add_argument("files", nargs="*", type=Path, help="results files to append")
    parser.add_argument("--release", default="", help="version that was measured; needed with results files")
    parser.add_argument("--history", type=Path, default=HISTORY)
    parser.add_argument("--page", type=Path, default=PAGE, help="page whose table is rewritten")


def report(options: argparse.Namespace) -> None:
    """Append the results, and rewrite the table."""
    if options.files and not options.release:
        raise SystemExit("record needs --release with results files")
    new = [replace(one, release=options.release) for path in options.files for one in read(path)]
    append(options.history, new)
    write_table(options.page, table(read(options.history)))
    print(f"{len(new)} figures appended to {options.history}")
