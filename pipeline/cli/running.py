"""`edgemill run`, `plan` and `estimate`.

The commands import many modules, each inside the function that needs it, so that other commands start fast.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import asdict
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from ...tasks.errors import EdgemillError
from ..messages.setting_names import with_flags
from ..messages.wording import one_line
from ..monitor.terminal import echo
from .error_output import JSON_EVENTS, SETTING_ORIGIN
from .importing import hide_scipy_from_cupy, light_imports
from .options import (
    MOST_MEMBERS,
    console,
    debug,
    json_document,
    print_document,
    print_settings,
    run_options,
    settings_from,
)
from .signals import announcing_stops

if TYPE_CHECKING:
    from ...tasks.errors import NotConverged
    from ..frames.input_object import InputObject
    from ..monitor.summary import RunSummary
    from ..results.result import Result
    from ..settings.models import Settings


_MOST_GROUPS = 3


@click.command()
@run_options
@click.option("--verbose", "-v", is_flag=True, help="Without a terminal: print one line per stage on stderr.")
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    help="json: write only events to stderr, as in log.jsonl, errors too, for log collectors.",
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
    """Compute λ of every edge, or the programs of --programs, and publish the result.

    Settings come from the YAML file CONFIG and from flags, which win. If the output already holds the result of this
    input and these settings, nothing is done.
    """

    def start() -> tuple[Settings, InputObject | None] | None:
        settings = settings_from(config, assignments, flags)
        if not print_config:
            return settings, None
        print_settings(settings)
        return None

    carry_out(ctx, start, verbose, log_format == "json", as_json)


def carry_out(
    ctx: click.Context,
    start: Callable[[], tuple[Settings, InputObject | None] | None],
    verbose: bool,
    in_json: bool,
    as_json: bool,
) -> None:
    """Carry out the run that `start` describes, show its progress, and print its end.

    `start` returns settings and an input that is no path, or None if there is nothing to run.
    """
    freeze = not gc.get_freeze_count()  # an embedding process, such as a test, may have frozen objects itself
    if freeze:
        ctx.call_on_close(gc.unfreeze)  # such a process may continue
    with light_imports(freeze):
        from ..monitor.display import display_for
        from ..monitor.events import Events

    with Events(display_for(sys.stderr, verbose, in_json)) as events, announcing_stops(events):
        if in_json:
            ctx.meta[JSON_EVENTS] = events
        with light_imports(freeze):
            asked = start()
        if asked is None:
            return
        settings, given = asked
        with light_imports(freeze):
            from ...kernels.runtime.device import device
            from ...tasks.errors import NotConverged
            from ..cluster.connecting.local import start_gpu
            from ..monitor.log_events import logs_as_events
            from ..monitor.summary import RunSummary
            from ..run.mining import mine_settings

            if given is None and not settings.nightly.may_start_from_earlier:
                has_gpu = start_gpu(settings.cluster) and not device().missing
                if has_gpu and not settings.programs.vertex_programs:  # a user's program may pass matrices of SciPy
                    hide_scipy_from_cupy()
                import_module("...run.full", __name__)  # an update may need no Dask

        events.add(summary := RunSummary())
        if in_json:
            from ..cluster.client import set_up_dask_loggers

            set_up_dask_loggers()
        with logs_as_events(events) if in_json else nullcontext():
            result = mine_settings(settings, client=None, events=events, given=given)
    unfinished = None
    if not result.converged:
        unfinished = NotConverged(_ended(result))
    if as_json:
        _print_document(result, events.run_id, summary, unfinished)
    elif not in_json:
        _print_ending(result, events.run_id, summary, settings.output.path)
    if unfinished is not None:
        raise unfinished


def _ended(result: Result) -> str:
    """What a limit ended."""
    manifest = result.manifest
    if manifest.exact or not manifest.has_lambda:
        return (
            f"a limit ended the run: {'; '.join(manifest.unfinished)}; {result.place} holds what was found until then"
        )
    more = "".join(f"; {what}" for what in manifest.unfinished[1:])
    return (
        f"a limit ended the run before λ was exact: {manifest.unsettled:,} edges are unsettled; "
        f"{result.place} holds lambda_low and lambda_high, not lambda{more}"
    )


def _print_document(result: Result, run_id: str, summary: RunSummary, unfinished: NotConverged | None) -> None:
    from ..results.summary.result_document import result_document

    ended = {
        "nothing_to_do": result.manifest.run != run_id,
        "night": summary.night(),
        "removed": summary.removed,
        "warnings": summary.warnings(),
        "exit_code": 0 if unfinished is None else unfinished.exit_code,
    }
    if unfinished is not None:
        ended["error"] = str(unfinished)
    print_document(result_document(result, _groups(result)) | ended)


def _print_ending(result: Result, run_id: str, summary: RunSummary, out: str) -> None:
    from ..results.summary.run_end import print_ending

    manifest = result.manifest
    if manifest.run != run_id:
        echo(f"nothing to do: the result is up to date, finished {manifest.finished:%Y-%m-%d %H:%M:%S} UTC")
    elif sys.stderr.isatty() and sys.stdout.isatty():
        echo("", err=True)  # separates the summary from the progress display
    lines = list(map(one_line, summary.lines()))
    print_ending(manifest, str(result.place), _report(result), _groups(result), lines, out, console())
    for warning in summary.warnings():
        echo(one_line(f"Warning: {warning}"), err=True)


def _groups(result: Result) -> list[dict[str, Any]]:
    """The top groups of the result; empty if they cannot be read, since the run has succeeded."""
    from ..results.summary.top_groups import top_groups

    with suppress(EdgemillError, OSError):
        return top_groups(result, _MOST_GROUPS, MOST_MEMBERS)
    return []


def _report(result: Result) -> str | None:
    from ..results.report.report_file import report_of

    with suppress(EdgemillError, OSError):
        return report_of(result)
    return None


@click.command()
@run_options
@json_document
def plan(config: str | None, assignments: tuple[str, ...], print_config: bool, as_json: bool, **flags: Any) -> None:
    """Show what a run with the same arguments would do.

    Shows partitions, tasks and bytes. Reads a sample of the input and computes nothing. A ~ marks an estimate. A run
    that cannot fit ends with exit code 7, as `run` does.
    """
    settings = settings_from(config, assignments, flags)
    if print_config:
        print_settings(settings)
        return
    from ..plan.choice import make_plan
    from ..plan.fit import refusal

    made, update = make_plan(settings), None
    error = refusal(made)
    if settings.nightly.may_start_from_earlier:
        from ..calls.plan_update import plan_update

        update = plan_update(settings, made.source)
    if as_json:
        from ..results.summary.plan_document import plan_document

        ended = {"exit_code": 0} if error is None else {"exit_code": error.exit_code, "error": str(error)}
        print_document(plan_document(made) | {"update": None if update is None else asdict(update)} | ended)
    else:
        from ..plan.fit import describe

        shown = describe(made) + ("" if update is None else f"\n{'update':<12} {one_line(update.describe())}")
        echo(with_flags(shown, click.get_current_context().meta[SETTING_ORIGIN]))
    if error is not None:
        raise error


@click.command()
@run_options
@json_document
def estimate(config: str | None, assignments: tuple[str, ...], print_config: bool, as_json: bool, **flags: Any) -> None:
    """Estimate triangles, clustering and the largest λ of a graph, and the duration of a run.

    Takes the arguments of `run`; no output is needed. Reads the whole input, and samples wedges of the graph
    (estimate.samples, estimate.seed). A ~ marks an estimate.
    """
    from ..calls.temporary import TemporaryFolder

    folder = TemporaryFolder()
    try:
        if config is None and flags["output"] is None:
            flags["output"] = str(folder.result)
        settings = settings_from(config, assignments, flags)
        if print_config:
            print_settings(settings)
            return
        from ..estimates.estimating import estimate_graph
        from ..estimates.figures import describe as describe_figures
        from ..monitor.display import display_for
        from ..monitor.events import Events

        with Events(display_for(sys.stderr, False, False)) as events, announcing_stops(events):
            figures = estimate_graph(settings, client=None, events=events)
    finally:
        folder.remove()
    if as_json:
        print_document(figures.as_dict() | {"exit_code": 0})
    else:
        echo(describe_figures(figures))


@click.command()
@click.argument("parts", nargs=-1, metavar="[PART]...")
@debug
def warm(parts: tuple[str, ...]) -> None:
    """Compile kernels for this machine, so that the first run need not.

    PART is lambda, updates or programs, which are kernels for CPUs, or gpu; without any, all of them, gpu if CuPy is
    installed. The compiled kernels go to the cache folder (EDGEMILL_CACHE_DIR). No GPU is needed: part gpu compiles
    edgemill's own kernels for all usual GPUs. If there is a GPU it also compiles CuPy's, else the first run does.
    """
    from ..cluster.workers.compiling import PARTS
    from ..cluster.workers.kernels import has_cupy

    if unknown := [part for part in parts if part not in PARTS]:
        raise click.UsageError(f"there is no part {unknown[0]!r}: name some of {', '.join(PARTS)}")
    for part in parts or [part for part in PARTS if part != "gpu" or has_cupy()]:
        echo(f"kernels of {part} ready in {PARTS[part]():.1f} s")
