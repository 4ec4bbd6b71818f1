"""Settings of the algorithms: partitions, bounding of λ, estimates, and which programs run."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, PlainValidator, field_validator, model_validator

from ...tasks.errors import UsageError
from ..programs.declared import LAMBDA, installed_names, names_of, shipped_names
from .section import Section

MAX_PARTITIONS = 4096
"""Largest number of partitions of a run."""


def _partition_count(value: object) -> int | str:
    if value == "auto" or (type(value) is int and 1 <= value <= MAX_PARTITIONS):
        return value
    raise ValueError(f"must be auto or a whole number from 1 to {MAX_PARTITIONS}")


class PartitioningSettings(Section):
    """How many workers divide a graph that is too large for one."""

    count: Annotated[int | Literal["auto"], PlainValidator(_partition_count)] = "auto"
    """Groups of shards, 1 to 4096; 1: one worker. `auto` takes what is fastest and fits, see docs/planning.md."""


class BoundingSettings(Section):
    """How λ is found."""

    method: Literal["auto", "peel", "band", "fixpoint"] = "auto"
    """`peel`, or for study `band` or `fixpoint` on copies of the graph, see docs/bounds.md; `auto` is `peel`."""
    carrier: Literal["auto", "mailboxes", "shared-memory", "dask", "nccl"] = "auto"
    """Transport between workers. `auto` takes the first that works of `mailboxes` (GPUs), `shared-memory`, `dask`."""
    operator: Literal["hindex", "tridn", "streamdn"] = "hindex"
    """Of `fixpoint`: `hindex`; `tridn`, one at a time; `streamdn`, with estimates of λ besides, see docs/bounds.md."""
    permutations: int = Field(128, ge=1, le=1024)
    """Permutations of `streamdn`; each takes 8 bytes a vertex."""
    max_exchanges: int | None = Field(None, ge=1)
    """Stop `band` or `fixpoint` after this many iterations, with λ intervals and exit code 5. `peel` refuses it."""
    max_seconds: float | None = Field(None, gt=0)
    """Stop bounding after this many seconds, with λ intervals and exit code 5; null: no limit."""

    @model_validator(mode="after")
    def _check_operator(self) -> Self:
        if self.operator != "hindex" and self.method != "fixpoint":
            raise ValueError(f"bounding.operator={self.operator} needs bounding.method=fixpoint, not {self.method}")
        return self


class ProgramsSettings(Section):
    """What is computed."""

    run: tuple[str, ...] = ("lambda",)
    """`lambda`, and vertex programs that add columns, such as `pagerank,components`, see docs/programs.md."""
    max_supersteps: int | None = Field(None, ge=1)
    """Stop each program after this many supersteps, with the values of then and exit code 5; null: no limit."""
    max_seconds: float | None = Field(None, gt=0)
    """Stop each program after this many seconds, with the values of then and exit code 5; null: no limit."""

    own: tuple[str, ...] = ()
    """Your own programs, `module:Class` or `name=module:Class`: imported and run, see docs/own-programs.md."""
    order: Literal["auto", "synchronous", "asynchronous"] = "auto"
    """Order of supersteps of programs for which it does not matter, see docs/programs.md. Results are the same."""

    device_topology_bytes: int | None = Field(None, ge=0)
    """GPU memory of a worker for edges; others stream from host memory. null: what is free (docs/programs.md)."""

    @field_validator("run", "own", mode="before")
    @classmethod
    def _split_names(cls, names: object) -> object:
        if isinstance(names, str):
            return tuple(name.strip() for name in names.split(","))
        return tuple(names) if isinstance(names, list) else names

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        try:
            own = names_of(self.own)
        except UsageError as error:
            raise ValueError(str(error)) from error
        known = (LAMBDA, *shipped_names(), *own)
        for name in self.run:
            if name not in known and name not in installed_names():
                raise ValueError(f"programs.run: unknown program {name!r}; known programs: {', '.join(known)}")
        if len(set(self.run)) < len(self.run):
            raise ValueError("programs.run: names a program twice")
        if not self.run:
            raise ValueError(f"programs.run: names no program; known programs: {', '.join(known)}")
        return self

    @property
    def find_lambda(self) -> bool:
        """Whether the run computes λ."""
        return LAMBDA in self.run

    @property
    def vertex_programs(self) -> tuple[str, ...]:
        """The vertex programs of the run, in the order of their columns: that of `run`, then others of `own`."""
        return tuple(dict.fromkeys(name for name in (*self.run, *names_of(self.own)) if name != LAMBDA))


class EstimateSettings(Section):
    """The command `estimate`."""

    samples: int = Field(200_000, ge=100, le=100_000_000)
    """Wedges in the sample. Four times as many halve the intervals."""
    seed: int = Field(1, ge=0)
    """Seed of the sample. The same seed gives the same sample for any number of workers."""
