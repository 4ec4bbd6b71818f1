"""Checks of the columns of programs of edgemill, with NumPy alone: they share no code with the programs.

The class of a program names its check (`Program.check`). Columns that depend on directions or weights are checked by
the edges of the input, as the result stores neither; those of undirected graphs without weights by either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..ids.display import parse_id
from ..storage.folders import Folder
from .arcs import Arcs, arcs_of
from .groups import compare_groups, groups_by_level, read_groups
from .reading import Flaw, Int, positions, read_file, reject, table_files
from .tables import EdgeTable, VertexTable, edge_at
from .triangles import orient, triangles

ROUNDING = 1e-12
"""Tolerance for sums of ranks that are added in another order."""

SEARCHED_ARCS = 10**7
"""Most arcs, times sources, for which all searches are repeated."""
SEARCHED = 16
"""Vertices that are searched from in larger graphs."""

Record: TypeAlias = Mapping[str, Any]
"""What the manifest says of a program: its parameters, supersteps, and facts."""


@dataclass(frozen=True)
class CheckByEdges:
    """A check of columns that do not depend on directions and weights, by the edges of the result."""

    run: Callable[[EdgeTable, VertexTable, Record], None]
    """Raises Flaw."""


@dataclass(frozen=True)
class CheckGroups:
    """A check of a table of groups, by the edges of the result."""

    run: Callable[[Folder, dict[str, Any], EdgeTable, VertexTable, Arcs | None], tuple[str, bool]]
    """From the result and its manifest; the last are the edges with the directions and weights that the program used,
    None if they are not known. Returns the detail of the check, and that it was made. Raises Flaw.
    """


@dataclass(frozen=True)
class CheckByArcs:
    """A check of columns that depend on directions or weights."""

    run: Callable[[Arcs, VertexTable, Record], None]
    """Raises Flaw."""

    needs_weights: bool = False
    """Whether the program uses weights whatever its parameters are."""

    repeats_supersteps: bool = False
    """Whether it repeats the supersteps of the run, so that it also checks a program that has not converged."""

    def needs_weights_for(self, record: Record) -> bool:
        """Whether the program used weights in this run."""
        return self.needs_weights or bool(record["parameters"].get("weighted"))


@contextmanager
def of_record(name: str) -> Iterator[None]:
    """Raises Flaw in place of the errors that a damaged record of a program in the manifest leads to."""
    try:
        yield
    except (LookupError, TypeError, ValueError, OverflowError) as error:
        raise Flaw(f"the manifest's record of {name} is damaged: {type(error).__name__} {error}") from error


def check_components(edges: EdgeTable, vertices: VertexTable, record: Mapping[str, Any]) -> None:
    """Propagate the smallest vertex along edges."""
    _compare_ids(vertices, "weak_component", _smallest_connected(edges.source, edges.target, len(vertices.ids)))


def _smallest_connected(source: Int, target: Int, size: int) -> Int:
    """The smallest vertex of each vertex's component, along edges and with pointer jumping."""
    least = np.arange(size)
    while True:
        before = least.copy()
        np.minimum.at(least, source, before[target])
        np.minimum.at(least, target, before[source])
        least = least[least]
        if np.array_equal(least, before):
            return least


def check_similarity(edges: EdgeTable, vertices: VertexTable, record: Mapping[str, Any]) -> None:
    """From the supports, which are checked before, and the degrees."""
    degree = np.bincount(np.concatenate([edges.source, edges.target]), minlength=len(vertices.ids)).astype(np.float64)
    common, d, e = edges.support.astype(np.float64), degree[edges.source], degree[edges.target]
    expected = {"jaccard": common / (d + e - common), "cosine": (common + 2) / (np.sqrt(d + 1) * np.sqrt(e + 1))}
    for name in record["edge_columns"]:
        stored, computed = edges.values[name].to_numpy(), expected[name]
        if stored.dtype != np.float64:
            raise Flaw(f"edges: {name} is {stored.dtype}, not float64")
        wrong = np.flatnonzero(~(np.abs(stored - computed) <= ROUNDING))
        if len(wrong):
            at = int(wrong[0])
            raise Flaw(f"{edge_at(edges, vertices, at)}: {name} says {stored[at]}, but is {computed[at]}")


def check_jaccard_top(edges: EdgeTable, vertices: VertexTable, record: Mapping[str, Any]) -> None:
    """Sort the neighbours of each vertex by their similarity, from the supports, which are checked before."""
    size, most = len(vertices.ids), record["parameters"]["k"]
    ends, others = _both_directions(edges)
    degree = np.bincount(ends, minlength=size)
    common = np.tile(edges.support.astype(np.int64), 2)
    alike = common / (degree[ends] + degree[others] - common)
    order = np.lexsort((others, -alike, ends))
    rank = np.arange(len(order)) - (np.cumsum(degree) - degree)[ends[order]]
    first, kept = order[rank == 0], order[rank < most]
    nearest = np.full(size, -1)
    nearest[ends[first]] = others[first]
    _compare_ids(vertices, "jaccard_top_neighbour", nearest)
    mean = np.bincount(ends[kept], alike[kept], minlength=size) / np.clip(degree, 1, most)
    stored = _numbers(vertices, "jaccard_top")
    reject(
        ~(np.abs(stored - mean) <= ROUNDING),
        lambda at: f"vertex {vertices.name(at)} has the jaccard_top {mean[at]}, not {stored[at]}",
    )


@dataclass(frozen=True)
class _Alike:
    """The similarities of one vertex, found for a check."""

    other: Int
    """[others] the vertices with a common neighbour, ascending."""
    value: NDArray[np.float64]
    """[others]"""
    slack: float
    """How much of a value may be due to rounding; 0 if it is computed as the program does."""


def _alike(arcs: Arcs, size: int, parameters: Mapping[str, Any], some: Int) -> Iterator[_Alike]:
    """The similarities of each vertex in `some`: a row of the product of the matrix of edges with itself."""
    weighted = bool(parameters["weighted"]) and arcs.weight is not None
    weight = np.ones(len(arcs.source)) if not weighted or arcs.weight is None else arcs.weight
    kept = (arcs.source != arcs.target) & (weight > 0)
    one, other = arcs.source[kept], arcs.target[kept]
    start, end = np.concatenate([one, other]), np.concatenate([other, one])
    key, of_key = np.unique(start * max(size, 1) + end, return_inverse=True)
    start, end = np.divmod(key, max(size, 1))
    summed = np.bincount(of_key, np.tile(weight[kept], 2)) / (1 if arcs.directed else 2) if len(key) else np.zeros(0)
    weight = summed if weighted else np.ones(len(key))
    degree, measure = np.bincount(start, minlength=size), parameters["measure"]
    offsets = np.concatenate([[0], np.cumsum(degree)])
    most = parameters["most_neighbours"]
    counts = np.ones(size, np.bool_) if most is None else degree <= most
    sizes = np.bincount(start, weight * counts[end], minlength=size)
    norms = np.sqrt(np.bincount(start, weight**2 * counts[end], minlength=size))
    for v in some.tolist():
        row = slice(offsets[v], offsets[v + 1])
        near, own = end[row][counts[end[row]]], weight[row][counts[end[row]]]
        lengths = degree[near]
        at = np.arange(lengths.sum()) + np.repeat(offsets[near] - np.cumsum(lengths) + lengths, lengths)
        theirs, mine = weight[at], np.repeat(own, lengths)
        part = mine * theirs if measure == "cosine" else np.minimum(mine, theirs)
        if measure == "adamic_adar":
            part = np.repeat(1 / np.log(np.maximum(degree[near], 2)), lengths)
        sums = np.bincount(end[at], part, minlength=size)
        sums[v] = 0
        other = np.flatnonzero(sums)
        common = sums[other]
        if measure == "cosine" and weighted:
            value = common / (norms[v] * norms[other])
        elif measure == "cosine":
            value = common / np.sqrt(sizes[v] * sizes[other])
        elif measure == "overlap_coefficient":
            value = common / np.minimum(sizes[v], sizes[other])
        else:
            value = common if measure == "adamic_adar" else common / (sizes[v] + sizes[other] - common)
        rounded = weighted or measure == "adamic_adar"
        yield _Alike(other, value, 1e-9 * float(value.max(initial=0)) if rounded else 0.0)


def _compared(arcs: Arcs, vertices: VertexTable, parameters: Mapping[str, Any]) -> Int:
    """The vertices whose similarities are found again: all that the program has, or some if that is too much work."""
    size = len(vertices.ids)
    named = np.sort(_ids_at(vertices, parameters["of"])) if parameters["of"] else np.arange(size)
    degree = np.bincount(arcs.source, minlength=size) + np.bincount(arcs.target, minlength=size)
    if (degree.astype(np.float64) ** 2).sum() <= SEARCHED_ARCS:
        return named
    return named[np.linspace(0, len(named) - 1, min(len(named), SEARCHED)).astype(np.int64)]


def check_most_similar(arcs: Arcs, vertices: VertexTable, record: Mapping[str, Any]) -> None:
    """Find the most similar vertex of each vertex, or of some vertices of a large graph."""
    parameters = record["parameters"]
    best = positions(vertices.added["most_similar"], vertices.ids)
    similarity = _numbers(vertices, "highest_similarity")
    some = _compared(arcs, vertices, parameters)
    for v, found in zip(some.tolist(), _alike(arcs, len(vertices.ids), parameters, some), strict=True):
        most = float(found.value.max(initial=0))
        wanted = int(found.other[found.value == most][0]) if len(found.other) else -1
        if most < parameters["minimum"] + (found.slack if best[v] < 0 else -found.slack):
            wanted, most = -1, 0.0
        right = best[v] == wanted or (
            found.slack > 0 and bool((found.value[found.other == best[v]] >= most - found.slack).any())
        )
        if not right:
            raise Flaw(
                f"vertex {vertices.name(v)} has the most_similar {_named(vertices, best[v])}, "
                f"not {_named(vertices, wanted)}"
            )
        if not abs(similarity[v] - most) <= found.slack + ROUNDING:
            raise Flaw(f"vertex {vertices.name(v)} has the highest_similarity {most}, not {similarity[v]}")


@of_record("similar_pairs")
def check_similar_pairs(
    out: Folder, manifest: dict[str, Any], edges: EdgeTable, vertices: VertexTable, arcs: Arcs | None
) -> tuple[str, bool]:
    """Check the table of similar pairs: its order and ranks, and all pairs of each vertex, or of some vertices of a
    large graph. A file is in memory at a time. Raises Flaw.

    `arcs` as for `check_programs`.
    """
    record = next(record for record in manifest["programs"] if record["name"] == "similar_pairs")
    parameters, total = record["parameters"], 0
    known = arcs_of(edges) if arcs is None and not manifest["input"].get("directed") else arcs
    if known is None or (parameters["weighted"] and known.weight is None):
        return "not checked without the input, which has directions and weights", True
    some = _compared(known, vertices, parameters)
    alike = dict(zip(some.tolist(), _alike(known, len(vertices.ids), parameters, some), strict=True))
    seen: set[int] = set()
    for name in table_files(manifest, "similar_pairs"):
        table = read_file(out, name, ["source", "rank", "target", "similarity"])
        source, target = (positions(table[column], vertices.ids) for column in ("source", "target"))
        rank, similarity = table["rank"].to_numpy(), table["similarity"].to_numpy()
        if (
            rank.dtype != np.int32
            or similarity.dtype != np.float64
            or min(source.min(initial=0), target.min(initial=0))
        ):
            raise Flaw(f"{name} has ranks that are not int32, similarities that are not float64, or unknown ids")
        same = source[1:] == source[:-1]
        if (source[1:] < source[:-1]).any() or not np.array_equal(rank, _ranks(source)):
            raise Flaw(f"{name} has sources that do not ascend, or ranks that are not 1, 2, … of each source")
        behind = (similarity[1:] < similarity[:-1]) | ((similarity[1:] == similarity[:-1]) & (target[1:] > target[:-1]))
        if not behind[same].all() or (rank > parameters["k"]).any() or (source == target).any():
            raise Flaw(f"{name} has pairs that are not in the order of their similarity, too many, or of one vertex")
        total += len(source)
        for v in np.intersect1d(some, source).tolist():
            seen.add(v)
            own = source == v
            _check_pairs(vertices.name(v), alike[v], target[own], similarity[own], parameters)
    nothing = np.zeros(0, np.int64)
    for v in set(alike) - seen:
        _check_pairs(vertices.name(v), alike[v], nothing, nothing.astype(np.float64), parameters)
    if total != record["facts"]["pairs"]:
        raise Flaw(f"similar_pairs has {total:,} pairs; the manifest says {record['facts']['pairs']:,}")
    return f"{total:,} pairs; those of {len(some):,} vertices computed again", True


def _ranks(source: Int) -> Int:
    """1, 2, … within each run of equal sources."""
    first = np.flatnonzero(np.diff(source, prepend=-1))
    return np.arange(len(source)) - np.repeat(first, np.diff(first, append=len(source))) + 1


def _check_pairs(
    name: str, found: _Alike, target: Int, similarity: NDArray[np.float64], parameters: Mapping[str, Any]
) -> None:
    """Compare the pairs of one vertex with its similarities. Raises Flaw."""
    least, k, slack = parameters["minimum"], parameters["k"], found.slack
    at = np.minimum(np.searchsorted(found.other, target), max(len(found.other) - 1, 0))
    if len(target) and not (len(found.other) and np.array_equal(found.other[at], target)):
        raise Flaw(f"vertex {name} has a pair without a common neighbour")
    value = found.value[at] if len(target) else similarity
    if not (np.abs(value - similarity) <= slack + ROUNDING).all() or (value < least - slack).any():
        raise Flaw(f"vertex {name} has other similarities than {value}")
    if len(target) < min(k, int(np.count_nonzero(found.value >= least + slack))):
        raise Flaw(f"vertex {name} has {len(target):,} pairs, and more vertices are similar to it")
    others = ~np.isin(found.other, target)
    if len(target) == k and others.any():
        ahead = found.value[others] > value[-1] + slack
        if slack == 0:
            ahead |= (found.value[others] == value[-1]) & (found.other[others] < target[-1])
        if ahead.any():
            raise Flaw(f"vertex {name} lacks a pair that is more similar than its last")


def check_labels(arcs: Arcs, vertices: VertexTable, record: Mapping[str, Any]) -> None:
    """Repeat all supersteps, by sorting and counting labels. A neighbour with edges in both directions counts twice:
    an undirected edge is two arcs, and each counts once.
    """
    ends, others = np.concatenate([arcs.source, arcs.target]), np.concatenate([arcs.target, arcs.source])
    label = np.arange(len(vertices.ids))
    for _ in range(record["supersteps"]):
        got = label[others]
        by = np.lexsort((got, ends))
        at, labels = ends[by], got[by]
        starts = np.flatnonzero(np.diff(at, prepend=-1) | np.diff(labels, prepend=-1))
        count = np.diff(starts, append=len(at))
        best = np.lexsort((labels[starts], -count, at[starts]))
        first = np.flatnonzero(np.diff(at[starts][best], prepend=-1))
        label = label.copy()
        label[at[starts][best][first]] = labels[starts][best][first]
    _compare_ids(vertices, "label", label)


def check_leiden(arcs: Arcs, vertices: VertexTable, record: Mapping[str, Any]) -> None:
    """Communities are connected and have the id of their smallest vertex, and their quality is that of the record."""
    size, weight = len(vertices.ids), _weights(arcs, record)
    community = positions(vertices.added["community"], vertices.ids)
    reject(community < 0, lambda at: f"vertex {vertices.name(at)} has a community that is no vertex")
    inside = (community[arcs.source] == community[arcs.target]) & (weight > 0)
    _compare_ids(vertices, "community", _smallest_connected(arcs.source[inside], arcs.target[inside], size))
    _check_one_community(vertices, community)
    expected = _Expected(arcs, weight, size, record)
    found = weight[inside].sum() - expected.inside(community).sum()
    if record["parameters"]["quality"] == "modularity":
        found = found / weight.sum() if weight.sum() else 0.0
    stored = record["facts"]["quality"]
    if not abs(found - stored) <= 1e-9 * max(1.0, abs(found)):
        raise Flaw(f"the quality of the communities is {found}, not {stored}")


def _weights(arcs: Arcs, record: Mapping[str, Any]) -> NDArray[np.float64]:
    """[arcs] weights that leiden uses; those of both arcs of an undirected edge add up to its weight."""
    is_used = record["parameters"]["weighted"] and arcs.weight is not None
    weight = arcs.weight if is_used and arcs.weight is not None else np.ones(len(arcs.source))
    return weight if arcs.directed else weight / 2


class _Expected:
    """What weight the quality of leiden sets against that of edges."""

    def __init__(self, arcs: Arcs, weight: NDArray[np.float64], size: int, record: Mapping[str, Any]) -> None:
        parameters = record["parameters"]
        out: NDArray[np.float64] = np.bincount(arcs.source, weight, minlength=size).astype(np.float64)
        into: NDArray[np.float64] = np.bincount(arcs.target, weight, minlength=size).astype(np.float64)
        self.factor = parameters["resolution"] / max(weight.sum(), 1e-300)
        if parameters["quality"] == "potts":
            out, into, self.factor = np.full(size, 0.5), np.ones(size), parameters["resolution"]
        elif not parameters.get("directed"):
            out = into = (out + into) / 2
        self.out, self.into = out, into

    def inside(self, group: Int) -> NDArray[np.float64]:
        """[groups] the weight inside of each group."""
        found: NDArray[np.float64] = self.factor * np.bincount(group, self.out) * np.bincount(group, self.into)
        return found

    def between(self, group: Int, other: Int, unit: Int, of_unit: Int, apart: NDArray[np.bool_]) -> NDArray[np.float64]:
        """The weight between some units, of which `unit` [vertices] has each vertex, and groups `group` [vertices]: of
        unit `of_unit[i]` and group `other[i]`, which contains it unless they are `apart`.
        """
        out, into = (np.bincount(group, own) for own in (self.out, self.into))
        own_out, own_into = (np.bincount(unit, own)[of_unit] for own in (self.out, self.into))
        rest_out = out[other] - np.where(apart, 0, own_out)
        rest_into = into[other] - np.where(apart, 0, own_into)
        found: NDArray[np.float64] = self.factor * (own_out * rest_into + own_into * rest_out)
        return found


def _check_settled(arcs: Arcs, vertices: VertexTable, record: Mapping[str, Any], unit: Int, community: Int) -> None:
    """Check that no unit makes the quality better by moving to another community, or out of all. Raises Flaw.

    `unit` [vertices] are the communities of level 2, and vertices outside of them, numbered.
    """
    size, weight = len(vertices.ids), _weights(arcs, record)
    expected = _Expected(arcs, weight, size, record)
    ends, others = np.concatenate([arcs.source, arcs.target]), np.concatenate([arcs.target, arcs.source])
    weight = np.concatenate([weight, weight])
    across = unit[ends] != unit[others]
    key, of_key = np.unique(unit[ends[across]] * size + community[others[across]], return_inverse=True)
    links = np.bincount(of_key, weight[across], minlength=len(key))
    of_unit, other = key // size, key % size
    home = np.zeros(int(unit.max(initial=-1)) + 1, np.int64)
    home[unit] = community
    apart = home[of_unit] != other
    gain = links - expected.between(community, other, unit, of_unit, apart)
    every = np.arange(len(home))
    stays = -expected.between(community, home, unit, every, np.zeros(len(home), np.bool_))
    stays[of_unit[~apart]] = gain[~apart]
    slack = 1e-9 * (np.abs(stays) + np.bincount(unit[ends], weight, minlength=len(home)) + 1e-300)
    better = np.concatenate([gain - (stays + slack)[of_unit], -stays - slack])
    moved = np.concatenate([of_unit, every])
    first = np.zeros(len(home), np.int64)
    first[unit[::-1]] = np.arange(size)[::-1]

    def message(at: int) -> str:
        return f"the quality is better if the part of the community of vertex {vertices.name(first[moved[at]])} moves"

    reject(better > 0, message)


def _check_one_community(vertices: VertexTable, community: Int) -> None:
    """Check that the innermost group of a vertex that is not alone in its community has no vertex of another one."""
    group = vertices.added["community_group"].fill_null(-1).to_numpy()
    together = np.flatnonzero(np.bincount(community, minlength=len(community))[community] > 1)
    _, first, of_group = np.unique(group[together], return_index=True, return_inverse=True)
    other = community[together] != community[together][first][of_group]

    def message(at: int) -> str:
        return (
            f"vertex {vertices.name(together[at])} has the community_group {group[together[at]]} of another community"
        )

    reject(other | (group[together] < 0), message)


def check_coreness(edges: EdgeTable, vertices: VertexTable, record: Mapping[str, Any]) -> None:
    """Peel the vertices of smallest degree."""
    _check_cores(edges, vertices, "coreness")


def check_cores(edges: EdgeTable, vertices: VertexTable, record: Mapping[str, Any]) -> None:
    """As `check_coreness`, and the innermost groups by union-find, from the highest core number down."""
    _check_cores(edges, vertices, "core")
    stored = vertices.added["core_group"].fill_null(-1).to_numpy()
    _, homes = _core_groups(edges, vertices)
    reject(stored != homes, lambda at: f"vertex {vertices.name(at)}: core_group is {homes[at]}, not {stored[at]}")


def _check_cores(edges: EdgeTable, vertices: VertexTable, name: str) -> None:
    core, stored = _cores(edges, vertices), _numbers(vertices, name)
    reject(stored != core, lambda at: f"vertex {vertices.name(at)} is of coreness {core[at]}, not {stored[at]}")


def _cores(edges: EdgeTable, vertices: VertexTable) -> Int:
    """[vertices] core numbers."""
    ends, others = _both_directions(edges)
    degree = np.bincount(ends, minlength=len(vertices.ids))
    core = np.zeros(len(vertices.ids), np.int64)
    left, level = np.ones(len(vertices.ids), np.bool_), 0
    while left.any():
        level = max(level, int(degree[left].min()))
        removed = left & (degree <= level)
        core[removed] = level
        left &= ~removed
        gone = removed[others]
        degree -= np.bincount(ends[gone], minlength=len(degree))
        kept = left[ends] & left[others]
        ends, others = ends[kept], others[kept]
    return core


def _core_groups(edges: EdgeTable, vertices: VertexTable) -> tuple[dict[str, NDArray[Any]], Int]:
    core = _cores(edges, vertices)
    level = np.minimum(core[edges.source], core[edges.target])
    return groups_by_level(replace(edges, low=level), len(vertices.ids))


def check_core_groups(
    out: Folder, manifest: dict[str, Any], edges: EdgeTable, vertices: VertexTable, arcs: Arcs | None = None
) -> tuple[str, bool]:
    """Compare core_groups/ with the groups computed from core numbers. Raises Flaw."""
    groups, _ = _core_groups(edges, vertices)
    compare_groups(read_groups(out, manifest, "core_groups"), groups)
    return f"{len(groups['id']):,} groups computed again", True


def check_community_groups(
    out: Folder, manifest: dict[str, Any], edges: EdgeTable, vertices: VertexTable, arcs: Arcs | None = None
) -> tuple[str, bool]:
    """Check that the rows of community_groups/ are what their edges connect, that they contain each other as their
    parents say, and that those of level 1 are the communities. With `arcs`, which have the weights that the program
    used, also that no move of one of level 2 makes these better. Raises Flaw.
    """
    stored, size = read_groups(out, manifest, "community_groups"), len(vertices.ids)
    innermost = _rows_of(stored["id"], vertices.added["community_group"].fill_null(-1).to_numpy(), "community_group")
    level, home = np.zeros(len(edges.source), np.int32), np.full(size, -1)
    part = home
    for home_of_level in _homes_by_level(stored, innermost):
        part, home = home, home_of_level
        level += (home[edges.source] == home[edges.target]) & (home[edges.source] >= 0)
    groups, homes = groups_by_level(replace(edges, low=level), size)
    compare_groups(stored, groups)
    own = np.where(innermost >= 0, np.append(stored["id"], -1)[innermost], -1)
    reject(own != homes, lambda at: f"vertex {vertices.name(at)}: community_group is {homes[at]}, not {own[at]}")
    number, smallest = np.arange(size), np.full(len(stored["id"]) + 1, size)
    np.minimum.at(smallest, home, number)
    _compare_ids(vertices, "community", np.where(home >= 0, smallest[home], number))
    detail = f"{len(groups['id']):,} groups found again from their members"
    record = next(own for own in manifest["programs"] if own["name"] == "leiden")
    if arcs is None or not record["facts"]["settled"]:
        return f"{detail}; whether one can move was not checked", True
    unit = np.unique(np.where(part >= 0, part, len(stored["id"]) + number), return_inverse=True)[1]
    _check_settled(arcs, vertices, record, unit, positions(vertices.added["community"], vertices.ids))
    return f"{detail}; no move of a part of level 2 makes the communities better", True


def _homes_by_level(stored: Mapping[str, Int], innermost: Int) -> Iterator[Int]:
    """The group of each vertex at each level from the last to 1, as a row of the table, -1 for none. `innermost` has
    the row of the smallest group of each vertex. Raises Flaw.
    """
    k, up = np.append(stored["k"], -1), np.append(_rows_of(stored["id"], stored["parent"], "parent"), -1)
    reject((k[up] >= k)[:-1], lambda at: f"group {stored['id'][at]} has a parent of no smaller k")
    home = innermost
    for level in range(int(k.max()), 0, -1):
        while (rises := k[up[home]] >= level).any():
            home = np.where(rises, up[home], home)
        yield np.where(k[home] >= level, home, -1)


def _rows_of(ids: Int, wanted: Int, name: str) -> Int:
    """The positions of ids of groups in `ids`, which ascend; -1 for -1. Raises Flaw for others."""
    order = np.argsort(ids, kind="stable")
    at = np.minimum(np.searchsorted(ids[order], wanted), max(0, len(ids) - 1))
    found = order[at] if len(ids) else np.full(len(wanted), -1)
    absent = (wanted >= 0) & (ids[found] != wanted) if len(ids) else wanted >= 0
    reject(absent, lambda at: f"{name} {wanted[at]} is not the id of a group")
    return np.where(wanted < 0, -1, found)


def check_clustering(arcs: Arcs, vertices: VertexTable, record: Mapping[str, Any]) -> None:
    """Count the arcs opposite to each vertex in each triangle."""
    size = max(1, len(vertices.ids))
    low, high = np.minimum(arcs.source, arcs.target), np.maximum(arcs.source, arcs.target)
    pairs, times = np.unique(low * size + high, return_counts=True)
    source, target = pairs // size, pairs % size
    graph = orient(source, target, len(vertices.ids))
    degree = np.bincount(source, minlength=len(vertices.ids)) + np.bincount(target, minlength=len(vertices.ids))
    vertex, times = np.argsort(degree, kind="stable"), times[graph.edge]
    links = np.zeros(len(vertices.ids), np.int64)
    for one, other, third in triangles(graph):
        ends = graph.low[one], graph.high[one], graph.high[other]
        for end, opposite in zip(ends, (third, other, one), strict=True):
            np.add.at(links, vertex[end], times[opposite])
    share = links / np.maximum(degree * (degree - 1), 1)
    stored = _numbers(vertices, "clustering")
    reject(stored != share, lambda at: f"vertex {vertices.name(at)} has the clustering {share[at]}, not {stored[at]}")


def check_pagerank(arcs: Arcs, vertices: VertexTable, record: Mapping[str, Any]) -> None:
    """One more superstep must change ranks by less than the tolerance. With `iterations`, repeat all supersteps."""
    stored, parameters = _numbers(vertices, "pagerank"), record["parameters"]
    damping, size = float(parameters["damping"]), len(stored)
    weight = arcs.weight if parameters.get("weighted") and arcs.weight is not None else np.ones(len(arcs.source))
    out = np.bincount(arcs.source, weight, minlength=size)
    starts = np.full(size, 1 / max(size, 1))
    if parameters.get("personal"):
        starts = np.zeros(size)
        starts[_ids_at(vertices, parameters["personal"])] = 1 / len(parameters["personal"])

    def step(rank: NDArray[np.float64]) -> NDArray[np.float64]:
        sent = np.where(out > 0, rank, 0) / np.where(out > 0, out, 1)
        got = np.bincount(arcs.target, weights=sent[arcs.source] * weight, minlength=size)
        stepped: NDArray[np.float64] = (1 - damping) * starts + damping * (got + rank[out == 0].sum() * starts)
        return stepped

    if parameters["iterations"] is None:
        expected, most = step(stored), parameters["tolerance"] + ROUNDING
    else:
        expected, most = starts, ROUNDING
        for _ in range(record["supersteps"]):
            expected = step(expected)
    moved = float(np.abs(expected - stored).sum())
    if not moved <= most:
        raise Flaw(f"ranks are off by {moved:.3g} in all, over {most:.3g}")


def check_hits(arcs: Arcs, vertices: VertexTable, record: Mapping[str, Any]) -> None:
    """Compute hubs from authorities and authorities from hubs, and compare both with the result.

    The values of the last superstep must be those computed from the other ones. The other ones may differ from those
    computed by what the tolerance allows: a change of the values by the tolerance changes what a vertex receives by at
    most its largest number of edges times that, and the share of all by at most twice as much. With `iterations`,
    repeat all supersteps instead.
    """
    size, steps, parameters = len(vertices.ids), record["supersteps"], record["parameters"]
    ends, values = (arcs.source, arcs.target), [_numbers(vertices, "hub"), _numbers(vertices, "authority")]

    def computed(what: int, value: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
        """The hubs (0) or authorities (1) that follow from the others, and what these send."""
        got = np.bincount(ends[what], weights=value[ends[1 - what]], minlength=size)
        return got / (got.sum() or 1.0), float(got.sum())

    last = steps % 2
    if parameters["iterations"] is not None:
        expected = [(np.bincount(arcs.source, minlength=size) > 0) / max(size, 1), np.zeros(size)]
        for step in range(steps):
            expected[1 - step % 2], _ = computed(1 - step % 2, expected[step % 2])
        allowed = [ROUNDING, ROUNDING]
    else:
        (newest, _), (others, sent) = computed(last, values[1 - last]), computed(1 - last, values[last])
        expected = [others, newest] if last else [newest, others]
        most = int(np.bincount(ends[last], minlength=size).max(initial=0))
        slack = 2 * most * parameters["tolerance"] / (sent or 1.0)
        allowed = [ROUNDING + slack * (what != last) for what in (0, 1)]
    for name, stored, wanted, most_off in zip(("hub", "authority"), values, expected, allowed, strict=True):
        off = float(np.abs(stored - wanted).sum())
        if not off <= most_off:
            raise Flaw(f"hub and authority: {name} is off by {off:.3g} in all, over {most_off:.3g}")


def check_betweenness(arcs: Arcs, vertices: VertexTable, record: Mapping[str, Any]) -> None:
    """Check the zeros and the sum of betweenness.

    No path leads through a vertex with fewer than two neighbours. The sum over all vertices is the sum of d - 1 over
    all pairs of vertices at distance d, since each of their shortest paths has d - 1 vertices between the two.
    """
    stored, total, parameters = _numbers(vertices, "betweenness"), len(vertices.ids), record["parameters"]
    wrong = ~(stored >= 0) | (stored > 0) & (vertices.degree < 2)
    reject(wrong, lambda at: f"vertex {vertices.name(at)} has the betweenness {stored[at]}")
    _check_exact(vertices, "betweenness_error", record)
    sources = _sources(record, total)
    if len(sources) * len(arcs.source) > SEARCHED_ARCS:
        return
    between = sum(int(np.maximum(d - 1, 0).sum()) for d in _searches(arcs.source, arcs.target, total, sources))
    pairs = max(1, (total - 1) * (total - 2)) if parameters["normalized"] else 1 if arcs.directed else 2
    scale = total / max(len(sources), 1) / pairs
    if not abs(stored.sum() - between * scale) <= 1e-9 * max(1.0, between * scale):
        raise Flaw(f"betweenness adds up to {stored.sum():.12g}, and distances to {between * scale:.12g}")


def check_all_distances(arcs: Arcs, vertices: VertexTable, record: Mapping[str, Any]) -> None:
    """Repeat all searches. In a large graph search from some vertices, and compare their results alone."""
    total, facts, scaled = len(vertices.ids), record["facts"], record["parameters"]["wasserman_faust"]
    closeness = _numbers(vertices, "closeness")
    least, slack = _numbers(vertices, "eccentricity"), _numbers(vertices, "eccentricity_slack")
    for name in ("closeness_error", "eccentricity_slack"):
        _check_exact(vertices, name, record)
    sources = _sources(record, total)
    every = len(sources) * len(arcs.source) <= SEARCHED_ARCS
    some = sources if every else np.linspace(0, total - 1, min(total, SEARCHED)).astype(np.int64)
    reached, distance, pairs = np.zeros(total, np.int64), np.zeros(total, np.int64), np.zeros(1, np.int64)
    for source, d in zip(some.tolist(), _searches(arcs.source, arcs.target, total, some), strict=True):
        far = int(d.max())
        if not least[source] <= far or (slack[source] >= 0 and far > least[source] + slack[source]):
            raise Flaw(f"vertex {vertices.name(source)} has the eccentricity {far}, not {least[source]}")
        reached += d > 0
        distance += np.maximum(d, 0)
        counts = np.bincount(d[d > 0], minlength=len(pairs))
        counts[: len(pairs)] += pairs
        pairs = counts
    checked = np.arange(total)
    others = len(sources) - np.isin(checked, sources)
    if not every:
        if len(sources) < total:
            return
        checked, others = some, others[some]
        to_them = np.array(list(_searches(arcs.target, arcs.source, total, some)))
        reached, distance = (to_them > 0).sum(axis=1), np.maximum(to_them, 0).sum(axis=1)
    expected = reached / np.maximum(distance, 1) * (reached / np.maximum(others, 1) if scaled else 1.0)
    reject(
        ~(np.abs(closeness[checked] - expected) <= ROUNDING),
        lambda at: (
            f"vertex {vertices.name(checked[at])} has the closeness {expected[at]}, not {closeness[checked[at]]}"
        ),
    )
    plot = pairs[1:] * (total / max(len(sources), 1))
    listed = plot[: len(facts["hop_plot"])]
    if every and not (facts["longest"] == len(plot) and np.allclose(facts["hop_plot"], listed, rtol=1e-12)):
        raise Flaw(f"the longest distance and the hop plot are {facts['longest']} and {facts['hop_plot']}, not {plot}")


def has_distance_table(record: Mapping[str, Any]) -> bool:
    """Whether a program filled the table of distances."""
    return bool(record["parameters"].get("table")) and "hop_plot" in (record.get("facts") or {})


@of_record("the table of distances")
def check_distance_table(
    out: Folder, manifest: dict[str, Any], edges: EdgeTable, vertices: VertexTable, arcs: Arcs | None
) -> tuple[str, bool]:
    """Check the table of distances: its order, the number of pairs by distance, and all rows of a small graph, or those
    of some sources. A file is in memory at a time. Raises Flaw.

    `arcs` as for `check_programs`.
    """
    record = next(record for record in manifest["programs"] if has_distance_table(record))
    known = arcs_of(edges) if arcs is None and not manifest["input"].get("directed") else arcs
    if known is None:
        return "not checked without the input, which has directions", True
    total = len(vertices.ids)
    sources = np.sort(_sources(record, total))
    some = sources
    if len(sources) * len(known.source) > SEARCHED_ARCS:
        some = sources[np.linspace(0, len(sources) - 1, min(len(sources), SEARCHED)).astype(np.int64)]
    searches = dict(zip(some.tolist(), _searches(known.source, known.target, total, some), strict=True))
    counts, last = np.zeros(1, np.int64), -1
    for name in table_files(manifest, "distances"):
        table = read_file(out, name, ["source", "target", "distance"])
        source, target = (positions(table[column], vertices.ids) for column in ("source", "target"))
        distance = table["distance"].to_numpy()
        if table["distance"].type != pa.int32() or not np.isin(source, sources).all() or (target < 0).any():
            raise Flaw(f"{name} has distances that are not int32, or ids that are no sources or no vertices")
        key = np.concatenate([[last], source * total + target])
        if (key[1:] <= key[:-1]).any() or (distance < 1).any():
            raise Flaw(f"{name} has pairs that do not ascend, or distances below 1")
        last = int(key[-1])
        more = np.bincount(distance, minlength=len(counts))
        more[: len(counts)] += counts
        counts = more
        for one in np.intersect1d(some, source).tolist():
            rows, searched = source == one, searches[one]
            reached = np.flatnonzero(searched > 0)
            if not (np.array_equal(target[rows], reached) and np.array_equal(distance[rows], searched[reached])):
                raise Flaw(f"{name}: the distances from {vertices.name(one)} are not those of a search")
    scale = total / max(len(sources), 1)
    plot = np.array(record["facts"]["hop_plot"])
    if len(counts) - 1 != record["facts"]["longest"] or not np.allclose(counts[1 : 1 + len(plot)] * scale, plot):
        raise Flaw("distances has other numbers of pairs by distance than the hop plot of the manifest")
    return f"{int(counts.sum()):,} pairs; searches from {len(some):,} vertices find the same", True


def _check_exact(vertices: VertexTable, name: str, record: Mapping[str, Any]) -> None:
    """Check that errors are 0 if all vertices are sources, as nothing is estimated then."""
    error = _numbers(vertices, name)
    if record["facts"]["sources"] == len(vertices.ids):
        reject(error != 0, lambda at: f"vertex {vertices.name(at)} has the {name} {error[at]}, not 0")


def _sources(record: Mapping[str, Any], total: int) -> Int:
    """The vertices that a program searched from."""
    count, number = record["facts"]["sources"], np.arange(total)
    if count == total:
        return number
    # Those of the smallest hashes, by the finalizer of SplitMix64.
    key = number.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    key += np.uint64(record["parameters"]["seed"] * 0xD1342543DE82EF95 % 2**64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        key = (key ^ (key >> np.uint64(shift))) * np.uint64(factor)
    return np.lexsort((number, key ^ (key >> np.uint64(31))))[:count]


def _searches(start: Int, end: Int, total: int, sources: Int) -> Iterator[Int]:
    """For each source the distances to all vertices by arcs from `start` to `end`; -1 without a path."""
    end = end[np.argsort(start, kind="stable")]
    offsets = np.concatenate([[0], np.cumsum(np.bincount(start, minlength=total))])
    for source in sources.tolist():
        distance = np.full(total, -1)
        distance[source] = 0
        frontier, level = np.array([source]), 0
        while len(frontier):
            level += 1
            lengths = offsets[frontier + 1] - offsets[frontier]
            starts = np.repeat(offsets[frontier] - np.cumsum(lengths) + lengths, lengths)
            near = end[starts + np.arange(len(starts))]
            frontier = np.unique(near[distance[near] < 0])
            distance[frontier] = level
        yield distance


def _both_directions(edges: EdgeTable) -> tuple[Int, Int]:
    return np.concatenate([edges.source, edges.target]), np.concatenate([edges.target, edges.source])


def _numbers(vertices: VertexTable, name: str) -> NDArray[Any]:
    column = vertices.added[name]
    if column.null_count:
        raise Flaw(f"vertices: {name} has {column.null_count} nulls")
    values: NDArray[Any] = column.to_numpy()
    return values


def _compare_ids(vertices: VertexTable, name: str, expected: Int) -> None:
    stored = positions(vertices.added[name], vertices.ids)
    reject(
        stored != expected,
        lambda at: (
            f"vertex {vertices.name(at)} has the {name} {vertices.added[name][at].as_py()!r}, "
            f"not {vertices.name(int(expected[at]))}"
        ),
    )


def check_levels(arcs: Arcs, vertices: VertexTable, record: Mapping[str, Any]) -> None:
    """Levels: no edge skips one, and each vertex but the source has an edge from its parent, the smallest vertex of the
    level above. So a level is neither above nor below the fewest edges of a path. Raises Flaw.
    """
    level = vertices.added["level"].fill_null(-1).to_numpy()
    parent = positions(vertices.added["parent"], vertices.ids)
    _check_start(vertices, record["parameters"]["source"], "level", level, parent, level == 0)
    above, below = level[arcs.source], level[arcs.target]
    reject(
        (above >= 0) & ((below < 0) | (below > above + 1)),
        lambda at: _too_far(vertices, arcs, at, "level", above[at], below[at]),
    )
    tight = (above >= 0) & (below == above + 1)
    smallest = np.full(len(level), len(level))
    np.minimum.at(smallest, arcs.target[tight], arcs.source[tight])
    wanted = np.where(level > 0, smallest, np.where(level == 0, np.arange(len(level)), -1))
    reject(
        parent != wanted,
        lambda at: f"vertex {vertices.name(at)} of level {level[at]} has the parent {_named(vertices, parent[at])}",
    )


def check_shortest_paths(arcs: Arcs, vertices: VertexTable, record: Mapping[str, Any]) -> None:
    """Distances: no edge makes one smaller, and each vertex but the source has an edge from its predecessor that gives
    its distance; predecessors lead to the source. All sums are exact as float64, as the run adds them. Raises Flaw.
    """
    distance = vertices.added["distance"].fill_null(np.inf).to_numpy()
    before = positions(vertices.added["predecessor"], vertices.ids)
    assert arcs.weight is not None
    number = np.arange(len(distance))
    _check_start(vertices, record["parameters"]["source"], "distance", distance, before, before == number)
    reached = np.isfinite(distance)
    reject(reached != (before >= 0), lambda at: f"vertex {vertices.name(at)} has a distance or a predecessor, not both")
    reject(distance < 0, lambda at: f"vertex {vertices.name(at)} has the distance {distance[at]}")
    by_arc = distance[arcs.source] + arcs.weight
    reject(
        by_arc < distance[arcs.target],
        lambda at: _too_far(
            vertices, arcs, at, "distance", distance[arcs.source[at]], distance[arcs.target[at]], by_arc[at]
        ),
    )
    tight = before == number
    used = (before[arcs.target] == arcs.source) & (by_arc == distance[arcs.target])
    tight[arcs.target[used]] = True
    reject(
        reached & ~tight,
        lambda at: (
            f"vertex {vertices.name(at)} has the predecessor {_named(vertices, before[at])}, and no edge from it "
            f"gives its distance {distance[at]}"
        ),
    )
    first = np.where(reached, before, number)
    for _ in range(len(distance).bit_length()):
        first = first[first]
    reject(
        reached & (before[first] != first),
        lambda at: f"the predecessors of vertex {vertices.name(at)} do not lead to the source",
    )


def check_strong_components(arcs: Arcs, vertices: VertexTable, record: Mapping[str, Any]) -> None:
    """Strong components: a component is named by its smallest vertex, which reaches all its vertices and is reached by
    all of them, over edges within the component. The edges between components have no circle: removing components
    without in-edges again and again removes all. Raises Flaw.
    """
    label = positions(vertices.added["strong_component"], vertices.ids)
    number = np.arange(len(label))
    reject(label < 0, lambda at: f"vertex {vertices.name(at)} has a strong_component that is no vertex")
    reject(
        (label[label] != label) | (label > number),
        lambda at: f"vertex {vertices.name(at)} has the strong_component {_named(vertices, label[at])}, not the least",
    )
    within = label[arcs.source] == label[arcs.target]
    for start, end, how in ((arcs.source, arcs.target, "from"), (arcs.target, arcs.source, "to")):
        start, end, reached = start[within], end[within], label == number
        while len(new := end[reached[start] & ~reached[end]]):
            reached[new] = True
            left = ~reached[end]
            start, end = start[left], end[left]
        reject(
            ~reached,
            lambda at, how=how: f"vertex {vertices.name(at)} has no path {how} its strong_component",  # type: ignore[misc]
        )
    start, end = label[arcs.source[~within]], label[arcs.target[~within]]
    while len(start):
        entered = np.zeros(len(label), np.bool_)
        entered[end] = True
        left = entered[start]
        if left.all():
            raise Flaw(f"the strong_component {vertices.name(start[0])} and others are on a circle: they are one")
        start, end = start[left], end[left]


def _check_start(
    vertices: VertexTable, source: str, name: str, value: NDArray[Any], before: Int, is_start: NDArray[np.bool_]
) -> None:
    """Check that the source, and no other vertex, is the start of paths, with the value 0."""
    start = _ids_at(vertices, [source])[0]
    if value[start] != 0 or before[start] != start:
        raise Flaw(f"the source {vertices.name(start)} has the {name} {value[start]}, not 0, or is not its own parent")
    others = is_start.copy()
    others[start] = False
    reject(others, lambda at: f"vertex {vertices.name(at)} is a start of paths, and the source is another one")


def _ids_at(vertices: VertexTable, texts: list[str]) -> list[int]:
    """The positions of typed ids in the vertex table. Raises Flaw for ids that are not there."""
    values = [parse_id(text, vertices.id_type) for text in texts]
    at_ids = positions(pa.array(values, vertices.ids.type), vertices.ids).tolist()
    if -1 in at_ids:
        raise Flaw(f"the manifest names the vertex {texts[at_ids.index(-1)]!r}, which the table does not have")
    return [int(at) for at in at_ids]


def _named(vertices: VertexTable, at: int) -> str:
    return "null" if at < 0 else vertices.name(at)


def _too_far(vertices: VertexTable, arcs: Arcs, at: int, name: str, one: Any, other: Any, by_arc: Any = None) -> str:
    ends = f"{vertices.name(arcs.source[at])} to {vertices.name(arcs.target[at])}"
    least = f" = {by_arc} by it" if by_arc is not None else ""
    return f"the edge from {ends} leads from {name} {one} to {name} {other}, which is too large{least}"
