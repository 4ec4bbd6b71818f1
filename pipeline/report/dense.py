"""What the page says of the dense parts of the graph: λ, the hierarchy, the DN-graphs."""

from __future__ import annotations

from ..result import Result
from ..rows import DNGraph
from .charts import bars, curves, icicle, marks
from .groups import groups, members
from .hierarchy import Branch, blocks, branches, upper
from .levels import levels
from .parts import Section, Table, clipped, counted, number, share

__all__ = ["dense", "distribution"]

MOST_BRANCHES = 15
MOST_GROUPS = 15
MOST_MEMBERS = 6


def distribution(result: Result) -> Section:
    """Edges by λ, and the sizes of k-trusses."""
    manifest, found = result.manifest, levels(result)
    counts, what = manifest.counts, "λ" if manifest.converged else "lower end of λ"
    text = [
        "λ of an edge is the largest k such that the edge lies in a subgraph in which every edge closes at least k "
        "triangles. The edges with λ ≥ k are the (k + 2)-truss."
    ]
    if not manifest.converged:
        text.append("The run did not converge: edges have intervals that hold their λ, and their lower ends are shown.")
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
        bars(f"Edges by {what}", "Edges on a logarithmic axis.", found.names, {"edges": found.edges}, what),
        curves(
            "Sizes of k-trusses",
            "Edges with λ of at least so much, and their vertices, on a logarithmic axis.",
            found.first,
            trusses,
            ("λ at least", "edges, vertices"),
            logarithmic=True,
        ),
    ]
    caption = f"Edges by {what}, and the truss that begins with each range"
    table = Table(caption, tuple(header), [*zip(*columns, strict=True)])
    return Section("lambda", "Distribution of λ", text, charts if counts.edges else [], [table])


def dense(result: Result) -> list[Section]:
    """The hierarchy and the DN-graphs; one section that says why there are none, where there are none."""
    if (record := result.manifest.dense) is None:
        why = (
            "This result was made by an earlier release, which did not look for them: run again."
            if result.converged
            else "The run did not converge, so the groups are not known: run again without the limit."
        )
        return [Section("hierarchy", "Hierarchy and DN-graphs", [why], [], [])]
    return [
        _hierarchy(result, record.components, record.roots),
        _dn_graphs(result, record.dn_graphs, record.members),
    ]


def _hierarchy(result: Result, components: int, roots: int) -> Section:
    part = upper(result.hierarchy)
    text = [
        f"The graph has {counted(roots, 'connected component')}, and {counted(components, 'component')} of {{λ ≥ k}} "
        "over all k. Where a component comes apart, each part but the largest begins a branch."
    ]
    if not part.whole:
        text.append(f"Only the {number(part.component.size)} components with the most edges were looked at.")
    picture = icicle(
        "Components by λ",
        "Each block is a component, as wide as it has edges, over the levels at which it is one; what lies above it "
        "lies in it. Colours tell branches apart.",
        blocks(part),
    )
    header = ("begins at λ>", "edges>", "vertices>", "rises to λ>", "component>", "ends in>")
    rows = [_branch(branch) for branch in branches(part, MOST_BRANCHES)]
    note = "A branch ends in the DN-graph of that id, if λ there is more than 0."
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


def _dn_graphs(result: Result, count: int, inside: int) -> Section:
    found = groups(result.dn_graphs, result.manifest.lam.max, MOST_GROUPS)
    text = [
        "A DN-graph is a component in which all edges have one λ, and which no edge with more touches: a dense group. "
        f"The graph has {counted(count, 'DN-graph')}, with {number(inside)} of its "
        f"{number(result.manifest.counts.vertices)} vertices."
    ]
    some = members(
        result.dn_graph_members, sorted({g.id for g in (*found.by_lambda, *found.by_vertices)}), MOST_MEMBERS
    )

    def row(group: DNGraph) -> tuple[str, ...]:
        shown = ", ".join(clipped(member) for member in some[group.id])
        return (
            str(group.id),
            number(group.lam),
            number(group.vertices),
            number(group.edges),
            f"{group.density:.3f}",
            number(group.triangles),
            f"{shown}, …" if group.vertices > len(some[group.id]) else shown,
        )

    header = ("id>", "λ>", "vertices>", "edges>", "density>", "triangles>", "vertices, the first of them")
    tables = [Table("DN-graphs with the highest λ", header, [row(group) for group in found.by_lambda])]
    if count > MOST_GROUPS:
        tables.append(Table("DN-graphs with the most vertices", header, [row(group) for group in found.by_vertices]))
    chart = marks(
        "DN-graphs by λ and size",
        "All DN-graphs; those of about one λ and size share a mark, larger where there are more.",
        found.cells,
    )
    charts, tables = ([chart], tables) if found.cells else ([], [])
    return Section("dn-graphs", "DN-graphs", text, charts, tables)
