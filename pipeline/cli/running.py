"""`edgemill run` and `plan`."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import Any

import click

from ..escaping import one_line
from ..terminal import tell
from .ending import IN_JSON
from .options import print_settings, run_options, settings_from

__all__ = ["plan", "run"]


@click.command()
@run_options
@click.option("--verbose", "-v", is_flag=True, help="In a pipe: a line on stderr for each stage.")
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    help="json: each event on stderr as in log.jsonl, errors too, and nothing else, for collectors of logs.",
)
@click.pass_context
def run(
    ctx: click.Context,
    /,
    config: str | None,
    assignments: tuple[str, ...],
    print_config: bool,
    verbose: bool,
    log_format: str,
    **flags: Any,
) -> None:
    """Find λ of every edge of the input, with the settings of the YAML file CONFIG and the flags, which win.

    Where the output holds the result of this input and these settings already, nothing is done.
    """
    from ..display import display_for
    from ..telemetry import Events

    in_json = log_format == "json"
    with Events(display_for(sys.stderr, verbose, in_json)) as events:
        if in_json:
            ctx.meta[IN_JSON] = events
        settings = settings_from(config, assignments, flags)
        if print_config:
            print_settings(settings)
            return
        from ...tasks.errors import NotConverged
        from ..log_events import logs_as_events
        from ..mining import mine_settings
        from ..nights.told import Told
        from ..show import summary_lines

        events.add(night := Told())
        with logs_as_events(events) if in_json else nullcontext():
            result = mine_settings(settings, client=None, events=events)
    if not in_json:
        if result.manifest.run != events.run_id:
            tell(f"nothing to do: this is the result since {result.manifest.finished:%Y-%m-%d %H:%M:%S} UTC")
        tell("\n".join(summary_lines(result.manifest, str(result.place))))
        for line in night.lines():
            tell(one_line(line))
        for warning in night.warnings():
            tell(one_line(f"warning: {warning}"), err=True)
        for place in events.removed:
            tell(f"removed     {one_line(place)}")
        for place, reason in events.not_removed.items():
            tell(one_line(f"warning: not removed: {place}: {reason}"), err=True)
        if events.report_failed is not None:
            tell(one_line(f"warning: the result is complete, but has no report: {events.report_failed}"), err=True)
    if not result.converged:
        raise NotConverged(
            f"a limit ended the run before λ was exact: {result.manifest.unsettled:,} edges are unsettled; "
            f"{result.place} holds lambda_low and lambda_high in place of lambda"
        )


@click.command()
@run_options
def plan(config: str | None, assignments: tuple[str, ...], print_config: bool, **flags: Any) -> None:
    """Show what `run` would do with the same arguments: partitions, tasks, bytes. Reads a sample, computes nothing.

    A ~ marks what is estimated. What cannot fit ends with exit code 7, as `run` does.
    """
    settings = settings_from(config, assignments, flags)
    if print_config:
        print_settings(settings)
        return
    from ..plan_text import describe
    from ..planning import make_plan

    made = make_plan(settings)
    tell(describe(made))
    made.refuse_if_hopeless()
