"""The input of the runs that things happen to, and the count of what happened."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgemill.tasks.generate import generate
from trials import Trials

_TRIALS = pytest.StashKey[Trials]()


@pytest.fixture(scope="session")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rows")
    generate("rmat", str(folder), files=3, seed=4, scale=9, edge_factor=8)
    return folder


@pytest.fixture(scope="session")
def trials(pytestconfig: pytest.Config) -> Trials:
    """Counts what a test tries; the table is printed at the end of the session."""
    return pytestconfig.stash.setdefault(_TRIALS, Trials())


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--trials", metavar="FILE", type=Path, help="write the table of fault trials to this file, too")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    trials = config.stash.get(_TRIALS, None)
    if not trials:
        return
    failed = len(terminalreporter.stats.get("failed", [])) + len(terminalreporter.stats.get("error", []))
    report = f"{trials.table()}\n\n{len(trials):,} trials; {failed} failed tests, whose trials may be missing here."
    terminalreporter.section("fault trials")
    terminalreporter.write_line(report)
    file = config.getoption("--trials", None)
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(report + "\n", encoding="utf-8")
