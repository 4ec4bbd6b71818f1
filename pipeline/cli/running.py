"""`edgemill run` and `plan`."""

from __future__ import annotations

import gc
import sys
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any

import click

from ...tasks.errors import EdgemillError, OutOfRoom
from ..escaping import one_line
from ..terminal import tell
from ..wording.settings_named import with_flags
from .ending import IN_JSON, TYPED
from .importing import light_imports
from .options import (
    MOST_MEMBERS,
    console,
    json_document,
    print_document,
    print_settings,
    run_options,
    settings_from,
)
from .stopping import told_when_stopping

if TYPE_CHECKING:
    from ...tasks.errors import NotConverged
    from ..nights.told import Told
    from ..plan import Plan
    from ..result import Result
    from ..telemetry import Events

__all__ = ["plan", "run"]


_MOST_GROUPS = 3


@click.command()
@run_options
@click.option("--verbose", "-v", is_flag=True, help="In a pipe: a line on stderr for each stage.")
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    help="json: each event on stderr as in log.jsonl, errors too, and nothing else, for collectors of logs.",
)
@json_document
@click.pass_context
def run(
    ctx: click.Context,
    /,
    config: str | None,
    assignments: tuple[str, ...],
    print_config: bool,
    verbose: bool,
    log_format: str,
    as_json: bool,
    **flags: Any,
) -> None:
    """Find λ of every edge of the input, with the settings of the YAML file CONFIG and the flags, which win.

    Where the output holds the result of this input and these settings already, nothing is done.
    """
    leave_out = not gc.get_freeze_count()  # or the process has chosen itself what it leaves out, as that of a test
    if leave_out:
        ctx.call_on_close(gc.unfreeze)  # it may go on
    with light_imports(leave_out):
        from ..display import display_for
        from ..telemetry import Events

    in_json = log_format == "json"
    with Events(display_for(sys.stderr, verbose, in_json)) as events, told_when_stopping(events):
        if in_json:
            ctx.meta[IN_JSON] = events
        settings = settings_from(config, assignments, flags)
        if print_config:
            print_settings(settings)
            return
        with light_imports(leave_out):
            from ...tasks.errors import NotConverged
            from ..log_events import logs_as_events
            from ..mining import mine_settings
            from ..nights.told import Told

        events.add(night := Told())
        with logs_as_events(events) if in_json else nullcontext():
            result = mine_settings(settings, client=None, events=events)
    unfinished = None
    if not result.converged:
        unfinished = NotConverged(
            f"a limit ended the run before λ was exact: {result.manifest.unsettled:,} edges are unsettled; "
            f"{result.place} holds lambda_low and lambda_high in place of lambda"
        )
    if as_json:
        _print_document(result, events, night, unfinished)
    elif not in_json:
        _print_ending(result, events, night, settings.output.path)
    if unfinished is not None:
        raise unfinished


def _print_document(result: Result, events: Events, night: Told, unfinished: NotConverged | None) -> None:
    from ..summary.document import result_document

    ended = {
        "nothing_to_do": result.manifest.run != events.run_id,
        "night": night.as_dict(),
        "removed": events.removed,
        "warnings": [*night.warnings(), *_warnings(events)],
        "exit_code": 0 if unfinished is None else unfinished.exit_code,
    }
    if unfinished is not None:
        ended["error"] = str(unfinished)
    print_document(result_document(result, _groups(result)) | ended)


def _print_ending(result: Result, events: Events, night: Told, out: str) -> None:
    from ..summary.ending import print_ending

    manifest = result.manifest
    if manifest.run != events.run_id:
        tell(f"nothing to do: this is the result since {manifest.finished:%Y-%m-%d %H:%M:%S} UTC")
    elif sys.stderr.isatty() and sys.stdout.isatty():
        tell("", err=True)  # below the progress
    more = [one_line(line) for line in (*night.lines(), *(f"removed     {place}" for place in events.removed))]
    print_ending(manifest, str(result.place), _report(result), _groups(result), more, out, console())
    for warning in [*night.warnings(), *_warnings(events)]:
        tell(one_line(f"Warning: {warning}"), err=True)


def _warnings(events: Events) -> list[str]:
    """What failed beside the result."""
    found = [f"not removed: {place}: {reason}" for place, reason in events.not_removed.items()]
    if events.report_failed is not None:
        found.append(f"the result is complete, but has no report: {events.report_failed}")
    return found


def _groups(result: Result) -> list[dict[str, Any]]:
    """The first groups of the result; none if they cannot be read: the result is there all the same."""
    from ..summary.best import best_groups

    with suppress(EdgemillError, OSError):
        return best_groups(result, _MOST_GROUPS, MOST_MEMBERS)
    return []


def _report(result: Result) -> str | None:
    from ..report.written import report_of

    with suppress(EdgemillError, OSError):
        return report_of(result)
    return None


@click.command()
@run_options
@json_document
def plan(config: str | None, assignments: tuple[str, ...], print_config: bool, as_json: bool, **flags: Any) -> None:
    """Show what `run` would do with the same arguments: partitions, tasks, bytes. Reads a sample, computes nothing.

    A ~ marks what is estimated. What cannot fit ends with exit code 7, as `run` does.
    """
    settings = settings_from(config, assignments, flags)
    if print_config:
        print_settings(settings)
        return
    from ..planning import make_plan

    made = make_plan(settings)
    if as_json:
        from ..summary.planned import plan_document

        hopeless = _hopeless(made)
        ended = {"exit_code": 0} if hopeless is None else {"exit_code": hopeless.exit_code, "error": str(hopeless)}
        print_document(plan_document(made) | ended)
    else:
        from ..plan_text import describe

        tell(with_flags(describe(made), click.get_current_context().meta[TYPED]))
    made.refuse_if_hopeless()


def _hopeless(plan: Plan) -> OutOfRoom | None:
    try:
        plan.refuse_if_hopeless()
    except OutOfRoom as error:
        return error
    return None
