"""The record of figures by release: results, the history and the table of the page."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks import ROOT, record
from benchmarks.record import Figure

HEAD = ("graph", "edges, M", "both, s", "λ, s")
ROWS = [["a", "1", "0.5", "0.4"], ["b", "2", "", "0.6"]]
NEW = Figure("", "2026-11-22", "abc1234", "a machine", "kernels/a/both", "0.5", "s")


def test_figures_of_a_table() -> None:
    found = record.figures("kernels", "a machine", HEAD, ROWS, ("graph",), ("both, s", "λ, s"))
    assert [(one.measure, one.value, one.unit) for one in found] == [
        ("kernels/a/both", "0.5", "s"),
        ("kernels/a/λ", "0.4", "s"),
        ("kernels/b/λ", "0.6", "s"),
    ]
    assert {(one.release, one.machine) for one in found} == {("", "a machine")}
    assert all(len(one.date) == 10 for one in found)


def test_results_are_appended_and_the_table_is_rewritten(tmp_path: Path) -> None:
    results, history, page = (tmp_path / name for name in ("results.csv", "history.csv", "page.md"))
    page.write_text(f"# Page\n\n{record.TITLE}\n\n| old |\n| --- |\n\nText.\n")
    record.append(results, [NEW, replace(NEW, measure="kernels/a/λ", value="0.4")])
    for release in ("1.0", "1.1"):
        _run(f"--release={release}", f"--history={history}", f"--page={page}", str(results))
    found = record.read(history)
    assert [one.release for one in found] == ["1.0", "1.0", "1.1", "1.1"]
    assert found[0] == replace(NEW, release="1.0")
    table = record.table(found)
    assert table.splitlines()[2:] == ["| kernels/a/both | a machine |    s | 0.5 | 0.5 |"]
    assert page.read_text() == f"# Page\n\n{record.TITLE}\n\n{table}\n\nText.\n"


def _run(*arguments: str) -> None:

    parser = argparse.ArgumentParser()
    record.add_options(parser)
    record.report(parser.parse_args(arguments))


def test_refusals(tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    other.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="does not have the columns release, date"):
        record.read(other)
    with pytest.raises(SystemExit, match="needs --release"):
        _run(str(other))
    with pytest.raises(LookupError, match="has no line"):
        record.write_table(other, "")


def test_the_page_has_the_table_of_the_history() -> None:
    history = record.read(record.HISTORY)
    assert len(history) > 100 and all(one.release and one.machine and one.date for one in history)
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert f"{record.TITLE}\n\n{record.table(history)}\n" in page, "run python -m benchmarks record"
