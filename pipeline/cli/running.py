"""Commands that start runs, or tell of them: `edgemill run`, `update`, `plan`, `estimate`, `warm` and `programs`.

The commands import many modules, each inside the function that needs it, so that other commands start fast. A run is
started without pandas, SciPy, threads of BLAS and cycle collection, which make imports slow. `announcing_stops`
announces Ctrl-C and SIGTERM at once; a second Ctrl-C ends the process.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict
from importlib import import_module
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from ...tasks.errors import EdgemillError
from ..messages.terminal import echo
from ..messages.wording import one_line
from ..settings.setting_names import SettingOrigin, with_flags
from .error_output import JSON_EVENTS, SETTING_ORIGIN
from .options import (
    MOST_MEMBERS,
    assigned_names,
    console,
    debug,
    json_document,
    print_document,
    print_settings,
    run_options,
    settings_from,
)

if TYPE_CHECKING:
    from ...tasks.errors import NotConverged
    from ..events import Events
    from ..inputs.input_object import InputObject
    from ..monitor.display import RunSummary
    from ..results.result import Result
    from ..settings.models import Settings


_BLAS_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")
"""Environment variables that give OpenBLAS its number of threads."""


@contextmanager
def light_imports(freeze: bool) -> Iterator[None]:
    """Disable the cycle collector while the block imports modules: it would run often and find next to no garbage.

    With `freeze`, all objects at the end of the block are excluded from collection until `gc.unfreeze()`.
    """
    _import_numpy_with_one_thread()
    _hide_pandas_from_arrow()
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if freeze:
            gc.freeze()
        if enabled:
            gc.enable()


def _import_numpy_with_one_thread() -> None:
    """Import NumPy such that OpenBLAS starts no threads, unless the user has set their number.

    Their start takes more CPU than the rest of NumPy's import, and edgemill multiplies no matrices.
    """
    if "numpy" in sys.modules or any(name in os.environ for name in _BLAS_THREADS):
        return
    os.environ[_BLAS_THREADS[0]] = "1"
    try:
        import numpy  # noqa: F401
    finally:
        del os.environ[_BLAS_THREADS[0]]


def _hide_pandas_from_arrow() -> None:
    """Keep Arrow from importing pandas, which takes a quarter of a second, in a process that passes no pandas frame.

    If pandas is installed, Arrow imports it before it converts its first value, to recognize pandas' missing values.
    It tries once. `to_pandas()` still works.
    """
    if "pandas" in sys.modules:
        return
    with _hidden("pandas"):
        import pyarrow

        pyarrow.scalar(0)


def hide_scipy_from_cupy() -> None:
    """Keep CuPy from importing SciPy, which takes a quarter of a second, in a process that passes no matrix of SciPy.

    CuPy would import it for the first operator on an array and a number, to recognize matrices.
    """
    if "scipy" in sys.modules:
        return
    from ...kernels.runtime.device import import_operators

    with _hidden("scipy"):
        import_operators()


@contextmanager
def _hidden(package: str) -> Iterator[None]:
    """Within the context, imports of the package fail."""
    finder = _NotInstalled(package)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _NotInstalled:
    """Makes Python believe that a package is not installed."""

    def __init__(self, package: str) -> None:
        self._package = package

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        if fullname.partition(".")[0] == self._package:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)


AGAIN_SECONDS = 0.5
"""A second Ctrl-C within this time counts as the first: `timeout`, for one, sends each signal twice."""
_SHOW_CURSOR = b"\x1b[?25h\n"


@contextmanager
def announcing_stops(events: Events) -> Iterator[None]:
    """Within the block, emit the event `stopping` as soon as the first Ctrl-C or SIGTERM arrives.

    The signal also raises its exception in the main thread, which ends the run: it closes workers and removes its
    files, which takes a while; checkpoints stay. A second Ctrl-C exits this process at once, as if it were killed. The
    next run with the same output removes the remaining files and resumes from the checkpoint.

    A listener thread reads signals from a pipe (`signal.set_wakeup_fd`), so that it responds while the main thread
    compiles or waits. Outside the main thread the block does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    interrupt = signal.getsignal(signal.SIGINT)  # a background job of a shell ignores it
    if callable(interrupt):
        signal.signal(signal.SIGINT, _once(interrupt))
    listener = threading.Thread(target=_listen, args=(reader, events), name="edgemill-stopping", daemon=True)
    listener.start()
    try:
        yield
    finally:
        if callable(interrupt):
            signal.signal(signal.SIGINT, interrupt)
        signal.set_wakeup_fd(before)
        os.close(writer)  # ends the thread
        listener.join()
        os.close(reader)


def _once(interrupt: Callable[[int, FrameType | None], Any]) -> Callable[[int, FrameType | None], None]:
    """A handler that calls another at the first Ctrl-C alone: a second must not break the clean-up."""
    came = False

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal came
        if not came:
            came = True
            interrupt(number, frame)

    return handle


def _listen(reader: int, events: Events) -> None:
    first: float | None = None
    while number := os.read(reader, 1):
        now = time.monotonic()
        if first is None and number[0] in (signal.SIGINT, signal.SIGTERM):
            first = now
            events.emit("stopping", signal=signal.Signals(number[0]).name)
        elif first is not None and number[0] == signal.SIGINT and now - first >= AGAIN_SECONDS:
            if os.isatty(2):
                os.write(2, _SHOW_CURSOR)  # the progress display hides it
            sys.stdout.flush()
            os._exit(128 + signal.SIGINT)


@click.command()
@click.option("--program", "own", multiple=True, metavar="MODULE:CLASS", help="List your own program, too.")
@debug
def programs(own: tuple[str, ...]) -> None:
    """List the vertex programs.

    Each comes with the columns that it adds and its settings. `run --programs` runs them. Installed programs,
    entry points of the group `edgemill.programs`, are among them.
    """
    from ..settings.declared_programs import find_programs, installed_names, shipped_names

    echo("lambda\n  λ of every edge, and dense groups; the default")
    for program in find_programs(own, [*shipped_names(), *installed_names()]).values():
        echo(f"\n{program.name}\n  {program.title}")
        for column in program.columns:
            echo(f"  column   {column.name} ({column.kind}): {column.meaning}")
        for column in program.edge_columns:
            echo(f"  column   {column.name} ({column.kind}), of edges: {column.meaning}")
        for name, parameter in program.parameters.items():
            shown = {...: "required", None: "null"}.get(parameter.default, parameter.default)
            echo(f"  setting  {program.name}.{name} ({shown}){': ' if parameter.meaning else ''}{parameter.meaning}")


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
        from ..events import Events
        from ..monitor.display import display_for

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
            from ..events import logs_as_events
            from ..monitor.display import RunSummary
            from ..run.mining import mine_settings

            if given is None and not settings.nightly.may_start_from_earlier:
                starts_gpu = start_gpu(settings.cluster)
                import_module("...run.full", __name__)  # an update may need no Dask
                has_gpu = starts_gpu and not device().missing
                if has_gpu and not settings.programs.vertex_programs:  # a user's program may pass matrices of SciPy
                    hide_scipy_from_cupy()

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
    from .documents import result_document

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
    from .show import print_ending

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
    from .show import top_groups

    with suppress(EdgemillError, OSError):
        return top_groups(result, _MOST_GROUPS, MOST_MEMBERS)
    return []


def _report(result: Result) -> str | None:
    from ..report.report import report_of

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
        from ..updating.planning import plan_update

        update = plan_update(settings, made.source)
    if as_json:
        from .documents import plan_document

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
    from ..results.temporary import TemporaryFolder

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
        from ..events import Events
        from ..monitor.display import display_for

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
    from ..run.compiling import PARTS
    from ..stages.kernels import has_cupy

    if unknown := [part for part in parts if part not in PARTS]:
        raise click.UsageError(f"there is no part {unknown[0]!r}: name some of {', '.join(PARTS)}")
    for part in parts or [part for part in PARTS if part != "gpu" or has_cupy()]:
        echo(f"kernels of {part} ready in {PARTS[part]():.1f} s")


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
        from ..python_api.update_settings import batch_part, update_settings
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
