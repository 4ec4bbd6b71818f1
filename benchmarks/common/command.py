"""The command `edgemill run` as a user starts it, timed from outside."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from benchmarks.common.graphs import Answers
from edgemill.pipeline.output.manifest import ShardsRecord, read_manifest
from edgemill.pipeline.stages.partitioning import METHODS


@dataclass(frozen=True)
class Layout:
    """Number of partitions and partitioner of a run."""

    partitions: int
    method: str = "shards"
    """shards, or range or hash for partitions with ghosts and banding."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """From `1`, `4`, `4-range`, `4-hash` and so on; ValueError for anything else."""
        count, _, method = text.partition("-")
        if method not in ("", *METHODS):
            raise ValueError(f"{text!r} is not a count, or a count, a dash and one of {', '.join(METHODS)}")
        return cls(int(count), method or "shards")

    @property
    def settings(self) -> dict[str, Any]:
        """Settings for `mine`."""
        if self.method == "shards":
            return {"partitions": self.partitions}
        return {"partitioning": {"count": self.partitions, "method": self.method}, "method": "band"}

    @property
    def arguments(self) -> list[str]:
        """Flags of the command."""
        own = ["--partitions", str(self.partitions)]
        if self.method == "shards":
            return own
        return [*own, "--method", "band", "--set", f"partitioning.method={self.method}"]

    def __str__(self) -> str:
        return str(self.partitions) if self.partitions == 1 else f"{self.partitions} {self.method}"


@dataclass(frozen=True)
class CommandRun:
    """One run of the command."""

    seconds: float
    """Wall time of the process, from its start to its end."""
    stages: Mapping[str, float]
    """Seconds of each stage, from the manifest."""
    exchanges: int
    answers: Answers
    shards: ShardsRecord | None = None
    """Record of the shards, if the run peeled shards."""

    @property
    def rest_seconds(self) -> float:
        """Seconds outside the stages: start and end of Python and Dask, reading footers, the commit."""
        return self.seconds - sum(self.stages.values())


def run_command(path: Path, layout: Layout, scratch: Path, environment: Mapping[str, str] | None = None) -> CommandRun:
    """Run edgemill in a layout; see `run_with`."""
    return run_with(path, layout.arguments, scratch, environment)


def run_with(
    path: Path, arguments: Sequence[str], scratch: Path, environment: Mapping[str, str] | None = None
) -> CommandRun:
    """Run edgemill on the edges at `path`, with a temporary output below `scratch`.

    The process inherits the cores of this one; `environment` adds to its variables. If it fails, its stderr is printed
    and CalledProcessError raised.
    """
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        out = Path(folder) / "out"
        start = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "edgemill.pipeline", "run", "--input", str(path), "--output", str(out), *arguments],
            env={**os.environ, "PYTHONSAFEPATH": "1", **(environment or {})},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        elapsed = time.perf_counter() - start
        if done.returncode:
            sys.stderr.write(done.stderr)
            done.check_returncode()
        manifest = read_manifest(out)
    counts = manifest.counts
    answers = Answers(counts.vertices, counts.edges, counts.triangles or 0, manifest.lam.max, manifest.lam.sum)
    stages = {stage.stage: stage.seconds for stage in manifest.stages}
    return CommandRun(elapsed, stages, len(manifest.exchanges), answers, manifest.bounding.shards)
