"""The graphs of the benchmarks by name. Generated graphs are made on first use and kept.

All generated graphs have seed 1. N stands for a number:

rmatN                  R-MAT of scale N, with a, b, c = 0.57, 0.19, 0.19, edge factor 16
cliquesN               N disjoint cliques of 8 vertices; the number of exchanges for λ does not depend on N
gridN                  a lattice of N rows and N columns, like roads
productsN              N vertices in overlapping communities of five with scattered ids, like products bought together
pagesN                 N vertices in overlapping communities of fifteen in the order of ids, like the pages of sites
sparseN, stringN       N rows of a tree, see `id_rows`
starN                  a star with N leaves
pairsN                 N edges that share no vertex
bipartiteN             a complete bipartite graph with N vertices on either side
namesNxL               N rows between vertices with names of L characters

Any other name is a graph of the catalogue of real graphs beside the checkout, in ../shared/data.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import ROOT
from benchmarks.common.id_rows import id_rows
from edgemill.tasks import generate

CACHE = Path(tempfile.gettempdir()) / f"edgemill-benchmarks-{os.getuid()}"
"""Default folder of generated graphs."""

CATALOGUE = ROOT.parent / "shared" / "data" / "CATALOG.json"


class WrongAnswer(Exception):
    """The timed run has a wrong answer."""


@dataclass(frozen=True)
class Answers:
    """Counts and λ of a graph, as known or as found."""

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
    """Known answers; None for R-MAT."""

    def check(self, found: Answers) -> None:
        """Raises WrongAnswer if `found` differs from the known answers."""
        if self.answers is not None and found != self.answers:
            raise WrongAnswer(f"{self.name}: found {found}, known is {self.answers}")


def graph(name: str, cache: Path = CACHE, files: int = 4) -> Graph:
    """The graph with this name, in `files` files if it is generated. Raises LookupError for an unknown name."""
    if match := re.fullmatch(r"rmat(\d+)", name):
        return Graph(name, _generated(cache, files, "rmat", scale=int(match[1]), edge_factor=16))
    if match := re.fullmatch(r"cliques(\d+)", name):
        cliques = int(match[1])
        drawn = {"vertices": 8 * cliques, "edges": 0, "cliques": cliques, "clique_size": 8}
        answers = Answers(8 * cliques, 28 * cliques, 56 * cliques, lambda_max=6, lambda_sum=6 * 28 * cliques)
        return Graph(name, _generated(cache, files, "planted-cliques", **drawn), answers)
    if match := re.fullmatch(r"grid(\d+)", name):
        return Graph(name, _generated(cache, files, "grid", width=int(match[1]), height=int(match[1])))
    if match := re.fullmatch(r"(products|pages)(\d+)", name):
        scattered, vertices = match[1] == "products", int(match[2])
        size = 5 if scattered else 15
        drawn = {"vertices": vertices, "communities": vertices // 3, "community_size": size, "permute": scattered}
        return Graph(name, _generated(cache, files, "communities", **drawn))
    if match := re.fullmatch(r"(sparse|string)(\d+)", name):
        return Graph(name, id_rows(match[1], int(match[2]), cache))
    if match := re.fullmatch(r"names(\d+)x(\d+)", name):
        return Graph(name, _long_names(int(match[1]), int(match[2]), cache))
    if match := re.fullmatch(r"(star|pairs|bipartite)(\d+)", name):
        return _without_triangles(match[1], int(match[2]), cache)
    entries = json.loads(CATALOGUE.read_text())["graphs"] if CATALOGUE.is_file() else []
    for entry in entries:
        if entry["name"] == name:
            answers = Answers(**{key: entry[key] for key in Answers.__dataclass_fields__})
            return Graph(name, CATALOGUE.parent / entry["file"], answers)
    raise LookupError(
        f"{name!r} is neither rmat, cliques, grid, products, pages, sparse, string, star, pairs, bipartite or names "
        f"with a number nor a graph of {CATALOGUE}"
    )


def _without_triangles(kind: str, size: int, cache: Path) -> Graph:
    """A star, pairs or a complete bipartite graph, in row groups of a million."""
    number = np.arange(size)
    if kind == "star":
        low, high, vertices = np.zeros(size, np.int64), number + 1, size + 1
    elif kind == "pairs":
        low, high, vertices = 2 * number, 2 * number + 1, 2 * size
    else:
        low, high, vertices = np.repeat(number, size), np.tile(number + size, size), 2 * size
    folder = cache / f"{kind}-{size}"
    if not folder.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as unfinished:
            made = Path(unfinished) / "graph"
            made.mkdir()
            pq.write_table(pa.table({"src": low, "dst": high}), made / "rows.parquet", row_group_size=1_000_000)
            made.rename(folder)
    return Graph(f"{kind}{size}", folder, Answers(vertices, len(low), 0, lambda_max=0, lambda_sum=0))


def _long_names(rows: int, length: int, cache: Path) -> Path:
    """`rows` random rows in one row group, between half as many vertices, whose names have `length` characters."""
    folder = cache / f"names-{rows}-{length}"
    if not folder.exists():
        cache.mkdir(parents=True, exist_ok=True)
        rng = np.random.default_rng(1)
        vertices = rows // 2
        letters = pa.py_buffer(rng.integers(97, 123, vertices * length, np.uint8))
        starts = pa.py_buffer(length * np.arange(vertices + 1))
        names = pa.LargeStringArray.from_buffers(vertices, starts, letters)
        ends = {end: names.take(pa.array(rng.integers(0, vertices, rows))) for end in ("src", "dst")}
        with tempfile.TemporaryDirectory(dir=cache) as unfinished:
            made = Path(unfinished) / "graph"
            made.mkdir()
            pq.write_table(pa.table(ends), made / "rows.parquet", row_group_size=rows)
            made.rename(folder)
    return folder


def _generated(cache: Path, files: int, kind: str, **parameters: int | bool) -> Path:
    """The folder of a generated graph. Its name has a hash of the generator, so that old graphs are not used."""
    version = hashlib.sha256(Path(str(generate.__file__)).read_bytes()).hexdigest()[:8]
    folder = cache / "-".join([kind, *map(str, parameters.values()), f"{files}files", version])
    if not folder.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as unfinished:
            made = Path(unfinished) / "graph"
            generate.generate(kind, made, files=files, seed=1, **parameters)
            made.rename(folder)
    return folder
