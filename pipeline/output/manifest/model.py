"""The manifest as a model: `RunManifest` has the keys of any run, `Manifest` adds the keys of λ, null without λ."""

from __future__ import annotations

import platform
from functools import lru_cache
from importlib.metadata import version
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AwareDatetime, Field

from ....tasks.errors import UsageError
from ....tasks.storage.own_files import plain_name
from ...messages.setting_names import naming_keywords
from .bounds import BoundingRecord, DenseRecord, ExchangeRecord, LambdaRecord, PartitionRecord, TracksRecord
from .inputs import InputRecord
from .records import Counts, OutputRecord, PlanRecord, ProgramRecord, Record, StageRecord
from .updates import UpdateRecord

FORMAT_VERSION = 1


def _distinct(outputs: list[OutputRecord]) -> list[OutputRecord]:
    """Raises ValueError if two files have one name: an update takes each over under its table and name."""
    if len({tuple(output.path.rsplit("/", 2)[-2:]) for output in outputs}) < len(outputs):
        raise ValueError("two files have one name")
    return outputs


class RunManifest(Record):
    """What any run records."""

    format: Literal["edgemill-result"] = "edgemill-result"
    format_version: int = FORMAT_VERSION
    run: Annotated[str, AfterValidator(plain_name)]
    """The run's id, as in log.jsonl."""
    versions: dict[str, str]
    settings: dict[str, dict[str, Any]]
    """Settings in effect, without storage options."""
    started: AwareDatetime
    finished: AwareDatetime
    input: InputRecord
    counts: Counts
    plan: PlanRecord | None = None
    """Null in results of earlier releases."""
    device: str = "cpu"
    """Where the kernels ran: `cpu`, or the name of a GPU."""
    stages: list[StageRecord]
    programs: list[ProgramRecord] = Field(default_factory=list)
    """Vertex programs, in the order of their columns."""
    update: UpdateRecord | None = None
    """Null if the result was not made from an earlier one."""
    outputs: Annotated[list[OutputRecord], AfterValidator(_distinct)]

    @property
    def seconds(self) -> float:
        """Wall time of the run."""
        return (self.finished - self.started).total_seconds()

    @property
    def seconds_outside(self) -> float:
        """Wall time of the run that is in no stage."""
        return max(0.0, self.seconds - sum(stage.seconds for stage in self.stages))

    @property
    def seconds_for_lambda(self) -> float:
        """Wall time of the run without its vertex programs: what the plan predicts."""
        return max(0.0, self.seconds - sum(program.seconds for program in self.programs))

    @property
    def predicted_programs(self) -> list[tuple[str, float, float]]:
        """Name, predicted and actual seconds of programs: by their first batches of sources, else by the plan. The
        former are those of all batches.
        """
        planned = {} if self.plan is None else self.plan.programs
        found = []
        for program in self.programs:
            facts = program.facts
            if facts.get("predicted_seconds") is not None:
                found.append((program.name, float(facts["predicted_seconds"]), float(facts["batch_seconds"])))
            elif program.name in planned:
                found.append((program.name, planned[program.name], program.seconds))
        return found


class Manifest(RunManifest):
    """All of manifest.json."""

    partitions: list[PartitionRecord]
    how_bounded: BoundingRecord | None = Field(alias="bounding")
    """Null in a run without λ."""
    exchanges: list[ExchangeRecord]
    lambda_low: LambdaRecord | None = Field(alias="lambda")
    """λ; the lower ends of the edges' intervals if a limit ended bounding; null in a run without λ."""
    lambda_high: LambdaRecord | None = None
    """The upper ends of the intervals if a limit ended bounding."""
    converged: bool
    """Whether no limit ended the run: λ is exact, and all programs have converged."""
    unsettled: int = 0
    """Edges whose interval holds more than one value."""
    dense: DenseRecord | None = None
    """Null without exact λ, and in results of earlier releases."""
    tracks: TracksRecord | None = None
    """Null without exact λ, and in results of earlier releases."""

    @property
    def has_lambda(self) -> bool:
        """Whether the run computed λ, or intervals that contain it."""
        return self.lambda_low is not None

    @property
    def exact(self) -> bool:
        """Whether the result has the λ of every edge."""
        return self.has_lambda and self.lambda_high is None

    @property
    @naming_keywords()
    def lam(self) -> LambdaRecord:
        """λ, or the lower ends of the intervals. Raises UsageError for a run without λ."""
        if self.lambda_low is None:
            raise self._without_lambda()
        return self.lambda_low

    @property
    @naming_keywords()
    def bounding(self) -> BoundingRecord:
        """How λ was computed. Raises UsageError for a run without λ."""
        if self.how_bounded is None:
            raise self._without_lambda()
        return self.how_bounded

    def _without_lambda(self) -> UsageError:
        ran = ",".join(program.name for program in self.programs)
        return UsageError(f"run {self.run} computed {ran} and no λ: run again with --programs lambda,{ran}")

    @property
    def unfinished(self) -> list[str]:
        """What a limit ended, as sentences."""
        found = [] if self.lambda_high is None else [f"{self.unsettled:,} edges have an interval instead of lambda"]
        return found + [
            f"{program.name} has not converged after {program.supersteps:,} supersteps"
            for program in self.programs
            if not program.converged
        ]

    def __repr__(self) -> str:
        counts = ", ".join(f"{number} {name}" for name, number in self.counts if number)
        state = "converged" if self.converged else "; ".join(self.unfinished)
        return f"Manifest(run {self.run!r} of {self.finished:%Y-%m-%d %H:%M}: {counts}; {state}; model_dump() has all)"

    __str__ = __repr__


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that a result depends on; imports none of them."""
    return dict(_versions())


@lru_cache(maxsize=1)
def _versions() -> dict[str, str]:
    packages = ("edgemill", "dask", "distributed", "numba", "numpy", "pyarrow")
    return {"python": platform.python_version()} | {name: version(name) for name in packages}
