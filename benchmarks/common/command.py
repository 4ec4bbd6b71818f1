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

METHODS = ("band", "fixpoint")
"""Methods besides peeling."""


@dataclass(frozen=True)
class Layout:
    """How a run finds λ: by peeling in a number of shards or alone, or by another method."""

    shards: int = 1
    method: str = "peel"

    @classmethod
    def parse(cls, text: str) -> Self:
        """From a number of shards or one of METHODS; ValueError for anything else."""
        if text in METHODS:
            return cls(method=text)
        if not text.isdigit():
            raise ValueError(f"{text!r} is not a number of shards, or one of {', '.join(METHODS)}")
        return cls(int(text))

    @property
    def settings(self) -> dict[str, Any]:
        """Settings for `mine`."""
        return {"partitions": self.shards} if self.method == "peel" else {"method": self.method}

    @property
    def arguments(self) -> list[str]:
        """Flags of the command."""
        return [part for name, value in self.settings.items() for part in (f"--{name}", str(value))]

    def __str__(self) -> str:
        if self.method != "peel":
            return self.method
        return "1" if self.shards == 1 else f"{self.shards} shards"


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
