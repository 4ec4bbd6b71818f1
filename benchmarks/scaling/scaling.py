"""The model of docs/scaling.md: fits it to what was measured and counted, and prints its constants and its tables.

    python -m benchmarks scaling --write docs/scaling.md --pictures docs/scaling

Reads measured.csv and shards.csv in docs/scaling. `--write` replaces each table of a page below the comment that has
its title, and `--pictures` draws the pictures into a folder. A test compares both with what is in docs. *Worst* is the
largest relative error of a fit at its points. Nothing is timed.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from pathlib import Path

from benchmarks import ROOT

from .machines import Machines
from .model import fit_model
from .pictures import pictures
from .points import read_counts, read_points
from .tables import details, tables

FOLDER = ROOT / "docs" / "scaling"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this command."""
    parser.add_argument("--folder", type=Path, default=FOLDER, help="of measured.csv and shards.csv (docs/scaling)")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="page whose tables are replaced")
    parser.add_argument("--pictures", type=Path, metavar="FOLDER", help="folder for the pictures, SVG")
    parser.add_argument("--nodes", type=int, default=32)
    parser.add_argument("--gpus", type=int, default=8, help="of each node (8)")


def report(options: argparse.Namespace) -> None:
    """Fit, print, and write what is asked for."""
    machines = Machines(options.nodes, options.gpus)
    points, counts = read_points(options.folder / "measured.csv"), read_counts(options.folder / "shards.csv")
    model = fit_model(points, counts)
    found = tables(model, points, machines)
    for title, text in (found | details(model, machines)).items():
        print(f"{title}:\n\n{text}\n")
    if options.write:
        write_page(options.write, found)
    if options.pictures:
        for name, drawn in pictures(model, counts, points, machines).items():
            (options.pictures / name).write_text(drawn, encoding="utf-8")


def write_page(page: Path, found: Mapping[str, str]) -> None:
    """Replace each table below `<!-- its title -->`. LookupError if a page has no such comment."""
    text = page.read_text(encoding="utf-8")
    for title, table in found.items():
        before, mark, after = text.partition(f"<!-- {title} -->\n\n")
        if not mark:
            raise LookupError(f"{page} has no place for {title!r}")
        rest = re.sub(r"\A(\|.*\n)*", "", after).lstrip("\n")
        text = f"{before}{mark}{table}\n\n{rest}"
    page.write_text(text, encoding="utf-8")
