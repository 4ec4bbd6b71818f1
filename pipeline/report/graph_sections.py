"""The sections about the graph: the DN-graphs, the distribution of λ, the hierarchy, and the vertex programs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..output.manifest import Counts, ProgramRecord
from ..queries.attributes import labels_of
from ..queries.program_columns import ColumnSummary, facts_text, range_text, row_name, summaries, value_text
from ..results.listed_groups import listed_groups
from ..results.lookup import DNGraph
from ..results.result import Result
from .charts import bars, curves, icicle, marks
from .distributions import ShownGroups, groups, levels, members
from .hierarchy import Branch, blocks, branches, upper
from .parts import Chart, Names, Section, Table, argument, clipped, counted, duration, number, share

MOST_BRANCHES = 15
MOST_GROUPS = 15
MOST_MEMBERS = 12
MOST_ROWS = 10
"""Vertices or groups of a column of a program, at most."""
GROUPS_TITLE = "The densest groups"


def dense(result: Result, location: str) -> list[Section]:
    """The sections of the DN-graphs, of the distribution of λ, and of the hierarchy if the result has one.

    `location` is the path or URL that the result has, or will have once it is published. Raises InputError for damage.
    """
    if (record := result.manifest.dense) is None:
        why = (
            "This result was made by an earlier release, which did not compute dense groups. Run again to compute them."
            if result.manifest.exact
            else "The run did not converge, so the groups are not known. Run again without the limit."
        )
        return [Section("dn-graphs", GROUPS_TITLE, [why], [], []), _distribution(result, None)]
    found = groups(result.dn_graphs, result.manifest.lam.max, MOST_GROUPS)
    return [
        _dn_graphs(result, found, location),
        _distribution(result, found),
        _hierarchy(result, record.components, record.roots),
    ]


def _distribution(result: Result, groups: ShownGroups | None) -> Section:
    """Edges by λ, the sizes of the k-trusses, and the DN-graphs by λ and size."""
    manifest, found = result.manifest, levels(result)
    counts, what = manifest.counts, "λ" if manifest.exact else "lower end of λ"
    text = [
        "λ of an edge is the largest k such that the edge lies in a subgraph in which every edge is in at least k "
        + ("butterflies." if manifest.input.two_sided else "triangles. The edges with λ ≥ k form the (k + 2)-truss.")
    ]
    if not manifest.exact:
        text.append(
            "The run did not converge: an edge has an interval that contains its λ. Lower ends of intervals are shown."
        )
    trusses = {"edges": found.edges_above, "vertices": found.vertices_above}
    header = [f"{what}>", "edges>", f"edges with {what} at least>", "of all>", "their vertices>"]
    columns = [
        found.names,
        [number(edges) for edges in found.edges],
        [number(edges) for edges in found.edges_above],
        [share(edges, counts.edges) for edges in found.edges_above],
        [number(vertices) for vertices in found.vertices_above],
    ]
    if found.high_above is not None:
        trusses["edges, upper ends"] = found.high_above
        header.append("edges with upper end at least>")
        columns.append([number(edges) for edges in found.high_above])
    charts = [
        bars(
            f"Edges by {what}", "The number of edges has a logarithmic axis.", found.names, {"edges": found.edges}, what
        ),
        curves(
            "Sizes of k-trusses",
            "Edges with at least this λ, and their vertices, on a logarithmic axis.",
            found.first,
            trusses,
            ("λ at least", "edges, vertices"),
            logarithmic=True,
        ),
    ]
    if groups and groups.cells:
        charts.append(
            marks(
                "Groups by λ and size",
                "All dense groups. Groups of similar λ and size share a mark; a larger mark stands for more groups.",
                groups.cells,
            )
        )
    caption = f"Edges by {what}, and the truss that begins with each range"
    table = Table(caption, tuple(header), [*zip(*columns, strict=True)], folded=True)
    return Section("lambda", "Distribution of λ", text, charts if counts.edges else [], [table])


def _hierarchy(result: Result, components: int, roots: int) -> Section:
    part = upper(result.hierarchy)
    text = [
        f"The graph has {counted(roots, 'connected component')}, and {counted(components, 'component')} of {{λ ≥ k}} "
        "over all k. Where a component splits, its largest part continues the branch and every other part starts one."
    ]
    if not part.whole:
        text.append(f"Only the {number(part.component.size)} components with the most edges were read.")
    picture = icicle(
        "Components by λ",
        "Each block is a component. It is as wide as its number of edges and covers the levels of λ at which it is a "
        "component. It contains the blocks above it. Colours distinguish branches.",
        blocks(part),
    )
    header = ("starts at λ>", "edges>", "vertices>", "reaches λ>", "component>", "last component>")
    rows = [_branch(branch) for branch in branches(part, MOST_BRANCHES)]
    note = "The last component of a branch is a DN-graph with the same id, if its λ is above 0."
    table = Table("Largest branches", header, rows, note)
    charts, tables = ([picture], [table]) if rows else ([], [])
    return Section("hierarchy", "Hierarchy", text, charts, tables, beside=1)


def _branch(branch: Branch) -> tuple[str, ...]:
    known = branch.end is not None
    return (
        number(branch.first),
        number(branch.edges),
        number(branch.vertices),
        number(branch.top) if known else f"≥ {number(branch.top)}",
        str(branch.component),
        str(branch.end) if known else "",
    )


def _dn_graphs(result: Result, found: ShownGroups, location: str) -> Section:
    """The DN-graphs of the highest λ and those with the most vertices, with some members of each."""
    if not found.by_lambda:
        shape = "butterfly" if result.manifest.input.two_sided else "triangle"
        return Section("dn-graphs", GROUPS_TITLE, [f"The graph has none: no edge is in a {shape}."], [], [])
    record, vertices = result.manifest.dense, number(result.manifest.counts.vertices)
    assert record is not None
    count, tracked = record.dn_graphs, result.in_series
    best, pairs = found.by_lambda[0], "a vertex of each side" if result.manifest.input.two_sided else "its vertices"
    text = [
        f"The densest group has {counted(best.vertices, 'vertex', 'vertices')} and λ = {number(best.lam)}. The graph "
        f"has {counted(count, 'dense group')} in all, with {number(record.members)} of its {vertices} vertices.",
        "The literature calls a dense group a DN-graph: a connected set of edges of one λ that touches no edge of a "
        f"higher λ. Density is the share of the pairs of {pairs} that are edges.",
    ]
    some = members(
        result.dn_graph_members, sorted({g.id for g in (*found.by_lambda, *found.by_vertices)}), MOST_MEMBERS
    )

    names = _names(result, some)

    def row(group: DNGraph) -> tuple[str | Names, ...]:
        return (
            *((number(group.track),) if tracked and group.track is not None else ("",) if tracked else ()),
            number(group.lam),
            number(group.vertices),
            Names(names[group.id], group.vertices - len(names[group.id])),
            f"{group.density:.3f}",
            number(group.edges),
            number(group.triangles),
            str(group.id),
        )

    sizes = ("λ>", "vertices>", "first members by id", "density>", "edges>", f"{result.manifest.measure}>", "id>")
    header = ("track>", *sizes) if tracked else sizes
    tables = [Table("Groups of the highest λ", header, [row(group) for group in found.by_lambda])]
    if count > MOST_GROUPS:
        tables.append(Table("Groups with the most vertices", header, [row(group) for group in found.by_vertices]))
    if tracked:
        text.append("A group keeps its track from night to night while most of its members stay. Its id can change.")
    return Section("dn-graphs", GROUPS_TITLE, text, [], tables, commands=_commands(location, best.id))


def _names(result: Result, some: Mapping[int, list[Any]]) -> dict[int, list[tuple[str, str]]]:
    """For each group its members as text: label and id, or id and an empty text."""
    labels = iter(labels_of(result, [id for ids in some.values() for id in ids]))
    return {group: [_name(id, next(labels)) for id in ids] for group, ids in some.items()}


def _name(id: Any, label: str | None) -> tuple[str, str]:
    return (clipped(id), "") if label is None else (clipped(label), clipped(id))


def _commands(location: str, group: int) -> list[tuple[str, str]]:
    out = argument(location)
    return [
        ("Draw the groups in a browser", f"edgemill explore {out}"),
        ("List all members of a group", f"edgemill members {out} {group}"),
        ("Write the edges of a group", f"edgemill subgraph {out} --dn-graph {group} --output group.parquet"),
    ]


def programs(result: Result) -> list[Section]:
    """One section for each program. Raises InputError for damage."""
    columns = summaries(result, MOST_ROWS)
    return [
        _section(
            at,
            record,
            [column for column in columns if column.program == record.name],
            result.manifest.counts,
            _tracked_groups(result, record),
        )
        for at, record in enumerate(result.manifest.programs)
    ]


def _tracked_groups(result: Result, record: ProgramRecord) -> list[Table]:
    """The largest groups of a program with their tracks, in a series of nights."""
    if record.tracks is None or not result.in_series:
        return []
    listed = listed_groups(result, record.name)
    rows = [
        (
            number(row["track"]),
            number(row["k"]),
            number(row["vertices"]),
            f"{row['density']:.3f}",
            number(row["edges"]),
            str(row["id"]),
        )
        for row in listed.largest("vertices", MOST_GROUPS).to_pylist()
    ]
    count = counted(len(listed.rows), "group")
    note = "A group keeps its track from night to night while most of its members stay. Its id can change."
    header = ("track>", "level>", "vertices>", "density>", "edges>", "id>")
    return [Table(f"Largest of {count}, with their tracks", header, rows, note)] if rows else []


def _section(
    at: int, record: ProgramRecord, columns: list[ColumnSummary], counts: Counts, tracked: list[Table]
) -> Section:
    ended = "" if record.converged else " A limit ended it before it had converged."
    text = [f"{counted(record.supersteps, 'superstep')} in {duration(record.seconds)}.{ended}"]
    text += [f"{clipped(column.name)}: {column.meaning}" for column in columns if column.meaning]
    text += [f"{clipped(facts_text(record.facts))}."] * bool(record.facts)
    text += [f"{clipped(column.constant)}." for column in columns if column.constant]
    tables = tracked + [
        table
        for column in columns
        if not column.constant
        for table in (_first(column), _spread(column, counts.edges if column.of_edges else counts.vertices))
    ]
    title = f"Program {clipped(record.name)}"
    return Section(f"program{chr(ord('a') + at)}", title, text, _hop_plot(record), tables, len(tables))


def _hop_plot(record: ProgramRecord) -> list[Chart]:
    """The numbers of pairs by distance, if the program counted them."""
    pairs = [round(count) for count in record.facts.get("hop_plot", [])]
    if len(pairs) < 2:
        return []
    about = "Ordered pairs of vertices by the number of edges on a shortest path between them."
    distances = range(1, len(pairs) + 1)
    return [
        curves("Hop plot", about, distances, {"pairs": pairs}, ("distance", "pairs"), logarithmic=True, steps=False)
    ]


def _first(column: ColumnSummary) -> Table:
    name = clipped(column.name)
    rows = [
        (clipped(row_name(id)), number(value) if isinstance(value, int) else clipped(value_text(value)))
        for id, value in column.top
    ]
    if column.groups is None:
        what = "edge" if column.of_edges else "vertex"
        return Table(f"{column.rows.capitalize()} of highest {name}", (what, f"{name}>"), rows)
    if column.others:
        rows.append(("none", number(column.others)))
    return Table(f"Largest of {counted(column.groups, 'group')} by {name}", (name, f"{column.rows}>"), rows)


def _spread(column: ColumnSummary, every: int) -> Table:
    whole = every if column.groups is None else column.groups
    rows = [(range_text(own), number(own.vertices), share(own.vertices, whole)) for own in column.ranges]
    if column.others and column.groups is None:
        rows.append(("none", number(column.others), share(column.others, every)))
    what = ("value", column.rows) if column.groups is None else (f"{column.rows} of a group", "groups")
    return Table(f"Distribution of {clipped(column.name)}", (f"{what[0]}>", f"{what[1]}>", "share>"), rows)
