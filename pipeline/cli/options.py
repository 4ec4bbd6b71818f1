"""Options shared by several commands, and the printing of JSON and settings."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from ...tasks.errors import UsageError
from ..messages.terminal import console_on, echo
from ..messages.wording import in_json
from ..settings.setting_names import SettingOrigin
from .error_output import AS_JSON, DEBUG, SETTING_ORIGIN, set_json

if TYPE_CHECKING:
    from rich.console import Console

    from ..settings.models import Settings


def _set_debug(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value:
        ctx.meta[DEBUG] = True


debug = click.option(
    "--debug", is_flag=True, expose_value=False, callback=_set_debug, help="Show a traceback with an error."
)

_MAX_DIGITS = 20
"""Characters of a whole number. Python reads at most 4,300, and no setting has so many."""
_METHODS = click.Choice(["auto", "peel", "band", "fixpoint"])
_DEVICES = click.Choice(["auto", "cpu", "gpu"])
_BIPARTITE = click.Choice(["prefix", "refuse"])
_FORMATS = click.Choice(["parquet", "delta"])
_RUN_OPTIONS = [
    click.argument("config", required=False),
    click.option("--input", help="Edges: a file, a folder, a glob, a table or a URL."),
    click.option("--output", help="Folder of the result, or a URL in an object store."),
    click.option("--source-column", help="Column of the first endpoint. Default: by its name, such as src."),
    click.option("--target-column", help="Column of the second endpoint. Default: by its name, such as dst."),
    click.option(
        "--table-version", type=int, metavar="N", help="Version of a Delta table or snapshot id of an Iceberg table."
    ),
    click.option("--input-format", metavar="FORMAT", help="File format, such as csv. Default: by the file names."),
    click.option(
        "--where", metavar="CONDITION", help="SQL condition that selects rows: \"weight > 0.5 and kind = 'a'\"."
    ),
    click.option(
        "--bipartite", type=_BIPARTITE, help="The columns hold ids of two kinds: prefix them, or refuse common ids."
    ),
    click.option("--two-sided", is_flag=True, help="Edges join two sides, such as accounts and devices."),
    click.option("--directed", is_flag=True, help="Edges point from source to target. Programs use this; λ does not."),
    click.option("--weight-column", metavar="COLUMN", help="Column of edge weights, for programs that use them."),
    click.option("--vertices", metavar="FILE", help="Vertex attributes in Parquet, such as names: one row per vertex."),
    click.option("--vertex-id", metavar="COLUMN", help="Id column of --vertices. Default: by its name, such as id."),
    click.option(
        "--programs", metavar="NAMES", help="What to compute: lambda, or lambda,pagerank,…; see edgemill programs."
    ),
    click.option(
        "--program", multiple=True, metavar="MODULE:CLASS", help="Run your own program, too; see docs/own-programs.md."
    ),
    click.option("--partitions", metavar="N|auto", help="Number of partitions. Default: auto."),
    click.option("--method", type=_METHODS, help="Algorithm that finds λ."),
    click.option("--device", type=_DEVICES, help="Device that computes."),
    click.option("--workers", type=int, help="Worker processes to start. Default: one worker in this process."),
    click.option("--scheduler", metavar="ADDRESS", help="Address of a running Dask scheduler."),
    click.option("--scheduler-file", metavar="FILE", help="Scheduler file of a running Dask scheduler."),
    click.option("--output-format", type=_FORMATS, help="delta: also publish the newest result as Delta tables."),
    click.option("--overwrite", is_flag=True, help="Replace an existing result once the new one is complete."),
    click.option("--fresh", is_flag=True, help="Ignore checkpoints and results of earlier runs."),
    click.option("--max-exchanges", type=int, help="Stop band or fixpoint after N exchanges (exit code 5)."),
    click.option("--max-seconds", type=float, help="Stop bounding after N seconds, with λ intervals (exit code 5)."),
    click.option(
        "--date", metavar="DAY", help="Day for {date} in paths: 2026-11-20, today, yesterday, 25 hours ago (UTC)."
    ),
    click.option("--previous", metavar="RESULT", help="Earlier result to start from, where that is less work."),
    click.option("--metrics-port", type=int, help="Serve metrics to Prometheus on this port of 127.0.0.1."),
    click.option("--performance-report", metavar="FILE", help="Write Dask's performance report of the run as HTML."),
    click.option("--set", "assignments", multiple=True, metavar="A.B=C", help="Set any setting; repeatable."),
    click.option("--print-config", is_flag=True, help="Print the settings in effect as YAML and exit."),
]


def run_options(command: Any) -> Any:
    """Add the arguments of `run` and `plan`: a settings file, a flag per short name, and --set for other settings."""
    for option in reversed(_RUN_OPTIONS):
        command = option(command)
    return debug(command)


def settings_from(config: str | None, assignments: tuple[str, ...], flags: dict[str, Any]) -> Settings:
    """The settings of a file and of flags, which win. Raises as `load_settings` does."""
    from ..settings.sources import SHORT_NAMES, load_settings

    partitions = flags["partitions"] or ""
    if partitions.removeprefix("-").isdecimal() and len(partitions) <= _MAX_DIGITS:
        flags["partitions"] = int(partitions)
    overrides = {
        SHORT_NAMES[name]: value
        for name, value in flags.items()
        if value is not None and value is not False and value != ()
    }
    assigned = assigned_names(assignments)
    click.get_current_context().meta[SETTING_ORIGIN] = SettingOrigin(
        config is not None, frozenset([*overrides, *assigned])
    )
    return load_settings(config, overrides, assignments)


def assigned_names(assignments: tuple[str, ...]) -> list[str]:
    """The settings that `--set` gives. Raises UsageError for one of another command."""
    names = [assignment.partition("=")[0].strip() for assignment in assignments]
    command = click.get_current_context().info_name
    for name in names:
        if name.partition(".")[0] == "estimate" and command != "estimate":
            raise UsageError(f"--set {name} has no effect, since it is for `edgemill estimate`: leave it out")
    return names


def print_settings(settings: Settings) -> None:
    """Print the settings as YAML."""
    from ..settings.sources import as_yaml

    echo(as_yaml(settings).rstrip("\n"))


MOST_MEMBERS = 8
"""Most members of a group that a summary reads."""

json_rows = click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")

json_document = click.option(
    "--json",
    "as_json",
    is_flag=True,
    callback=set_json,
    help="Print one JSON document, also for an error: docs/json.md.",
)


def print_document(document: dict[str, Any]) -> None:
    """Print one JSON document on one line."""
    click.get_current_context().meta.pop(AS_JSON, None)  # the document reports an error that follows
    echo(in_json(json.dumps(document, ensure_ascii=False)))


def print_json(rows: Iterable[dict[str, Any]]) -> None:
    """Print one JSON object per line."""
    for row in rows:
        echo(in_json(json.dumps(row)))


def console() -> Console:
    """A console on standard output, as wide as the terminal; 120 columns in a pipe."""
    return console_on(sys.stdout, None if sys.stdout.isatty() else 120)
