"""The graphs of the benchmarks by name: `rmat18` is made on first use and kept, others are in the catalogue.

R-MAT has a, b, c = 0.57, 0.19, 0.19, edge factor 16, seed 1, four files. The catalogue lies beside the checkout, in
../shared/data.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks import ROOT

CACHE = Path(tempfile.gettempdir()) / f"edgemill-benchmarks-{os.getuid()}"
"""Where generated graphs are kept unless told otherwise."""

CATALOGUE = ROOT.parent / "shared" / "data" / "CATALOG.json"


class WrongAnswer(Exception):
    """What was timed is not right, so its time says nothing."""


@dataclass(frozen=True)
class Answers:
    """What a graph is known, or was found, to have."""

    vertices: int
    edges: int
    triangles: int
    lambda_max: int
    lambda_sum: int


@dataclass(frozen=True)
class Graph:
    """One input of a benchmark."""

    name: str
    path: Path
    """Parquet file, or folder of such files."""
    answers: Answers | None = None
    """As published or found by other programs; None for a generated graph."""

    def check(self, found: Answers) -> None:
        """Raises WrongAnswer unless `found` is what is known; nothing is known of a generated graph."""
        if self.answers is not None and found != self.answers:
            raise WrongAnswer(f"{self.name}: found {found}, known is {self.answers}")


def graph(name: str, cache: Path = CACHE) -> Graph:
    """The graph of that name; LookupError if there is none."""
    if match := re.fullmatch(r"rmat(\d+)", name):
        return Graph(name, _generated(int(match[1]), cache))
    entries = json.loads(CATALOGUE.read_text())["graphs"] if CATALOGUE.is_file() else []
    for entry in entries:
        if entry["name"] == name:
            answers = Answers(**{key: entry[key] for key in Answers.__dataclass_fields__})
            return Graph(name, CATALOGUE.parent / entry["file"], answers)
    raise LookupError(f"{name!r} is neither rmat and a scale nor a graph of {CATALOGUE}")


def _generated(scale: int, cache: Path) -> Path:
    """Its folder; the name tells the version of the generator, so an old graph is never taken for the new one."""
    from edgemill.tasks import generate

    version = hashlib.sha256(Path(generate.__file__).read_bytes()).hexdigest()[:8]
    folder = cache / f"rmat{scale}-factor16-seed1-{version}"
    if not folder.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as unfinished:
            made = Path(unfinished) / "graph"
            generate.generate("rmat", made, files=4, seed=1, scale=scale, edge_factor=16)
            made.rename(folder)
    return folder
