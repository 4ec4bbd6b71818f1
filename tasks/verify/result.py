"""Run all checks of a finished result, and report each outcome."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..errors import UsageError
from ..ids.display import type_name
from ..publish.result_columns import edge_columns
from ..storage.folders import Folder, folder_at
from ..storage.pointer import follow_pointer
from ..tables.live import LiveFiles
from .arcs import Arcs, arcs_of, arcs_of_input
from .bounds import Backing, Simple, not_falling, peel, survey
from .groups import check_groups
from .input import check_input, edges_of_input, live_files
from .program_checks import (
    CheckByArcs,
    CheckByEdges,
    check_distance_table,
    check_similar_pairs,
    has_distance_table,
    of_record,
)
from .reading import Flaw, Int, reject
from .tables import (
    EdgeTable,
    VertexTable,
    check_attributes,
    check_files,
    check_sides,
    counted,
    edge_at,
    is_two_sided,
    measure_of,
    read_edges,
    read_manifest,
    read_vertices,
    refuse_replaced,
)

T = TypeVar("T")
Progress = Callable[[str], None]
"""Called with the name of each check as it starts."""


class Check(NamedTuple):
    """The outcome of one check."""

    name: str
    ok: bool
    detail: str
    """A summary, or the first flaw."""


@dataclass(frozen=True)
class VerifyReport:
    """Outcomes in the order of the checks. Checks that a flaw makes impossible are not run."""

    checks: list[Check]

    @property
    def ok(self) -> bool:
        """Whether every check passed."""
        return all(check.ok for check in self.checks)


def verify(
    out: Folder | str | Path,
    input_path: str | Path | None = None,
    progress: Progress | None = None,
    table_version: int | None = None,
) -> VerifyReport:
    """Check the result at the folder or URL `out`; with `input_path`, also compare it with its input.

    For a Delta or Iceberg table, the input is its version `table_version`; else the version in the manifest; else the
    current version.

    Checks the files against the manifest, the order of edges, the support of each edge, that no λ is too high or too
    low, the vertex table, the dense groups, the vertex attributes, the columns of programs, and the totals. λ is
    certified, not computed again (see `tasks/verify/bounds.py`). Takes about 200 bytes of memory an edge, and 50 bytes
    a triangle for at most 2^25 triangles, or for those of one level if it has more.

    Raises UsageError if there is no folder `out`, InputError if the input cannot be read or if another run replaces the
    result meanwhile, and for tables the errors of `open_source`. Flaws of the result are in the report.
    """
    if table_version is not None and input_path is None:
        raise UsageError(f"version {table_version} of the input is named, and no input: name both")
    folder = follow_pointer(folder_at(out))
    if not (Path(folder.url).is_dir() if folder.is_local else folder.names()):
        raise UsageError(f"there is no result at {folder}: no such folder")
    checklist = _Checklist(progress)
    manifest = checklist.run("manifest", lambda: ("complete", read_manifest(folder)))
    if manifest is None:
        return VerifyReport(checklist.checks)
    path, live = None if input_path is None else str(input_path), None
    if path is not None:  # fail before the checks if the input cannot be read
        live = live_files(path, table_version, manifest["input"].get("table"))
    if checklist.run("files", lambda: _files(folder, manifest)) is not None:
        _check_tables(checklist, folder, manifest, path, live)
    report = VerifyReport(checklist.checks)
    if not report.ok:
        refuse_replaced(folder, manifest)
    return report


class _Checklist:
    """Runs checks and records their outcomes."""

    def __init__(self, progress: Progress | None) -> None:
        self.checks: list[Check] = []
        self._progress = progress

    def run(self, name: str, check: Callable[[], tuple[str, T]]) -> T | None:
        """Run a check that returns a detail and a value. Returns the value, or None if the check raised Flaw."""
        if self._progress is not None:
            self._progress(name)
        try:
            detail, value = check()
        except Flaw as flaw:
            self.checks.append(Check(name, False, str(flaw)))
            return None
        self.checks.append(Check(name, True, detail))
        return value


def _check_tables(
    checklist: _Checklist, folder: Folder, manifest: dict[str, Any], input_path: str | None, live: LiveFiles | None
) -> None:
    if manifest["lambda"] is None:
        _check_without_lambda(checklist, folder, manifest, input_path, live)
        return
    tables = checklist.run("tables", lambda: _tables(folder, manifest))
    if tables is None:
        return
    edges, vertices = tables
    if checklist.run("order", lambda: _order(edges, vertices)) is None:
        return
    two_sided = is_two_sided(manifest)
    graph = Simple(edges.source, edges.target, len(vertices.ids), two_sided)
    bounds = [
        np.clip(bound, 0, graph.vertices) for bound in _distinct_bounds(edges)
    ]  # wrong values must not take memory
    counted_triangles = checklist.run(measure_of(manifest), lambda: _survey(graph, bounds))
    assert counted_triangles is not None  # it raises no Flaw
    support, backings = counted_triangles
    exact = edges.low is edges.high
    for own in edge_columns(exact):
        if own.check is not None:
            right = own.check(replace(edges, support=support.astype(np.int32)))
            checklist.run(own.name, partial(_edge_column, own.name, right, edges, vertices))
    names = ("λ not too high", "λ not too low") if exact else ("lower bounds", "upper bounds")
    low_holds = checklist.run(names[0], lambda: _low_holds(graph, edges, vertices, support, backings[0]))
    if low_holds or not exact:  # the second check needs bounds that pass the first
        checklist.run(names[1], lambda: _high_holds(graph, edges, vertices, bounds[-1], backings[-1]))
    if two_sided:
        checklist.run("sides", lambda: check_sides(manifest, edges, vertices))
    checklist.run("vertices", lambda: _vertices(edges, vertices, support, measure_of(manifest)))
    if manifest.get("dense") is not None:
        checklist.run("groups", lambda: check_groups(folder, manifest, edges, vertices, backings[0].count))
    if manifest["input"].get("vertices") is not None:
        checklist.run("attributes", lambda: check_attributes(folder, manifest, vertices))
    if (manifest.get("bounding") or {}).get("estimates") is not None:
        checklist.run("estimate", lambda: _estimate_error(manifest["bounding"]["estimates"], edges))
    if manifest.get("programs"):
        _check_programs(checklist, folder, manifest, edges, vertices, input_path, live)
    checklist.run("totals", lambda: _totals(manifest, edges, vertices, support))
    if input_path is not None:
        checklist.run("input", lambda: check_input(input_path, manifest, edges, vertices, live))


def _check_without_lambda(
    checklist: _Checklist, folder: Folder, manifest: dict[str, Any], path: str | None, live: LiveFiles | None
) -> None:
    """Check a result without λ, which has no table of edges: columns of programs are checked by the input's edges."""
    table = checklist.run("tables", lambda: _vertices_alone(folder, manifest))
    if table is None:
        return
    vertices = table
    if manifest["input"].get("vertices") is not None:
        checklist.run("attributes", lambda: check_attributes(folder, manifest, vertices))
    if path is None:
        names = ", ".join(program["name"] for program in manifest["programs"])
        checklist.run("programs", lambda: (f"not checked, as the result has no edges: {names}; name --input", True))
        return
    source, target = edges_of_input(path, manifest, vertices, live)
    support, _ = survey(Simple(source, target, len(vertices.ids)), [])
    none = np.zeros(0, np.int32)
    edges = EdgeTable(source, target, none, none, none)
    vertices = replace(vertices, triangles=_triangles(edges, vertices, support))
    checklist.run("vertices", lambda: _degrees(edges, vertices))
    _check_programs(checklist, folder, manifest, edges, vertices, path, live)
    checklist.run("input", lambda: check_input(path, manifest, edges, vertices, live))
    checklist.run("totals", lambda: _graph_totals(manifest, edges, vertices))


def _check_programs(
    checklist: _Checklist,
    folder: Folder,
    manifest: dict[str, Any],
    edges: EdgeTable,
    vertices: VertexTable,
    path: str | None,
    live: LiveFiles | None,
) -> None:
    @cache
    def arcs() -> Arcs | None:
        """The edges of the input, if it has directions or weights, which the result does not have."""
        has_more = manifest["input"].get("directed") or manifest["input"].get("weights") is not None
        return arcs_of_input(path, manifest, vertices, live) if path is not None and has_more else None

    checklist.run("programs", lambda: check_programs(manifest, edges, vertices, arcs()))
    if any(has_distance_table(record) for record in manifest["programs"]):
        checklist.run("distances", lambda: check_distance_table(folder, manifest, edges, vertices, arcs()))
    from ..programs.shipped import shipped_class  # loads the kernels of programs, which no check uses

    for record in manifest["programs"]:
        kind = shipped_class(record["name"])
        groups = getattr(kind, "groups", None)
        if groups is not None and groups.check is not None and record["converged"]:
            table, check = f"{record['group_column']}s", groups.check
            known = arcs()
            if known is None and not manifest["input"].get("directed") and not record["parameters"].get("weighted"):
                known = arcs_of(edges)
            checklist.run(table, partial(check.run, folder, manifest, edges, vertices, known))
    if any(record["name"] == "similar_pairs" for record in manifest["programs"]):
        checklist.run("similar_pairs", lambda: check_similar_pairs(folder, manifest, edges, vertices, arcs()))


def _vertices_alone(folder: Folder, manifest: dict[str, Any]) -> tuple[str, VertexTable]:
    vertices = read_vertices(folder, manifest)
    _same_ids(vertices, manifest)
    if len(vertices.ids) != manifest["counts"]["vertices"]:
        raise Flaw(
            f"the manifest's counts.vertices is {manifest['counts']['vertices']}; the table has {len(vertices.ids)}"
        )
    return f"{len(vertices.ids):,} vertices, ids {type_name(vertices.id_type)}", vertices


def _degrees(edges: EdgeTable, vertices: VertexTable) -> tuple[str, bool]:
    degree = np.bincount(np.concatenate([edges.source, edges.target]), minlength=len(vertices.ids))
    reject(
        vertices.degree != degree,
        lambda at: f"vertex {vertices.name(at)}: degree says {vertices.degree[at]}, but is {degree[at]}",
    )
    return "degree follows from the edges", True


def _graph_totals(manifest: dict[str, Any], edges: EdgeTable, vertices: VertexTable) -> tuple[str, bool]:
    stored = manifest["counts"]["edges"]
    if stored != edges.source.size:
        raise Flaw(f"the manifest's counts.edges is {stored}; the input gives {edges.source.size}")
    return "the manifest's counts follow from the input", True


def _triangles(edges: EdgeTable, vertices: VertexTable, support: Int) -> Int:
    """[vertices] the triangles of each vertex, exact below 2^53."""
    ends = np.concatenate([edges.source, edges.target])
    triangles: Int = (np.bincount(ends, np.tile(support, 2), minlength=len(vertices.ids)) / 2).astype(np.int64)
    return triangles


def _files(folder: Folder, manifest: dict[str, Any]) -> tuple[str, bool]:
    check_files(folder, manifest["outputs"])
    return f"{len(manifest['outputs'])} files with the manifest's rows and SHA-256", True


def _tables(folder: Folder, manifest: dict[str, Any]) -> tuple[str, tuple[EdgeTable, VertexTable]]:
    vertices = read_vertices(folder, manifest)
    _same_ids(vertices, manifest)
    columns = manifest["input"]["source_column"], manifest["input"]["target_column"]
    edges = read_edges(folder, *columns, vertices, manifest)
    return f"{edges.source.size:,} edges, {len(vertices.ids):,} vertices, ids {type_name(vertices.id_type)}", (
        edges,
        vertices,
    )


def _same_ids(vertices: VertexTable, manifest: dict[str, Any]) -> None:
    if manifest["input"]["id_type"] != type_name(vertices.id_type):
        raise Flaw(f"the ids are {type_name(vertices.id_type)}; the manifest says {manifest['input']['id_type']}")


def _order(edges: EdgeTable, vertices: VertexTable) -> tuple[str, bool]:
    source, target = edges.source, edges.target
    reject(source >= target, lambda at: f"{edge_at(edges, vertices, at)}: the source is not the smaller end")
    behind = (source[1:] < source[:-1]) | ((source[1:] == source[:-1]) & (target[1:] <= target[:-1]))
    reject(behind, lambda at: f"{edge_at(edges, vertices, at + 1)} does not come after {edge_at(edges, vertices, at)}")
    return "sorted, each edge once, source < target", True


def _survey(graph: Simple, bounds: list[NDArray[np.int32]]) -> tuple[str, tuple[Int, list[Backing]]]:
    support, backings = survey(graph, bounds)
    return f"{int(support.sum()) // (4 if graph.two_sided else 3):,} found again", (support, backings)


def _edge_column(name: str, right: NDArray[Any], edges: EdgeTable, vertices: VertexTable) -> tuple[str, bool]:
    stored = edges.values[name].to_numpy()
    reject(stored != right, lambda at: f"{edge_at(edges, vertices, at)}: {name} is {right[at]}, not {stored[at]}")
    return "computed again for each edge", True


def _low_holds(
    graph: Simple, edges: EdgeTable, vertices: VertexTable, support: Int, backing: Backing
) -> tuple[str, bool]:
    low, count = edges.low, backing.count
    converged = low is edges.high
    reject(
        (low < 0) | (low > support),
        lambda at: f"{edge_at(edges, vertices, at)}: {low[at]} is not in 0 … {support[at]}, its support",
    )
    unbacked = count < low
    if converged:
        reject(
            unbacked,
            lambda at: (
                f"{edge_at(edges, vertices, at)} has λ {low[at]}, "
                f"but only {count[at]} {graph.measure} whose other edges have that or more"
            ),
        )
    elif unbacked.any():
        exact = peel(graph)
        reject(
            low > exact, lambda at: f"{edge_at(edges, vertices, at)} has lower bound {low[at]}, but λ is {exact[at]}"
        )
    return f"up to {int(low.max(initial=0))}", True


def _high_holds(
    graph: Simple, edges: EdgeTable, vertices: VertexTable, bound: NDArray[np.int32], backing: Backing
) -> tuple[str, bool]:
    high = edges.high
    reject(
        high < edges.low,
        lambda at: f"{edge_at(edges, vertices, at)}: upper bound {high[at]} is below lower bound {edges.low[at]}",
    )
    too_low = not_falling(graph, bound, backing)
    if too_low.size and high is edges.low:
        raise Flaw(
            f"{edge_at(edges, vertices, too_low[0])} has λ {high[too_low[0]]}, but is in a part of the graph"
            f" in which every edge has more {graph.measure} than that (the first of {too_low.size:,})"
        )
    if too_low.size:
        # All bounds below the first level with such an edge are proved. Peel the other edges.
        within = np.flatnonzero(high >= high[too_low].min())
        exact = peel(graph.only(within))
        reject(
            high[within] < exact,
            lambda at: (
                f"{edge_at(edges, vertices, within[at])} has upper bound {high[within[at]]}, but λ is {exact[at]}"
            ),
        )
    return f"up to {int(high.max(initial=0))}", True


def _vertices(edges: EdgeTable, vertices: VertexTable, support: Int, measure: str) -> tuple[str, bool]:
    size = len(vertices.ids)
    ends = np.concatenate([edges.source, edges.target])

    def highest(bound: NDArray[np.int32]) -> Int:
        most = np.zeros(size, np.int64)
        np.maximum.at(most, ends, np.tile(bound, 2))
        return most

    triangles = _triangles(edges, vertices, support)

    def compare(name: str, stored: Int | NDArray[np.int32], expected: Int) -> None:
        def message(at: int) -> str:
            return f"vertex {vertices.name(at)}: {name} says {stored[at]}, but is {expected[at]}"

        reject(stored != expected, message)

    one_bound = edges.low is edges.high
    compare("degree", vertices.degree, np.bincount(ends, minlength=size))
    compare(measure, vertices.triangles, triangles)
    compare("λ" if one_bound else "lower bound", vertices.low, highest(edges.low))
    compare("λ" if one_bound else "upper bound", vertices.high, highest(edges.high))
    return f"degree, {measure} and λ follow from the edges", True


def _estimate_error(estimate: dict[str, Any], edges: EdgeTable) -> tuple[str, bool]:
    """Compare estimates of λ with λ: they are not certified, but their error is."""
    name, error = estimate["column"], estimate["error"]
    detail = f"{name} is an estimate and is not checked"
    if error is None or edges.low is not edges.high:
        return f"{detail}; its error is not known", True
    within = edges.support > 0
    estimates, exact = edges.values[name].to_numpy()[within].astype(np.int64), edges.low[within]
    off = np.abs(estimates - exact) / np.maximum(exact, 1)
    below = (estimates < exact).mean()
    told = {"median": np.median(off), "mean": off.mean(), "exact": (off == 0).mean(), "below": below}
    for part, value in told.items() if len(off) else ():
        if not abs(error[part] - value) <= 1e-6:
            raise Flaw(f"the manifest's bounding.estimates.error.{part} is {error[part]}; the tables give {value}")
    return f"{detail}; its error is as the manifest says", True


def _totals(manifest: dict[str, Any], edges: EdgeTable, vertices: VertexTable, support: Int) -> tuple[str, bool]:
    counts = manifest["counts"]
    expected = {
        "counts.edges": edges.source.size,
        "counts.vertices": len(vertices.ids),
        f"counts.{measure_of(manifest)}": int(support.sum()) // (4 if is_two_sided(manifest) else 3),
        "counts.rows": sum(counts[part] for part in ("self_loops", "duplicates", "nulls_dropped", "edges"))
        + counts.get("filtered", 0),
    }
    bounds = {"lambda": (edges.low, vertices.low), "lambda_high": (edges.high, vertices.high)}
    for name, (bound, of_vertices) in list(bounds.items())[: 1 + (edges.low is not edges.high)]:
        expected[f"{name}.max"] = int(bound.max(initial=0))
        expected[f"{name}.sum"] = int(bound.sum(dtype=np.int64))
        expected[f"{name}.histogram"] = counted(bound)
        if (manifest.get(name) or {}).get("vertices") is not None:  # earlier releases have none
            expected[f"{name}.vertices"] = counted(of_vertices[vertices.degree > 0])
    for name, value in expected.items():
        section, key = name.split(".")
        stored = (manifest.get(section) or {}).get(key)
        if stored != value:
            raise Flaw(f"the manifest's {name} is {stored}; the tables give {value}")
    owned = 0
    for part in manifest["partitions"]:
        parts = part["inner"] + part.get("peripheral", 0) + part["cut"]  # earlier releases counted more sorts
        if parts != part["owned"]:
            raise Flaw(f"partition {part['partition']} owns {part['owned']} edges, but counts {parts} of all sorts")
        owned += part["owned"]
    edge_count, what = edges.source.size, "there are"
    if (manifest.get("bounding") or {}).get("shards") is not None:  # shards do not have edges without triangles
        edge_count, what = int(np.count_nonzero(support)), "those in triangles are"
    if owned != edge_count:
        raise Flaw(f"the partitions own {owned} edges; {what} {edge_count}")
    return "the manifest's counts and histograms follow from the tables", True


def _distinct_bounds(edges: EdgeTable) -> list[NDArray[np.int32]]:
    return [edges.low] if edges.low is edges.high else [edges.low, edges.high]


def check_programs(
    manifest: dict[str, Any], edges: EdgeTable, vertices: VertexTable, arcs: Arcs | None = None
) -> tuple[str, bool]:
    """Check each program whose column can be checked. The detail lists checked and unchecked programs. Raises Flaw.

    `arcs` are the edges of the input with their directions and weights, which the result does not have. Without them,
    programs that depend on these are not checked, nor are programs that did not end by themselves.
    """
    checked: list[str] = []
    left: list[str] = []
    hidden: list[str] = []
    from ..programs.shipped import shipped_class  # loads the kernels of programs, which no check uses

    known = arcs_of(edges) if arcs is None and not manifest["input"].get("directed") else arcs
    for record in manifest["programs"]:
        name = record["name"]
        kind = shipped_class(name)
        check = None if kind is None else kind.check
        with of_record(name):
            if isinstance(check, CheckByEdges) and record["converged"]:
                check.run(edges, vertices, record)
                checked.append(name)
            elif not isinstance(check, CheckByArcs) or not (record["converged"] or check.repeats_supersteps):
                left.append(name)
            elif known is None or (known.weight is None and check.needs_weights_for(record)):
                hidden.append(name)
            else:
                check.run(known, vertices, record)
                checked.append(name)
    others = f"; not checked: {', '.join(left)}" if left else ""
    if hidden:
        others += f"; not checked without the input, which has directions and weights: {', '.join(hidden)}"
    return f"as the edges say: {', '.join(checked) or 'none'}{others}", True
