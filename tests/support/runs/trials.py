"""A plugin of pytest for tests/faults: counts how often a fault was tried, and how that ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, get_args

import pytest

Outcome = Literal["same", "refused", "wrong"]
"""`same`: the answer of a run that nothing happened to; `refused`: a clear error; `wrong`: anything else."""


_PROPERTY = "trials"


class Trials:
    """Counts trials. A test asks for the fixture `trials` and says `trials("a worker is killed", "same")`."""

    def __init__(self) -> None:
        self._counts: dict[str, Counter[Outcome]] = {}

    def __call__(self, fault: str, outcome: Outcome, times: int = 1) -> None:
        """Count trials of a fault; what is `wrong` the test asserts for itself."""
        self._counts.setdefault(fault, Counter())[outcome] += times

    def counts(self) -> list[tuple[str, Outcome, int]]:
        """All of it, as plain values."""
        return [(fault, outcome, times) for fault, found in self._counts.items() for outcome, times in found.items()]

    def __len__(self) -> int:
        return sum(map(Counter.total, self._counts.values()))

    def table(self) -> str:
        """The counts as Markdown, a row for each fault."""
        outcomes = get_args(Outcome)
        rows = [
            ["fault", "trials", *outcomes],
            ["---", *["---:"] * (1 + len(outcomes))],
            *(
                [fault, f"{counts.total():,}", *(f"{counts[outcome]:,}" for outcome in outcomes)]
                for fault, counts in sorted(self._counts.items())
            ),
        ]
        return "\n".join(f"| {' | '.join(row)} |" for row in rows)


@pytest.fixture
def trials(request: pytest.FixtureRequest) -> Iterator[Trials]:
    """Counts what a test tries; the table of all tests is printed at the end."""
    counted = Trials()
    yield counted
    request.node.user_properties.append((_PROPERTY, counted.counts()))  # travels from where the test ran


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--trials", metavar="FILE", type=Path, help="write the table of fault trials to this file, too")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print what all tests counted, and write it where `--trials` says."""
    reports = [report for found in terminalreporter.stats.values() for report in found]
    total = Trials()
    for ended in reports:
        if getattr(ended, "when", None) == "teardown":
            for name, counts in ended.user_properties:
                if name == _PROPERTY:
                    for count in counts:
                        total(*count)
    if not total:
        return
    failed = len(terminalreporter.stats.get("failed", [])) + len(terminalreporter.stats.get("error", []))
    report = f"{total.table()}\n\n{len(total):,} trials; {failed} failed tests, whose trials may be missing here."
    terminalreporter.section("fault trials")
    terminalreporter.write_line(report)
    file = config.getoption("--trials")
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(report + "\n", encoding="utf-8")
