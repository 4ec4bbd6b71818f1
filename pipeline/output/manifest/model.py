"""The manifest as a model: `RunManifest` has the keys of any run, `Manifest` adds the keys of λ."""

from __future__ import annotations

import platform
from importlib.metadata import version
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AwareDatetime, Field

from ....tasks.storage.own_files import plain_name
from .bounds import BoundingRecord, DenseRecord, ExchangeRecord, LambdaRecord, PartitionRecord, TracksRecord
from .inputs import InputRecord
from .records import Counts, OutputRecord, PlanRecord, ProgramRecord, Record, StageRecord

FORMAT_VERSION = 1


class RunManifest(Record):
    """What any run records."""

    format: Literal["edgemill-result"] = "edgemill-result"
    format_version: int = FORMAT_VERSION
    run: Annotated[str, AfterValidator(plain_name)]
    """The run's id, as in log.jsonl."""
    versions: dict[str, str]
    settings: dict[str, Any]
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
    outputs: list[OutputRecord]

    @property
    def seconds(self) -> float:
        """Wall time of the run."""
        return (self.finished - self.started).total_seconds()

    @property
    def seconds_outside(self) -> float:
        """Wall time of the run that is in no stage."""
        return max(0.0, self.seconds - sum(stage.seconds for stage in self.stages))


class Manifest(RunManifest):
    """All of manifest.json."""

    partitions: list[PartitionRecord]
    bounding: BoundingRecord
    exchanges: list[ExchangeRecord]
    lam: LambdaRecord = Field(alias="lambda")
    """λ; the lower ends of the edges' intervals if the run did not converge."""
    lambda_high: LambdaRecord | None = None
    """The upper ends of the intervals if the run did not converge."""
    converged: bool
    unsettled: int = 0
    """Edges whose interval holds more than one value."""
    dense: DenseRecord | None = None
    """Null if the run did not converge, and in results of earlier releases."""
    tracks: TracksRecord | None = None
    """Null if the run did not converge, and in results of earlier releases."""

    def __repr__(self) -> str:
        counts = ", ".join(f"{number} {name}" for name, number in self.counts if number)
        state = "converged" if self.converged else f"{self.unsettled} edges unsettled"
        return f"Manifest(run {self.run!r} of {self.finished:%Y-%m-%d %H:%M}: {counts}; {state}; model_dump() has all)"

    __str__ = __repr__


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that a result depends on; imports none of them."""
    packages = ("edgemill", "dask", "distributed", "numba", "numpy", "pyarrow")
    return {"python": platform.python_version()} | {name: version(name) for name in packages}
