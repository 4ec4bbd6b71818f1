"""What `edgemill run` prints at its end: the counts, the first groups, and what to type next."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..escaping import one_line
from ..manifest import Counts, Manifest
from ..show import grid, print_whole
from .best import BestGroup
from .names import Names

__all__ = ["dropped_rows", "groups_table", "print_ending", "print_titled", "summary_rows"]


def print_ending(manifest: Manifest, path: str, report: str | None, groups: Sequence[BestGroup], out: str) -> None:
    """Print it on standard output; `out` is what the user called the output."""
    raise AssertionError


def summary_rows(manifest: Manifest, path: str, report: str | None) -> dict[str, str]:
    """What was found, and where it is."""
    counts = manifest.counts
    top = f"{manifest.lam.max:,}"
    if not manifest.converged and manifest.lambda_high is not None:
        top = f"{top} to {manifest.lambda_high.max:,}"
    rows = {
        "edges": f"{counts.edges:,}",
        "vertices": f"{counts.vertices:,}",
        "triangles": f"{counts.triangles:,}",
        "lambda max": top,
    }
    if manifest.dense:
        rows["DN-graphs"] = f"{manifest.dense.dn_graphs:,}"
    if dropped := dropped_rows(counts):
        rows["dropped"] = dropped
    rows |= {"seconds": f"{manifest.seconds:.2f}", "output": path}
    return rows if report is None else rows | {"report": report}
