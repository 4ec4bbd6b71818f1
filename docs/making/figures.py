"""Makes the tables of docs/numbers.md, and its picture, from `benchmarks/history.csv`.

python docs/making/figures.py

Each table is followed by the commands, machines and days of its figures. Of several figures of one measure and machine
the last one counts. A test says when the page is not what the record says.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from math import log10
from pathlib import Path

from drawing import bar, document, line, text

ROOT = Path(__file__).resolve().parents[2]
HISTORY = ROOT / "benchmarks" / "history.csv"
"""Made by `python -m benchmarks record`."""
PAGE = ROOT / "docs" / "numbers.md"
PICTURE = ROOT / "docs" / "pictures" / "numbers.svg"
MADE = re.compile(r"(<!-- numbers: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
COLOURS = ("#8b949e", "#3b82c4", "#2a9d6f")
EDGES = {
    "facebook_combined": ("ego-Facebook", "0.088"),
    "ego-Twitter_combined": ("ego-Twitter", "1.34"),
    "cnr-2000": ("cnr-2000", "2.74"),
    "uk-2007-05_100000": ("uk-2007-05@100000", "2.78"),
    "actor-collaboration": ("actor-collaboration", "15.0"),
    "rmat18": ("R-MAT 18", "3.81"),
    "rmat20": ("R-MAT 20", "15.7"),
    "rmat22": ("R-MAT 22", "64.2"),
    "rmat24": ("R-MAT 24", "260"),
    "rmat26": ("R-MAT 26", "1,052"),
    "rmat27": ("R-MAT 27", "2,112"),
    "rmat28": ("R-MAT 28", "4,236"),
}
"""Graph of the record → its name, and its edges in millions."""
AMD, XEON, H200 = "AMD EPYC (Zen 5, KVM), 2 cores", "Intel Xeon (KVM), 16 cores", "NVIDIA H200"
THREE = ((AMD, "2 cores"), (XEON, "16 cores"), (H200, "one H200"))
"""How a machine of the record begins, and its column."""


@dataclass(frozen=True)
class Cell:
    """A figure: what is measured, and how its machine begins. Another measure counts where the first has none."""

    measures: tuple[str, ...]
    machine: str
    about: str = ""
    """Column of the table, for the list of commands."""


Row = tuple[str | Cell, ...]


@dataclass(frozen=True)
class Table:
    """What a table has. The first text of a row names it."""

    head: tuple[str, ...]
    rows: tuple[Row, ...]


def _by_machine(graphs: Sequence[str], measures: Sequence[str]) -> Table:
    """A row for each graph and a column for each of three machines. `{}` of a measure is the graph."""
    rows: list[Row] = []
    for graph in graphs:
        names = (graph, graph.removeprefix("rmat"))
        cells = [Cell(tuple(one.format(name) for one in measures for name in names), at, way) for at, way in THREE]
        rows.append((*EDGES[graph], *cells))
    return Table(("graph", "edges, M", *(way for _, way in THREE)), tuple(rows))


def _cells(measure: str, machine: str, columns: Mapping[str, str]) -> tuple[Cell, ...]:
    """A cell for each column; `{}` of the measure is what the column has there."""
    return tuple(Cell((measure.format(part),), machine, column) for column, part in columns.items())


def _against(peer: str) -> Mapping[str, str]:
    return {"edgemill, s": "edgemill", "other, s": peer}


GRAPHS = (
    "facebook_combined",
    "ego-Twitter_combined",
    "cnr-2000",
    "uk-2007-05_100000",
    "rmat18",
    "rmat20",
    "rmat22",
    "rmat24",
    "rmat26",
)
NIGHTS = {"run": "run", "night without change": "none", "0.1 %": "stars-0.001", "1 %": "stars-0.01"}
PEERS = {"edgemill, ms": "edgemill", "GAP, ms": "GAP", "networkit, ms": "networkit"}
PARTS = {"λ, s": "λ", "command, s": "command"}
TABLES: Mapping[str, Table] = {
    "runs": _by_machine(GRAPHS, ("command/{}/run", "runs/{}/1/run")),
    "levels": _by_machine(
        (*GRAPHS[1:4], "actor-collaboration", *GRAPHS[4:]),
        ("kernels/{}/both", "gpu/{}/both", "command/{}/λ", "peers/{}/edgemill/λ"),
    ),
    "large": Table(
        ("graph", "edges, M", "what", "s"),
        (
            (*EDGES["rmat27"], "λ alone, one H200", Cell(("gpu/27/both",), H200)),
            (*EDGES["rmat27"], "first run, one H200", Cell(("command/rmat27/first run",), H200)),
            (*EDGES["rmat28"], "λ alone, one H200", Cell(("gpu/28/both",), H200)),
            (*EDGES["rmat28"], "run, four H200s", Cell(("mine/rmat28/run",), H200)),
        ),
    ),
    "others": Table(
        ("graph", "threads", "edgemill, s", "other, s", "other"),
        (
            ("R-MAT 20", "16", *_cells("peers/rmat20/{}/λ", XEON, _against("OPT-CPU")), "OPT-CPU"),
            ("R-MAT 22", "16", *_cells("peers/rmat22/{}/λ", XEON, _against("OPT-CPU")), "OPT-CPU"),
            ("wiki-Vote", "2 and 1", *_cells("peers/wiki-Vote/{}/both", "", _against("NetworkX")), "NetworkX"),
        ),
    ),
    "programs": Table(
        ("program", *PEERS),
        tuple(
            (program, *_cells(f"peers/rmat22/{{}}/{program}", XEON, PEERS))
            for program in ("BFS", "SSSP", "PageRank", "components", "betweenness")
        ),
    ),
    "workers": Table(
        ("graph", "workers x threads", *PARTS),
        tuple(
            (EDGES[graph][0], way, *_cells(f"workers/{graph}/{way}/{{}}", XEON, PARTS))
            for graph in ("rmat20", "rmat22")
            for way in ("1 x 4", "4 x 4", "1 x 16")
        ),
    ),
    "nights": Table(
        ("graph", "machine", *NIGHTS),
        tuple(
            (
                EDGES[graph][0],
                way,
                *(
                    Cell((f"command/{graph}/run" if part == "run" else f"command/{graph}/{part}/day",), machine, column)
                    for column, part in NIGHTS.items()
                ),
            )
            for graph, machine, way in (
                ("rmat22", "Intel Xeon (KVM), 2 cores", "2 cores"),
                ("rmat22", XEON, "16 cores"),
                ("rmat24", XEON, "16 cores"),
            )
        ),
    ),
    "memory": Table(
        ("what", "graph", "figure"),
        (
            ("memory of a worker of two threads, MiB", "R-MAT 20", Cell(("memory/rmat20/1/1/taken",), "")),
            (
                "memory of the client of two workers, above the idle process, MiB",
                "cnr-2000",
                Cell(("client_memory/cnr-2000/above",), ""),
            ),
            ("GPU, plain rows, bytes for an edge with triangles", "R-MAT 24", Cell(("gpu/24/bytes/local edge",), H200)),
            ("GPU, compact rows, bytes an edge", "R-MAT 28", Cell(("gpu/28/bytes/edge",), H200)),
            ("run within two workers of 1 GiB, s", "R-MAT 20", Cell(("command/rmat20/two workers of 1 GiB/run",), "")),
        ),
    ),
    "first": Table(
        ("graph", "machine", "first run, s", "next run, s"),
        (
            (
                "R-MAT 14",
                "2 cores",
                *_cells("first_run/rmat14/1/{}", "", {"first run, s": "first run", "next run, s": "next run"}),
            ),
            (
                "R-MAT 22",
                "one H200",
                *_cells("command/rmat22/{}", H200, {"first run, s": "first run", "next run, s": "run"}),
            ),
        ),
    ),
    "ids": Table(
        ("ids", "run, s"),
        tuple(
            (name, Cell((f"names/{kind}/gpu",), H200))
            for kind, name in (
                ("dense", "0, 1, 2, …"),
                ("random", "random integers of 63 bits"),
                ("names", "`user-0001234567`"),
                ("uuids", "UUIDs as text"),
            )
        ),
    ),
    "names": Table(
        ("ids", "until numbered, s", "DuckDB, s"),
        tuple(
            (name, *_cells(f"names/{kind}/{{}}", XEON, {"until numbered, s": "numbered", "DuckDB, s": "duckdb"}))
            for kind, name in (("names", "`user-0001234567`"), ("uuids", "UUIDs as text"))
        ),
    ),
    "install": Table(
        ("what", "MiB"), (("edgemill and what it needs, without a GPU", Cell(("install/pip/size",), "")),)
    ),
}


def history() -> list[dict[str, str]]:
    """The figures of the record."""
    with HISTORY.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def found(cell: Cell, figures: Sequence[Mapping[str, str]]) -> Mapping[str, str] | None:
    """The last figure of the first measure that has one on such a machine."""
    for measure in cell.measures:
        own = [one for one in figures if one["measure"] == measure and one["machine"].startswith(cell.machine)]
        if own:
            return own[-1]
    return None


def made(table: Table, figures: Sequence[Mapping[str, str]]) -> str:
    """The table, and the commands of its figures. Raises ValueError for a figure without a command."""
    numbers = [any(isinstance(row[place], Cell) for row in table.rows) for place in range(len(table.head))]
    rule = ["---:" if one else "---" for one in numbers]
    lines = ["| " + " | ".join(own) + " |" for own in (table.head, rule)]
    sources: dict[tuple[str, str, str], dict[str, list[str]]] = {}
    for row in table.rows:
        words = []
        for one in row:
            own = found(one, figures) if isinstance(one, Cell) else None
            words.append((own["value"] if own else "") if isinstance(one, Cell) else one)
            if own and isinstance(one, Cell):
                if not own["command"]:
                    raise ValueError(f"no command of {own['measure']}")
                about = sources.setdefault((own["command"], own["machine"], own["date"]), {})
                names = about.setdefault(one.about, [])
                if words[0] not in names:
                    names.append(words[0])
        lines.append("| " + " | ".join(words) + " |")
    alone = len(sources) == 1
    columns = {one.about for row in table.rows for one in row if isinstance(one, Cell)}
    told = [
        f"- {'' if alone else _of(about, columns) + ': '}`{command}`. {machine}, {_day(day)}."
        for (command, machine, day), about in sources.items()
    ]
    return "\n".join([*lines, "", *told])


def _of(about: Mapping[str, Sequence[str]], every: Collection[str]) -> str:
    """The figures that a command gave, by row, and by column unless they are of `every` column."""
    if len({tuple(names) for names in about.values()}) == 1:
        columns = [column for column in about if column and about.keys() != every]
        return ", ".join(next(iter(about.values()))) + (f" ({', '.join(columns)})" if columns else "")
    return "; ".join(f"{', '.join(names)} ({column})" for column, names in about.items())


def _day(day: str) -> str:
    own = date.fromisoformat(day)
    return f"{own.day} {own:%B} {own.year}"


def drawn() -> str:
    """The picture: seconds of whole runs by graph and machine, on a logarithmic scale."""
    left, right, top, step, high = 200, 660, 66, 18, 14
    least, most = -1, 2
    figures, parts, y = history(), [text((24, 28), "Seconds of a whole run, from Parquet to Parquet")], float(top)
    for place, (_, way) in enumerate(THREE):
        parts += [
            bar(left + 110 * place, 40, 12, 12, COLOURS[place]),
            text((left + 18 + 110 * place, 51), way, "quiet", size=12),
        ]
    for name, edges, *cells in TABLES["runs"].rows:
        parts.append(text((left - 14, y + 12), f"{name}, {edges} M", "", "end", 12))
        for colour, cell in zip(COLOURS, cells, strict=True):
            own = found(cell, figures) if isinstance(cell, Cell) else None
            if own:
                wide = (log10(float(own["value"])) - least) / (most - least) * (right - left)
                parts += [
                    bar(left, y, wide, high, colour),
                    text((left + wide + 6, y + 12), f"{own['value']} s", "quiet", size=12),
                ]
                y += step
        y += 8
    for power in range(least, most + 1):
        x = left + (power - least) / (most - least) * (right - left)
        parts += [
            line((x, top - 6), (x, y), "#8b949e55", 1),
            text((x, y + 14), f"{10.0**power:g}", "quiet", "middle", 12),
        ]
    return document(760, int(y) + 26, "Seconds of a whole run by graph and machine", parts)


def renewed(page: str) -> str:
    """The page with each table as the record says now."""
    figures = history()
    return MADE.sub(lambda own: f"{own[1]}\n{made(TABLES[own[2]], figures)}\n\n{own[3]}", page)


def main() -> None:
    """Write the page and the picture."""
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    PICTURE.write_text(drawn(), encoding="utf-8")


if __name__ == "__main__":
    main()
