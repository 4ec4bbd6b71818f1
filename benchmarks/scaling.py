"""The model of docs/scaling.md: constants fitted to what was measured and counted, and what they say of 100 G edges.

    python -m benchmarks scaling

Reads `measured.csv` and `shards.csv` in docs/scaling: the first holds what was measured, each line with the page of
docs/ that says so or the command; the second is what `shard_counts --csv` wrote. Prints every table of docs/scaling.md,
which a test compares with it. *Worst* is the largest error of what a fit says of a point that it was fitted to.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks import ROOT
from benchmarks.scaling_fit import Span, short
from benchmarks.scaling_model import (
    FILL,
    LAYOUTS,
    Machines,
    Model,
    fit_model,
    limits,
    memory,
    moves,
    read_points,
    rmat,
    sum_of,
    times,
)
from benchmarks.shard_counts import ShardCounts, read_csv
from benchmarks.table import markdown

FOLDER = ROOT / "docs" / "scaling"
SIZES = (1e9, 3e9, 1e10, 3e10, 1e11)
"""Edges that the tables are for."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    parser.add_argument("--folder", type=Path, default=FOLDER, help="of measured.csv and shards.csv")
    parser.add_argument(
        "--write", type=Path, help="page whose tables are replaced, each below a comment with its title"
    )
    parser.add_argument("--pictures", type=Path, help="folder for what scaling_pictures.py draws of them, SVG")
    parser.add_argument("--nodes", type=int, default=32)
    parser.add_argument("--gpus", type=int, default=8, help="of each node (8)")


def report(options: argparse.Namespace) -> None:
    """Fit and print."""
    machines = Machines(options.nodes, options.gpus)
    points, counts = read_points(options.folder / "measured.csv"), read_csv(options.folder / "shards.csv")
    model = fit_model(points, counts)
    found = tables(model, counts, machines)
    for title, text in found.items():
        print(f"{title}:\n\n{text}\n")
    if options.write:
        write_page(options.write, found)
    if options.pictures:
        from benchmarks.scaling_pictures import pictures  # which is made of what is here

        for name, drawn in pictures(model, counts, machines).items():
            (options.pictures / name).write_text(drawn, encoding="utf-8")


def tables(model: Model, counts: Sequence[ShardCounts], machines: Machines) -> dict[str, str]:
    """Title → table, as in docs/scaling.md."""
    return {
        "Bytes, at 100 G edges": _bytes_table(model, machines),
        "Counted": _counted_table(counts),
        "Constants": _constants_table(model),
        "Curves": _curves_table(model),
        "Taken from the counts": _spans_table(model),
        "Memory, GB a GPU": _memory_table(model, machines),
        "Time, s": _time_table(model, machines),
        "Remedies, s at 100 G edges": _remedies_table(model, machines),
        "Totals, s": _totals_table(model, machines),
        "Where terms break, G edges": _limit_table(model, machines),
    }


def write_page(page: Path, found: Mapping[str, str]) -> None:
    """Put each table below `<!-- its title -->` in a page, in place of the one that is there. LookupError without."""
    text = page.read_text(encoding="utf-8")
    for title, table in found.items():
        before, mark, after = text.partition(f"<!-- {title} -->\n\n")
        if not mark:
            raise LookupError(f"{page} has no place for {title!r}")
        old = re.match(r"(\|.*\n)*", after)
        assert old is not None
        rest = after[old.end() :].lstrip("\n")  # a line right below a table would be a row of it
        text = f"{before}{mark}{table}\n\n{rest}"
    page.write_text(text, encoding="utf-8")


def _billions(edges: float) -> str:
    return f"{edges / 1e9:.0f} G edges"


def _gigabytes(size: Span) -> str:
    return short(size.least / 1e9) if size.least == size.most else str(size * 1e-9)


def _bytes_table(model: Model, machines: Machines) -> str:
    head = ("exchange", "bytes to or from a GPU", "GB", "from other nodes, if relayed")
    away = 1 - 1 / machines.nodes
    rows = [
        [
            move.exchange,
            move.formula,
            _gigabytes(move.each),
            _gigabytes(move.each * (away / machines.gpus if move.shared else away)),
        ]
        for move in moves(model, machines, rmat(model, SIZES[-1]))
    ]
    return markdown(head, rows)


def _counted_table(counts: Sequence[ShardCounts]) -> str:
    head = (
        "graph",
        "shards",
        "edges, M",
        "largest / mean",
        "rows / entries",
        "both, %",
        "late, %",
        "entries read",
        "triangles",
        "exchanges",
        "messages an edge",
    )
    rows = [
        [
            one.graph,
            str(one.shards),
            f"{one.edges / 1e6:.3g}",
            f"{one.stored * one.shards:.2f}",
            f"{one.rows / (2 * one.edges):.2f}",
            *(f"{100 * pairs / one.edges / one.shards:.0f}" for pairs in (one.both, one.late)),
            *(
                [
                    f"{one.entries_uneven:.2f}",
                    f"{one.triangles_uneven:.2f}",
                    str(one.exchanges),
                    f"{one.alarms + one.reports + one.grants:.1f}",
                ]
                if one.exchanges
                else [""] * 4
            ),
        ]
        for one in counts
    ]
    return markdown(head, rows)


def _constants_table(model: Model) -> str:
    rows = [
        [
            own.name,
            ", ".join(f"{value:.3g} / {term}" for term, value in own.terms.items()),
            str(len(own.points)),
            f"{100 * own.worst:.0f}",
        ]
        for own in model.sums.values()
    ]
    return markdown(("seconds of", "constants", "points", "worst, %"), rows)


def _curves_table(model: Model) -> str:
    rows = [
        [
            own.name,
            *(f"{value:.4g}" for value in own.terms.values()),
            str(len(own.points)),
            f"{100 * own.worst:.0f}",
            f"{own(SIZES[-1]):,.3g}",
        ]
        for own in model.curves.values()
    ]
    return markdown(("R-MAT of E edges", "factor", "power of E", "points", "worst, %", "of 100 G edges"), rows)


def _spans_table(model: Model) -> str:
    spans = {
        "triangles of the busiest shard over the mean": model.uneven,
        "alarms, reports and grants an edge": model.messages,
        "exchanges for each round of one partition": model.exchanges,
        "rounds of graphs over those of R-MAT's curve": model.rounds,
        "edges of the largest round, % of those with triangles": model.largest * 100,
    }
    return markdown(("", "least - most"), [[name, str(span)] for name, span in spans.items()])


def _memory_table(model: Model, machines: Machines) -> str:
    found = [memory(model, machines, rmat(model, edges)) for edges in SIZES]
    rows = [[term, *(_gigabytes(own[term]) for own in found)] for term in found[0]]
    rows.append(["all", *(_gigabytes(sum_of(list(own.values()))) for own in found)])
    rows.append([f"of {FILL * machines.memory / 1e9:.0f} GB", *(f"{_share(own, machines)} %" for own in found)])
    return markdown(("", *map(_billions, SIZES)), rows)


def _share(parts: Mapping[str, Span], machines: Machines) -> str:
    return str(sum_of(list(parts.values())) * (100 / (FILL * machines.memory)))


def _time_table(model: Model, machines: Machines) -> str:
    return _compared(
        [times(model, machines, rmat(model, edges), LAYOUTS[0]) for edges in SIZES], [*map(_billions, SIZES)]
    )


def _remedies_table(model: Model, machines: Machines) -> str:
    found = [times(model, machines, rmat(model, SIZES[-1]), layout) for layout in LAYOUTS]
    return _compared(found, [layout.name for layout in LAYOUTS])


def _totals_table(model: Model, machines: Machines) -> str:
    graphs = [rmat(model, edges) for edges in SIZES]
    rows = [
        [layout.name, *(str(sum_of(list(times(model, machines, graph, layout).values()))) for graph in graphs)]
        for layout in LAYOUTS
    ]
    return markdown(("", *map(_billions, SIZES)), rows)


def _compared(found: Sequence[Mapping[str, Span]], names: Sequence[str]) -> str:
    rows = [[term, *(str(own[term]) for own in found)] for term in found[0]]
    rows.append(["all", *(str(sum_of(list(own.values()))) for own in found)])
    return markdown(("", *names), rows)


def _limit_table(model: Model, machines: Machines) -> str:
    rows = [
        [own.term, own.where, *(short(edges / 1e9) for edges in (own.rmat, own.sparse))]
        for own in limits(model, machines)
    ]
    return markdown(("term", "from", "R-MAT", "10 edges a vertex"), rows)
