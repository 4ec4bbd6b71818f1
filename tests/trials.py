"""What the tests of tests/faults count: how often a fault was tried, and how that ended."""

from __future__ import annotations

from collections import Counter
from typing import Literal, get_args

Outcome = Literal["same", "refused", "wrong"]
"""`same`: the answer of a run that nothing happened to; `refused`: a clear error; `wrong`: anything else."""


class Trials:
    """Counts trials. A test asks for the fixture `trials` and says `trials("a worker is killed", "same")`."""

    def __init__(self) -> None:
        self._counts: dict[str, Counter[Outcome]] = {}

    def __call__(self, fault: str, outcome: Outcome, times: int = 1) -> None:
        """Count trials of a fault; what is `wrong` the test asserts for itself."""
        self._counts.setdefault(fault, Counter())[outcome] += times

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
