"""Options that several commands have, and how what they ask for is printed."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from ..escaping import in_json
from ..terminal import console_on, tell
from ..wording.settings_named import Typed
from .ending import AS_JSON, DEBUG, TYPED, set_json

if TYPE_CHECKING:
    from rich.console import Console

    from ..settings import Settings

__all__ = [
    "MOST_MEMBERS",
    "console",
    "debug",
    "json_document",
    "json_rows",
    "print_document",
    "print_json",
    "print_settings",
    "run_options",
    "settings_from",
]


def _set_debug(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value:
        ctx.meta[DEBUG] = True


debug = click.option(
    "--debug", is_flag=True, expose_value=False, callback=_set_debug, help="Show the traceback of an error."
)

_METHODS = click.Choice(["auto", "peel", "band", "fixpoint"])
_DEVICES = click.Choice(["auto", "cpu", "gpu"])
_INPUT_FORMATS = click.Choice(["auto", "parquet", "csv", "tsv", "jsonl", "arrow"])
_BIPARTITE = click.Choice(["prefix", "refuse"])
_FORMATS = click.Choice(["parquet", "delta"])
_RUN_OPTIONS = [
    click.argument("config", required=False),
    click.option("--input", help="Edges: a file, a folder, a glob, a table or a URL."),
    click.option("--output", help="Folder of the result, or a URL in an object store."),
    click.option("--source-column", help="Column of one end of an edge."),
    click.option("--target-column", help="Column of the other end."),
    click.option("--table-version", type=int, metavar="N", help="Version of a Delta table, snapshot id of Iceberg's."),
    click.option("--input-format", type=_INPUT_FORMATS, help="Left out: as the names of the input's files say."),
    click.option("--where", metavar="CONDITION", help="Rows that are wanted, in SQL: \"weight > 0.5 and kind = 'a'\"."),
    click.option("--bipartite", type=_BIPARTITE, help="The columns are two sets of ids: keep them apart, or check it."),
    click.option("--directed", is_flag=True, help="Edges lead from source to target: programs heed it, λ does not."),
    click.option("--vertices", metavar="FILE", help="Parquet with attributes of vertices, such as names, a row each."),
    click.option("--vertex-id", metavar="COLUMN", help="Its column of ids; left out: id or vertex."),
    click.option(
        "--programs", metavar="NAMES", help="What is found: lambda, or lambda,pagerank,…; edgemill programs lists."
    ),
    click.option("--partitions", metavar="N|auto", help="Number of partitions."),
    click.option("--method", type=_METHODS, help="Schedule that finds λ."),
    click.option("--device", type=_DEVICES, help="What computes."),
    click.option("--workers", type=int, help="Worker processes to start here; left out: none, all in this process."),
    click.option("--scheduler", metavar="ADDRESS", help="A running Dask scheduler."),
    click.option("--scheduler-file", metavar="FILE", help="File that a running Dask scheduler wrote."),
    click.option("--output-format", type=_FORMATS, help="delta: Delta tables of the newest result as well."),
    click.option("--overwrite", is_flag=True, help="Replace an earlier result, once the new one is complete."),
    click.option("--fresh", is_flag=True, help="Start anew, whatever an earlier run has left or made."),
    click.option("--max-exchanges", type=int, help="End band or fixpoint after so many exchanges (exit code 5)."),
    click.option("--max-seconds", type=float, help="End the bounding after so long with intervals (exit code 5)."),
    click.option("--date", metavar="DAY", help="In place of {date} in paths: 2026-11-20, yesterday or today (in UTC)."),
    click.option("--metrics-port", type=int, help="Port on 127.0.0.1 where Prometheus finds the run's figures."),
    click.option(
        "--performance-report", metavar="FILE", help="Write Dask's performance report of the run there, HTML."
    ),
    click.option("--set", "assignments", multiple=True, metavar="A.B=C", help="Any setting; repeatable."),
    click.option("--print-config", is_flag=True, help="Print the settings in effect as YAML, and end."),
]


def run_options(command: Any) -> Any:
    """The arguments of `run` and `plan`: a settings file, the flags of config.SHORT_NAMES, --set for the rest."""
    for option in reversed(_RUN_OPTIONS):
        command = option(command)
    return debug(command)


def settings_from(config: str | None, assignments: tuple[str, ...], flags: dict[str, Any]) -> Settings:
    """The settings of a file and the flags of a command line, which win. Raises as `load_settings` does."""
    from ..config import SHORT_NAMES, load_settings

    if (flags["partitions"] or "").removeprefix("-").isdecimal():
        flags["partitions"] = int(flags["partitions"])
    given = {SHORT_NAMES[name]: value for name, value in flags.items() if value is not None and value is not False}
    assigned = (assignment.partition("=")[0].strip() for assignment in assignments)
    click.get_current_context().meta[TYPED] = Typed(config is not None, frozenset([*given, *assigned]))
    return load_settings(config, given, assignments)


def print_settings(settings: Settings) -> None:
    """Print them as YAML."""
    from ..config import as_yaml

    tell(as_yaml(settings).rstrip("\n"))


MOST_MEMBERS = 8
"""Vertices of a group that are read for a summary, at most."""

json_rows = click.option("--json", "as_json", is_flag=True, help="Print a JSON object a line.")


json_document = click.option(
    "--json", "as_json", is_flag=True, callback=set_json, help="Print one JSON document, an error too: docs/json.md."
)


def print_document(document: dict[str, Any]) -> None:
    """Print one JSON document, in a line."""
    click.get_current_context().meta.pop(AS_JSON, None)  # an error that follows is in it
    tell(in_json(json.dumps(document, ensure_ascii=False)))


def print_json(rows: Iterable[dict[str, Any]]) -> None:
    """Print a JSON object a line."""
    for row in rows:
        tell(in_json(json.dumps(row)))


def console() -> Console:
    """Standard output, as wide as its terminal, or for a pipe."""
    return console_on(sys.stdout, None if sys.stdout.isatty() else 120)
