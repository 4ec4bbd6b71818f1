"""Synthetic graphs with known properties, written as Parquet with int64 columns `src` and `dst`.

A family of graphs is a frozen dataclass that draws any chunk of its rows independently. So memory does not grow with
the graph, and the rows depend on the parameters and the seed only, not on the number of files.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import MISSING, dataclass, fields
from itertools import pairwise
from pathlib import Path
from typing import ClassVar, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from .errors import NO_SPACE, OutOfRoom, UsageError
from .ids.identity import mix64
from .publish.writing import layout
from .storage.folders import folder_at
from .storage.parquet_checksum import checksummed_writer

Pairs = tuple[NDArray[np.int64], NDArray[np.int64]]

CHUNK_ROWS = 1_000_000
"""Rows drawn at once, and the most rows in a row group. Part of what a seed means: changing it changes the rows."""

_RMAT_STRIDE = 1 << 16  # rows drawn together: every array of a level stays in the cache
_MAX_VERTICES = 1 << 31  # so that the number of pairs fits int64


class Kind(Protocol):
    """A family of graphs with its parameters."""

    name: ClassVar[str]

    @property
    def rows(self) -> int:
        """Number of rows."""
        ...

    def draw(self, start: int, stop: int, seed: int) -> Pairs:
        """Rows start to stop. start is a multiple of CHUNK_ROWS, stop at most start + CHUNK_ROWS."""
        ...


@dataclass(frozen=True)
class RMat:
    """Recursive matrix graph (Chakrabarti, Zhan, Faloutsos, SDM 2004): rows as drawn, duplicates and loops kept."""

    name: ClassVar[str] = "rmat"
    scale: int
    """log2 of the number of vertex labels, 1 to 40."""
    edge_factor: int = 16
    """Rows per vertex label."""
    a: float = 0.57
    """Probability of the upper left quarter."""
    b: float = 0.19
    """Probability of the upper right quarter."""
    c: float = 0.19
    """Probability of the lower left quarter; the lower right one has the rest."""
    permute: bool = False
    """Scramble the vertex labels, so that they carry no locality."""

    def __post_init__(self) -> None:
        _require(1 <= self.scale <= 40, self, "scale", "from 1 to 40")
        _require(self.edge_factor >= 1, self, "edge_factor", "at least 1")
        for corner in "abc":
            _require(0 <= getattr(self, corner) <= 1, self, corner, "a probability from 0 to 1")
        if self.a + self.b + self.c > 1 + 1e-9:
            raise UsageError(f"rmat: a + b + c is {self.a + self.b + self.c:g}; give at most 1 in all")

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.edge_factor << self.scale

    def draw(self, start: int, stop: int, seed: int) -> Pairs:
        """Rows start to stop (see `Kind.draw`)."""
        random = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(start // CHUNK_ROWS,))))
        src = np.empty(stop - start, np.int64)
        dst = np.empty(stop - start, np.int64)
        for at in range(0, stop - start, _RMAT_STRIDE):
            self._descend(random, src[at : at + _RMAT_STRIDE], dst[at : at + _RMAT_STRIDE])
        if self.permute:
            domain = 1 << self.scale
            return _scramble(src, domain, seed), _scramble(dst, domain, seed)
        return src, dst

    def _descend(self, random: np.random.Generator, src: NDArray[np.int64], dst: NDArray[np.int64]) -> None:
        """Fill both arrays. One draw per level selects the quarter, which gives one bit of each label."""
        edge_a, edge_b, edge_c = np.cumsum([self.a, self.b, self.c]).astype(np.float32)
        src[:] = 0
        dst[:] = 0
        for _ in range(self.scale):
            point = random.random(src.size, dtype=np.float32)
            lower = point >= edge_b
            right = (point >= edge_a) ^ lower ^ (point >= edge_c)
            src += src
            src += lower
            dst += dst
            dst += right


@dataclass(frozen=True)
class ErdosRenyi:
    """G(n, m): `edges` different pairs of `vertices` labels, all pairs equally likely."""

    name: ClassVar[str] = "erdos-renyi"
    vertices: int
    edges: int

    def __post_init__(self) -> None:
        _require(2 <= self.vertices <= _MAX_VERTICES, self, "vertices", f"from 2 to {_MAX_VERTICES}")
        pairs = self.vertices * (self.vertices - 1) // 2
        _require(0 <= self.edges <= pairs, self, "edges", f"from 0 to {pairs}, the pairs of {self.vertices} vertices")

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.edges

    def draw(self, start: int, stop: int, seed: int) -> Pairs:
        """Rows start to stop (see `Kind.draw`)."""
        pairs = self.vertices * (self.vertices - 1) // 2
        return _unrank_pairs(_scramble(np.arange(start, stop), pairs, seed))


@dataclass(frozen=True)
class PlantedCliques:
    """Disjoint cliques on scattered labels over an Erdős-Rényi background: λ ≥ clique_size - 2 inside a clique."""

    name: ClassVar[str] = "planted-cliques"
    vertices: int
    edges: int
    """Background edges. One inside a clique is a duplicate row."""
    cliques: int
    clique_size: int

    def __post_init__(self) -> None:
        _ = self._background  # checks vertices and edges
        _require(self.cliques >= 0, self, "cliques", "at least 0")
        _require(self.clique_size >= 2, self, "clique_size", "at least 2")
        if self.cliques * self.clique_size > self.vertices:
            raise UsageError(
                f"planted-cliques: {self.cliques} disjoint cliques of {self.clique_size} vertices need "
                f"{self.cliques * self.clique_size} vertices; vertices is {self.vertices}"
            )

    @property
    def _background(self) -> ErdosRenyi:
        return ErdosRenyi(self.vertices, self.edges)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.edges + self.cliques * (self.clique_size * (self.clique_size - 1) // 2)

    def draw(self, start: int, stop: int, seed: int) -> Pairs:
        """Rows start to stop (see `Kind.draw`)."""
        border = min(max(self.edges, start), stop)
        src, dst = self._background.draw(start, border, seed)
        clique_edges = np.arange(border, stop) - self.edges
        clique, pair = np.divmod(clique_edges, self.clique_size * (self.clique_size - 1) // 2)
        first, second = _unrank_pairs(pair)
        members = [_scramble(clique * self.clique_size + member, self.vertices, seed + 1) for member in (first, second)]
        return np.concatenate([src, members[0]]), np.concatenate([dst, members[1]])


@dataclass(frozen=True)
class TwoSided:
    """Rows between two sides of ids: disjoint groups, in which every vertex of one side is joined to all of the other,
    on scattered ids over a random background. λ by butterflies is at least (group_left - 1)(group_right - 1) inside a
    group.
    """

    name: ClassVar[str] = "two-sided"
    left: int
    """Ids of the first side."""
    right: int
    """Ids of the second side, which may be equal to those of the first."""
    edges: int
    """Background edges. One inside a group is a duplicate row."""
    groups: int
    group_left: int
    group_right: int

    def __post_init__(self) -> None:
        for side in ("left", "right"):
            own, size = getattr(self, side), getattr(self, f"group_{side}")
            _require(1 <= own <= _MAX_VERTICES, self, side, f"from 1 to {_MAX_VERTICES}")
            _require(size >= 1, self, f"group_{side}", "at least 1")
            if self.groups * size > own:
                raise UsageError(
                    f"two-sided: {self.groups} disjoint groups with {size} ids of one side need {self.groups * size} "
                    f"ids; {side} is {own}"
                )
        _require(self.groups >= 0, self, "groups", "at least 0")
        pairs = self.left * self.right
        _require(0 <= self.edges <= pairs, self, "edges", f"from 0 to {pairs}, the pairs of both sides")

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.edges + self.groups * self.group_left * self.group_right

    def draw(self, start: int, stop: int, seed: int) -> Pairs:
        """Rows start to stop (see `Kind.draw`)."""
        border = min(max(self.edges, start), stop)
        background = _scramble(np.arange(start, border), self.left * self.right, seed)
        group, pair = np.divmod(np.arange(border, stop) - self.edges, self.group_left * self.group_right)
        first, second = np.divmod(pair, self.group_right)
        left = _scramble(group * self.group_left + first, self.left, seed + 1)
        right = _scramble(group * self.group_right + second, self.right, seed + 2)
        return np.concatenate([background // self.right, left]), np.concatenate([background % self.right, right])


@dataclass(frozen=True)
class Chain:
    """A strip of triangles, each sharing an edge with the next: 2n + 1 edges, λ = 1 for all."""

    name: ClassVar[str] = "chain"
    triangles: int

    def __post_init__(self) -> None:
        _require(self.triangles >= 1, self, "triangles", "at least 1")

    @property
    def rows(self) -> int:
        """Number of rows."""
        return 2 * self.triangles + 1

    def draw(self, start: int, stop: int, seed: int) -> Pairs:
        """Rows start to stop (see `Kind.draw`)."""
        src, longer = np.divmod(np.arange(start, stop), 2)
        return src, src + 1 + longer


@dataclass(frozen=True)
class Star:
    """One centre, vertex 0, with leaves 1 to n: no triangle, λ = 0."""

    name: ClassVar[str] = "star"
    leaves: int

    def __post_init__(self) -> None:
        _require(self.leaves >= 1, self, "leaves", "at least 1")

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.leaves

    def draw(self, start: int, stop: int, seed: int) -> Pairs:
        """Rows start to stop (see `Kind.draw`)."""
        return np.zeros(stop - start, np.int64), np.arange(start + 1, stop + 1)


@dataclass(frozen=True)
class Clique:
    """Every pair of n vertices: λ = n - 2 for all."""

    name: ClassVar[str] = "clique"
    vertices: int

    def __post_init__(self) -> None:
        _require(2 <= self.vertices <= _MAX_VERTICES, self, "vertices", f"from 2 to {_MAX_VERTICES}")

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.vertices * (self.vertices - 1) // 2

    def draw(self, start: int, stop: int, seed: int) -> Pairs:
        """Rows start to stop (see `Kind.draw`)."""
        return _unrank_pairs(np.arange(start, stop))


@dataclass(frozen=True)
class Grid:
    """A lattice in row-major order with a diagonal in each cell: a large diameter, like a road network; λ = 1 for
    all.
    """

    name: ClassVar[str] = "grid"
    width: int
    """Vertices of a row, and the difference of ids between neighbouring rows."""
    height: int

    def __post_init__(self) -> None:
        for side in ("width", "height"):
            _require(getattr(self, side) >= 2, self, side, "at least 2")
        _require(self.width * self.height <= _MAX_VERTICES, self, "height", f"at most {_MAX_VERTICES} vertices")

    @property
    def rows(self) -> int:
        """Number of rows."""
        return 3 * self._cells + self.width + self.height - 2

    @property
    def _cells(self) -> int:
        return (self.width - 1) * (self.height - 1)

    def draw(self, start: int, stop: int, seed: int) -> Pairs:
        """Rows start to stop: three for each cell, then the right side, then the bottom."""
        row = np.arange(start, stop)
        cell, side = np.divmod(np.minimum(row, 3 * self._cells - 1), 3)
        y, x = np.divmod(cell, self.width - 1)
        corner = y * self.width + x
        falling = _hashed(cell, seed) & 1 == 1
        src = np.where(side == 2, np.where(falling, corner, corner + 1), corner)
        dst = np.choose(
            side, [corner + 1, corner + self.width, np.where(falling, corner + self.width + 1, corner + self.width)]
        )
        border = row - 3 * self._cells
        right, bottom = (border >= 0) & (border < self.height - 1), border >= self.height - 1
        src[right] = (border[right] + 1) * self.width - 1
        dst[right] = src[right] + self.width
        src[bottom] = self.width * (self.height - 1) + border[bottom] - (self.height - 1)
        dst[bottom] = src[bottom] + 1
        return src, dst


@dataclass(frozen=True)
class Communities:
    """Cliques at random positions on a ring. Neighbouring cliques overlap.

    With `permute` ids carry no locality, as in graphs of products bought together; without it they do, as in graphs of
    web pages.
    """

    name: ClassVar[str] = "communities"
    vertices: int
    communities: int
    community_size: int
    spread: int = 2
    """Each member of a community is one of this many neighbouring vertices, at random."""
    permute: bool = False
    """Scramble the ids, so that they carry no locality."""

    def __post_init__(self) -> None:
        _require(1 <= self.vertices <= _MAX_VERTICES, self, "vertices", f"from 1 to {_MAX_VERTICES}")
        _require(self.communities >= 1, self, "communities", "at least 1")
        _require(self.community_size >= 2, self, "community_size", "at least 2")
        _require(self.spread >= 1, self, "spread", "at least 1")
        if self.community_size * self.spread > self.vertices:
            raise UsageError(
                f"communities: {self.community_size} members spread over {self.community_size * self.spread} vertices "
                f"do not fit {self.vertices} vertices"
            )

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.communities * (self.community_size * (self.community_size - 1) // 2)

    def draw(self, start: int, stop: int, seed: int) -> Pairs:
        """Rows start to stop (see `Kind.draw`)."""
        community, pair = np.divmod(np.arange(start, stop), self.community_size * (self.community_size - 1) // 2)
        centre = _hashed(community, seed) % self.vertices
        src, dst = (self._member(community, centre, position, seed) for position in _unrank_pairs(pair))
        return src, dst

    def _member(
        self, community: NDArray[np.int64], centre: NDArray[np.int64], position: NDArray[np.int64], seed: int
    ) -> NDArray[np.int64]:
        step = _hashed(community * self.community_size + position, seed + 1) % self.spread
        vertex = (centre + position * self.spread + step) % self.vertices
        return _scramble(vertex, self.vertices, seed + 2) if self.permute else vertex


KINDS: dict[str, type[Kind]] = {
    kind.name: kind for kind in (RMat, ErdosRenyi, PlantedCliques, TwoSided, Communities, Grid, Chain, Star, Clique)
}
"""The kinds by name. The dataclass fields are the parameters."""


def _require(holds: bool, kind: Kind, parameter: str, allowed: str) -> None:
    if not holds:
        raise UsageError(f"{kind.name}: {parameter} is {getattr(kind, parameter)}; give {allowed}")


def _unrank_pairs(number: NDArray[np.int64]) -> Pairs:
    """The pairs (low, high), low < high, at positions `number` of the sequence (0,1), (0,2), (1,2), (0,3), …"""
    high = ((1 + np.sqrt(1 + 8 * number.astype(np.float64))) / 2).astype(np.int64)
    high -= high * (high - 1) // 2 > number  # the root may be rounded to either side
    high += high * (high + 1) // 2 <= number
    return number - high * (high - 1) // 2, high


def _scramble(number: NDArray[np.int64], domain: int, seed: int) -> NDArray[np.int64]:
    """A seeded permutation of 0 … domain - 1, without a table.

    A few rounds of odd multiplication and folding on the next power of two. Values outside the domain are mapped again
    until they are inside (cycle walking; Black and Rogaway, CT-RSA 2002), at most about twice on average.
    """
    bits = max(1, (domain - 1).bit_length())
    keys = np.random.SeedSequence(seed, spawn_key=(0x5C, bits)).generate_state(8, np.uint64)
    mask = np.uint64((1 << bits) - 1)
    fold = np.uint64((bits + 1) // 2)

    def mix(word: NDArray[np.uint64]) -> NDArray[np.uint64]:
        for multiplier, offset in zip(keys[:4] | np.uint64(1), keys[4:], strict=True):
            word = (word * multiplier + offset) & mask
            word = word ^ (word >> fold)
        return word

    mixed = mix(number.astype(np.uint64))
    outside = np.flatnonzero(mixed >= np.uint64(domain))
    while outside.size:
        walked = mix(mixed[outside])
        mixed[outside] = walked
        outside = outside[walked >= np.uint64(domain)]
    return mixed.astype(np.int64)


def _hashed(number: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
    """A seeded hash of each number, from 0 to 2^63 - 1."""
    start = np.random.SeedSequence(seed, spawn_key=(0x4A,)).generate_state(1, np.uint64)
    return (mix64(number.astype(np.uint64) + start) >> np.uint64(1)).astype(np.int64)


_MAX_FILES = 100_000


def generate(kind: str, output: str | Path, files: int, seed: int, **parameters: int | float | bool) -> list[Path]:
    """Write one graph as `files` Parquet files part-00000.parquet, … in the folder `output`; return their paths.

    Rows go to the files in order, in runs of equal length. On an error no file is left.

    Raises UsageError for an unknown kind or parameter, a value out of range or an output folder that is not empty, and
    OutOfRoom when the disk is full.
    """
    graph = _parse_kind(kind, parameters)
    if not 1 <= files <= _MAX_FILES:
        raise UsageError(f"files: {files} is not a number from 1 to {_MAX_FILES}")
    if seed < 0:
        raise UsageError(f"seed: {seed} is negative; give 0 or more")
    target = folder_at(output)
    if not target.is_local:
        raise UsageError(f"output: {target} is not a folder on a disk, which is what rows are written to")
    folder = _empty_folder(Path(target.url).expanduser())
    paths = [folder / f"part-{number:05d}.parquet" for number in range(files)]
    try:
        _write(graph, seed, paths)
    except BaseException as error:
        for path in paths:
            path.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno in NO_SPACE:
            raise OutOfRoom(f"{folder}: the disk is full; {graph.rows} rows did not fit") from error
        raise
    return paths


def _parse_kind(name: str, parameters: dict[str, int | float | bool]) -> Kind:
    kind = KINDS.get(name)
    if kind is None:
        raise UsageError(f"kind: {name!r} is not one of {', '.join(KINDS)}")
    known = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]  # every Kind is a dataclass
    for parameter in parameters:
        if parameter not in known:
            raise UsageError(f"{name}: unknown parameter {parameter!r}; it takes {', '.join(known)}")
    for field in known.values():
        if field.default is MISSING and field.name not in parameters:
            raise UsageError(f"{name}: give {field.name}")
        value = parameters.get(field.name, 0)
        if field.type == "int" and (isinstance(value, bool) or not isinstance(value, int)):
            raise UsageError(f"{name}: {field.name} is {value!r}; give a whole number")
    return kind(**parameters)


def _empty_folder(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        occupied = any(folder.iterdir())
    except OSError as error:
        raise UsageError(f"output: {folder} cannot be made a folder: {error.strerror}") from error
    if occupied:
        raise UsageError(f"output: {folder} is not empty; give a new or empty folder")
    if not os.access(folder, os.W_OK):
        raise UsageError(f"output: {folder} cannot be written to")
    return folder


def _write(graph: Kind, seed: int, paths: list[Path]) -> None:
    """Write the files in parallel. A chunk that spans several files is drawn for each of them."""
    cuts = [graph.rows * number // len(paths) for number in range(len(paths) + 1)]
    with ThreadPoolExecutor(min(len(paths), pa.cpu_count())) as threads:
        tasks = [
            threads.submit(_write_file, graph, seed, path, *ends)
            for path, ends in zip(paths, pairwise(cuts), strict=True)
        ]
        try:
            for task in tasks:
                task.result()
        finally:
            threads.shutdown(cancel_futures=True)


def _write_file(graph: Kind, seed: int, path: Path, start: int, stop: int) -> None:
    schema = pa.schema([("src", pa.int64()), ("dst", pa.int64())])
    with path.open("wb") as file, checksummed_writer(file, schema, **layout(schema, 0, "zstd")) as writer:
        rows = CHUNK_ROWS
        for chunk in range(start - start % rows, stop if start < stop else 0, rows):
            src, dst = graph.draw(chunk, min(chunk + rows, graph.rows), seed)
            own = slice(max(start - chunk, 0), stop - chunk)
            writer.write_table(pa.table({"src": src[own], "dst": dst[own]}, schema=schema))
