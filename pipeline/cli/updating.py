"""`edgemill update`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ..messages.setting_names import SettingOrigin
from .error_output import SETTING_ORIGIN
from .options import assigned_names, debug, json_document
from .running import carry_out

if TYPE_CHECKING:
    from ..frames.input_object import InputObject
    from ..settings.models import Settings

_DEVICES = click.Choice(["auto", "cpu", "gpu"])
_FLAGS = ("output", "program", "overwrite", "fresh", "device", "workers", "scheduler", "scheduler_file", "date")


@click.command()
@click.argument("result")
@click.option("--insert", multiple=True, metavar="FILES", help="Edges to insert: a file, folder or glob; repeatable.")
@click.option("--delete", multiple=True, metavar="FILES", help="Edges to delete, as --insert; they go first.")
@click.option("--output", required=True, help="Folder of the new result, or a URL in an object store.")
@click.option("--program", multiple=True, metavar="MODULE:CLASS", help="Your own program that the result has.")
@click.option("--overwrite", is_flag=True, help="Replace an existing result once the new one is complete.")
@click.option("--fresh", is_flag=True, help="Ignore checkpoints and results of earlier runs.")
@click.option("--device", type=_DEVICES, help="Device that computes.")
@click.option("--workers", type=int, help="Worker processes to start. Default: none, this process computes.")
@click.option("--scheduler", metavar="ADDRESS", help="Address of a running Dask scheduler.")
@click.option("--scheduler-file", metavar="FILE", help="Scheduler file of a running Dask scheduler.")
@click.option(
    "--date", metavar="DAY", help="Day for {date} in --output: 2026-11-20, today, yesterday, 25 hours ago (UTC)."
)
@click.option("--set", "assignments", multiple=True, metavar="A.B=C", help="Set any setting; repeatable.")
@click.option("--verbose", "-v", is_flag=True, help="Without a terminal: print one line per stage on stderr.")
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    help="json: write only events to stderr, as in log.jsonl, errors too, for log collectors.",
)
@json_document
@debug
@click.pass_context
def update(
    ctx: click.Context,
    /,
    result: str,
    insert: tuple[str, ...],
    delete: tuple[str, ...],
    assignments: tuple[str, ...],
    verbose: bool,
    log_format: str,
    as_json: bool,
    **flags: Any,
) -> None:
    """Bring a result up to date with inserted and deleted edges.

    RESULT is the folder or URL of a result; it stays as it is. The new result is the one that a run would compute from
    all its edges. Deletions come first: an edge in both is in the new result.
    """

    def start() -> tuple[Settings, InputObject | None]:
        from ..calls.update_settings import batch_part, update_settings
        from ..results.result import Result
        from ..settings.sources import SHORT_NAMES, load_settings
        from ..updating.beginning import batch_for

        given = {SHORT_NAMES[name]: flags[name] for name in _FLAGS if flags[name] not in (None, False, ())}
        assigned = assigned_names(assignments)
        ctx.meta[SETTING_ORIGIN] = SettingOrigin(False, frozenset([*given, *assigned]))
        base = Result(result)
        settings = load_settings(None, update_settings(base, given, assigned), assignments)
        return settings, batch_for(settings, base, batch_part(list(insert)), batch_part(list(delete)))

    carry_out(ctx, start, verbose, log_format == "json", as_json)
