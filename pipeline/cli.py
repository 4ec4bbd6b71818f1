"""The command `edgemill`: arguments in, exit code out. Everything heavy is imported inside the commands."""

from __future__ import annotations

import io
import json
import os
import sys
import traceback
from collections.abc import Iterable
from contextlib import nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from ..tasks.passwords import without_passwords
from .exits import UNREAD, exit_code, message, sigterm_interrupts

if TYPE_CHECKING:
    from rich.console import Console

    from .settings import Settings
    from .telemetry import Events

__all__ = ["edgemill", "main"]

_DEBUG = "edgemill.debug"
_IN_JSON = "edgemill.in-json"
"""Where a command leaves the events that tell of its errors."""


class _Guarded(click.Group):
    """Ends every exception in one line on stderr and the exit code that belongs to it; a closed pipe without a word."""

    def make_context(self, *arguments: Any, **more: Any) -> click.Context:
        try:
            return super().make_context(*arguments, **more)
        except BrokenPipeError as error:  # of --help, which is written before a command is
            raise click.exceptions.Exit(exit_code(error)) from error

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with sigterm_interrupts():
                return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise  # click ends these by itself
        except (Exception, KeyboardInterrupt) as error:
            code = exit_code(error)
            if code != UNREAD:
                with suppress(BrokenPipeError):  # the code tells, too
                    _tell(ctx, error)
            ctx.exit(code)


def _tell(ctx: click.Context, error: BaseException) -> None:
    debug = bool(ctx.meta.get(_DEBUG))
    if (events := ctx.meta.get(_IN_JSON)) is not None:
        _tell_in_json(events, error, debug)
        return
    if debug:
        click.echo(without_passwords(traceback.format_exc()), err=True, nl=False)
    click.echo(f"error: {message(error)}", err=True)
    for note in getattr(error, "__notes__", []):
        click.echo(note, err=True)
    if exit_code(error) == 1 and not debug:
        click.echo("--debug shows where it happened", err=True)


def _tell_in_json(events: Events, error: BaseException, debug: bool) -> None:
    more: dict[str, Any] = {"notes": list(getattr(error, "__notes__", []))}
    if debug:
        more["traceback"] = without_passwords(traceback.format_exc())
    events.emit("error", error=message(error), exit_code=exit_code(error), **more)


def _set_debug(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value:
        ctx.meta[_DEBUG] = True


_debug = click.option(
    "--debug", is_flag=True, expose_value=False, callback=_set_debug, help="Show the traceback of an error."
)

_METHODS = click.Choice(["auto", "peel", "band", "fixpoint"])
_DEVICES = click.Choice(["auto", "cpu", "gpu"])
_RUN_OPTIONS = [
    click.argument("config", required=False),
    click.option("--input", help="Parquet edges: a file, a folder, a glob or a URL."),
    click.option("--output", help="Folder of the result, or a URL in an object store."),
    click.option("--source-column", help="Column of one end of an edge."),
    click.option("--target-column", help="Column of the other end."),
    click.option("--partitions", metavar="N|auto", help="Number of partitions."),
    click.option("--method", type=_METHODS, help="Schedule that finds λ."),
    click.option("--device", type=_DEVICES, help="What computes."),
    click.option("--workers", type=int, help="Worker processes to start here; left out: none, all in this process."),
    click.option("--scheduler", metavar="ADDRESS", help="A running Dask scheduler."),
    click.option("--scheduler-file", metavar="FILE", help="File that a running Dask scheduler wrote."),
    click.option("--overwrite", is_flag=True, help="Replace an earlier result, once the new one is complete."),
    click.option("--fresh", is_flag=True, help="Start anew, whatever an earlier run has left or made."),
    click.option("--max-exchanges", type=int, help="End after so many exchanges with intervals (exit code 5)."),
    click.option("--max-seconds", type=float, help="End the bounding after so long with intervals (exit code 5)."),
    click.option("--date", metavar="DAY", help="In place of {date} in paths: 2026-11-20, yesterday or today (in UTC)."),
    click.option("--metrics-port", type=int, help="Port on 127.0.0.1 where Prometheus finds the run's figures."),
    click.option(
        "--performance-report", metavar="FILE", help="Write Dask's performance report of the run there, HTML."
    ),
    click.option("--set", "assignments", multiple=True, metavar="A.B=C", help="Any setting; repeatable."),
    click.option("--print-config", is_flag=True, help="Print the settings in effect as YAML, and end."),
]


def _run_options(command: Any) -> Any:
    """The arguments of `run` and `plan`: a settings file, the flags of config.SHORT_NAMES, --set for the rest."""
    for option in reversed(_RUN_OPTIONS):
        command = option(command)
    return _debug(command)


def _settings(config: str | None, assignments: tuple[str, ...], flags: dict[str, Any]) -> Settings:
    from .config import SHORT_NAMES, load_settings

    if (flags["partitions"] or "").removeprefix("-").isdecimal():
        flags["partitions"] = int(flags["partitions"])
    given = {SHORT_NAMES[name]: value for name, value in flags.items() if value is not None and value is not False}
    return load_settings(config, given, assignments)


def _print_config(settings: Settings) -> None:
    from .config import as_yaml

    click.echo(as_yaml(settings), nl=False)


_as_json = click.option("--json", "as_json", is_flag=True, help="Print a JSON object a line.")


def _print_json(rows: Iterable[dict[str, Any]]) -> None:
    for row in rows:
        click.echo(json.dumps(row))


def _console() -> Console:
    from rich.console import Console

    class Piped(Console):
        def on_broken_pipe(self) -> None:
            raise  # rich would end the process, with exit code 1

    width = None if sys.stdout.isatty() else 120
    return Piped(file=sys.stdout, width=width, highlight=False)


@click.group(cls=_Guarded, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="edgemill", message="%(prog)s %(version)s")
@_debug
def edgemill() -> None:
    """Every edge's truss level λ, exactly, from Parquet to Parquet.

    Exit codes: 0 done, 2 usage or settings, 3 bad input, 4 cluster lost, 5 not converged within the limits,
    6 output in use by another run, 7 out of memory or disk, 8 input not complete yet, 1 anything else.
    """


@edgemill.command()
@_run_options
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
    from .display import display_for
    from .telemetry import Events

    in_json = log_format == "json"
    with Events(display_for(sys.stderr, verbose, in_json)) as events:
        if in_json:
            ctx.meta[_IN_JSON] = events
        settings = _settings(config, assignments, flags)
        if print_config:
            _print_config(settings)
            return
        from ..tasks.errors import NotConverged
        from .log_events import logs_as_events
        from .mining import mine_settings
        from .show import summary_lines

        with logs_as_events(events) if in_json else nullcontext():
            result = mine_settings(settings, client=None, events=events)
    if not in_json:
        if result.manifest.run != events.run_id:
            click.echo(f"nothing to do: this is the result since {result.manifest.finished:%Y-%m-%d %H:%M:%S} UTC")
        click.echo("\n".join(summary_lines(result.manifest, str(result.place))))
        for place in events.removed:
            click.echo(f"removed     {place}")
        for place, reason in events.not_removed.items():
            click.echo(f"warning: not removed: {place}: {reason}", err=True)
        if events.report_failed is not None:
            click.echo(f"warning: the result is complete, but has no report: {events.report_failed}", err=True)
    if not result.converged:
        raise NotConverged(
            f"a limit ended the run before λ was exact: {result.manifest.unsettled:,} edges are unsettled; "
            f"{result.place} holds lambda_low and lambda_high in place of lambda"
        )


@edgemill.command()
@_run_options
def plan(config: str | None, assignments: tuple[str, ...], print_config: bool, **flags: Any) -> None:
    """Show what `run` would do with the same arguments: partitions, tasks, bytes. Reads a sample, computes nothing.

    A ~ marks what is estimated. What cannot fit ends with exit code 7, as `run` does.
    """
    settings = _settings(config, assignments, flags)
    if print_config:
        _print_config(settings)
        return
    from .plan_text import describe
    from .planning import make_plan

    made = make_plan(settings)
    click.echo(describe(made))
    made.refuse_if_hopeless()


@edgemill.command()
@click.argument("out")
@_debug
def show(out: str) -> None:
    """Summarise the finished run in the folder OUT, or at that URL."""
    from .result import Result
    from .show import print_result

    print_result(Result(out).manifest, out, _console())


@edgemill.command()
@click.argument("out")
@_as_json
@_debug
@click.pass_context
def status(ctx: click.Context, out: str, as_json: bool) -> None:
    """Tell how the run into the folder or URL OUT stands: who runs it and how far it is, how it ended, what is kept.

    The exit code is 0 for a run under way and a finished result, 1 for a run that failed or died, 2 if there was none.
    """
    from datetime import UTC, datetime

    from .status import status_of
    from .status_text import describe

    found, now = status_of(out), datetime.now(UTC)
    _print_json([found.as_json(now)]) if as_json else click.echo(describe(found, now))
    ctx.exit(found.exit_code)


@edgemill.command()
@click.argument("out")
@click.option(
    "--by",
    type=click.Choice(["lambda", "size", "density"]),
    default="lambda",
    show_default=True,
    help="Size: vertices.",
)
@click.option("--count", "-n", type=click.IntRange(min=1), default=20, show_default=True, help="How many.")
@_as_json
@_debug
def top(out: str, by: Any, count: int, as_json: bool) -> None:
    """List the first DN-graphs of the result OUT by λ, number of vertices or density, best first."""
    from .asking import top as first
    from .result import Result
    from .show import print_whole
    from .show_groups import dn_graphs_table

    rows = first(Result(out), by, count).to_pylist()
    _print_json(rows) if as_json else print_whole(_console(), dn_graphs_table(rows))


@edgemill.command("of", context_settings={"ignore_unknown_options": True})
@click.argument("out")
@click.argument("vertex")
@click.option("--count", "-n", type=click.IntRange(min=1), help="How many; left out: all.")
@_as_json
@_debug
def groups_of(out: str, vertex: str, count: int | None, as_json: bool) -> None:
    """List the groups of the result OUT that VERTEX is in, innermost first, up to its connected component.

    Put -- before an id that is spelt like an option.
    """
    from dataclasses import asdict

    from . import asking
    from .result import Result
    from .show import print_whole
    from .show_groups import groups_table, vertex_line

    result = Result(out)
    found = asking.find_vertex(result, vertex)
    groups = asking.groups_of(result, found, count)
    if as_json:
        _print_json(asdict(group) for group in groups)
        return
    console = _console()
    console.print(vertex_line(found))
    if groups:
        print_whole(console, groups_table(groups))
    else:
        console.print("It has no edges, so it is in no group.")


@edgemill.command()
@click.argument("out")
@click.option("--dn-graph", type=int, metavar="ID", help="The DN-graph of that id.")
@click.option("--component", type=int, metavar="ID", help="Any component of the hierarchy in its place.")
@click.option(
    "--format", "form", type=click.Choice(["parquet", "graphml", "csv"]), help="Left out: as FILE ends, or csv."
)
@click.option("--output", metavar="FILE", help="A new file, or its URL; left out: standard output.")
@click.option("--overwrite", is_flag=True, help="Replace FILE, once the new one is complete.")
@_debug
def subgraph(
    out: str, dn_graph: int | None, component: int | None, form: Any, output: str | None, overwrite: bool
) -> None:
    """Write the edges of one dense group of the result OUT, with their support and λ."""
    from . import asking
    from .graph_files import format_of, write_group
    from .new_place import new_file
    from .result import Result

    if (dn_graph is None) == (component is None):
        raise click.UsageError("say which group: --dn-graph ID or --component ID")
    form = form or format_of(output)
    if output is None and form == "parquet" and sys.stdout.isatty():
        raise click.UsageError("Parquet is nothing for a terminal: say --output FILE")
    result = Result(out)
    if dn_graph is not None:
        group = asking.find_dn_graph(result, dn_graph)
    else:
        group = asking.find_group(result, component or 0)
    if output is None:
        write_group(result, group, sys.stdout.buffer, form)
        sys.stdout.buffer.flush()  # here a full disk has an exit code
        return
    with new_file(output, overwrite, [result.place]) as file:
        write_group(result, group, file, form)


@edgemill.command()
@click.argument("old")
@click.argument("new")
@click.option("--output", metavar="FOLDER", help="New folder or URL for Parquet files of what changed.")
@click.option("--overwrite", is_flag=True, help="Replace FOLDER, if it is of an earlier comparison.")
@_as_json
@_debug
def diff(old: str, new: str, output: str | None, overwrite: bool, as_json: bool) -> None:
    """Count the edges and DN-graphs that appeared, vanished, rose or fell in λ from the result OLD to the result NEW.

    DN-graphs are told by their members. The exit code is 0 whether or not anything changed.
    """
    from .comparing import diff as compare
    from .show import print_whole
    from .show_groups import changes_table

    found = compare(old, new, output, overwrite)
    for notice in found.notices:
        click.echo(f"notice: {notice}", err=True)
    _print_json([found.as_dict()]) if as_json else print_whole(_console(), changes_table(found))


@edgemill.command()
@click.argument("out")
@click.option("--output", metavar="FILE", help="Write the page there, a new file, and leave OUT as it is.")
@click.option("--overwrite", is_flag=True, help="Replace FILE, once the new one is complete.")
@_debug
def report(out: str, output: str | None, overwrite: bool) -> None:
    """Make report.html of the finished run in the folder or at the URL OUT anew: the result on one page."""
    from .report.written import write_report

    click.echo(write_report(out, output, overwrite))


@edgemill.command()
@click.argument("out")
@click.option("--input", "input_path", metavar="EDGES", help="Compare with these edges too.")
@_debug
@click.pass_context
def verify(ctx: click.Context, out: str, input_path: str | None) -> None:
    """Check the result in the folder or at the URL OUT by definition; the code shares nothing with the kernels."""
    from rich.console import Console

    from ..tasks.verify import verify as check

    console = Console(stderr=True)
    with console.status("checking") if console.is_terminal else nullcontext() as status:
        report = check(out, input_path, (lambda name: status.update(f"checking {name}")) if status else None)
    for name, ok, detail in report.checks:
        click.echo(f"{'ok    ' if ok else 'FAILED'}  {name}{': ' if detail else ''}{detail}")
    if not report.ok:
        failed = sum(not ok for _, ok, _ in report.checks)
        click.echo(f"error: {failed} of {len(report.checks)} checks failed: {out} is not a correct result", err=True)
        ctx.exit(1)


@edgemill.command()
@click.argument("out")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port on 127.0.0.1; left out: a free one.")
@click.option("--open", "open_browser", is_flag=True, help="Open it in the default browser.")
@_debug
def explore(out: str, port: int, open_browser: bool) -> None:
    """Serve a page on 127.0.0.1 with the dense groups of the result in the folder or at the URL OUT, until Ctrl-C.

    The hierarchy, search by vertex, and drawings of DN-graphs with their surroundings.
    """
    from .explore import explore as serve
    from .result import Result

    def ready(address: str) -> None:
        click.echo(f"{out} is at {address} until Ctrl-C")
        if open_browser:
            import webbrowser

            webbrowser.open(address)

    serve(Result(out), ready, port)


@edgemill.group()
def generate() -> None:
    """Write a made-up graph as Parquet: columns src and dst, int64."""


def _whole(name: str, default: int | None = None) -> click.Option:
    shown: dict[str, Any] = {"required": True} if default is None else {"default": default, "show_default": True}
    return click.Option([f"--{name}"], type=int, **shown)


def _share(name: str, default: float) -> click.Option:
    return click.Option([f"--{name}"], type=float, default=default, show_default=True)


_KINDS: dict[str, tuple[str, list[click.Option]]] = {
    "rmat": (
        "2^scale vertices and edge-factor rows for each, drawn recursively; duplicates and self-loops stay.",
        [
            *(_whole("scale"), _whole("edge-factor", 16)),
            *(_share("a", 0.57), _share("b", 0.19), _share("c", 0.19)),
            click.Option(["--permute"], is_flag=True, help="Scramble the vertex ids."),
        ],
    ),
    "erdos-renyi": ("Edges between random pairs.", [_whole("vertices"), _whole("edges")]),
    "planted-cliques": (
        "Disjoint cliques in a random background.",
        [_whole("vertices"), _whole("edges"), _whole("cliques"), _whole("clique-size")],
    ),
    "communities": (
        "Cliques that overlap where they come to lie near each other.",
        [
            *(_whole("vertices"), _whole("communities"), _whole("community-size"), _whole("spread", 2)),
            click.Option(["--permute"], is_flag=True, help="Scramble the vertex ids."),
        ],
    ),
    "grid": ("A lattice with a diagonal in each cell, λ = 1.", [_whole("width"), _whole("height")]),
    "chain": ("A strip of triangles, λ = 1.", [_whole("triangles")]),
    "star": ("One centre and its leaves, λ = 0.", [_whole("leaves")]),
    "clique": ("All pairs of n vertices, λ = n - 2.", [_whole("vertices")]),
}


def _generate(kind: str, output: str, files: int, seed: int, **parameters: Any) -> None:
    from ..tasks.generate import generate as write

    paths = write(kind, output, files, seed, **parameters)
    click.echo(f"{kind}: {len(paths)} files in {output}")


for _kind, (_help, _parameters) in _KINDS.items():
    _common = [
        _whole("seed", 1),
        _whole("files", 1),
        click.Option(["--output"], required=True, metavar="DIR", help="New or empty folder."),
    ]
    _command = click.Command(_kind, params=[*_parameters, *_common], callback=partial(_generate, _kind), help=_help)
    generate.add_command(_debug(_command))


def main() -> None:
    """Entry point of the command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # λ on a terminal without Unicode is no reason to fail
    try:
        edgemill(prog_name="edgemill")
    except OSError as error:  # of --help, which is written before a command is
        click.echo(f"error: {message(error)}", err=True)
        sys.exit(exit_code(error))
    finally:
        _let_go()


def _let_go() -> None:
    """Drop what could not be written: Python would try again at its end, fail, and exit with 120."""
    for stream in (sys.stdout, sys.stderr):
        if not isinstance(stream, io.IOBase):
            continue  # there is none
        try:
            stream.flush()
        except OSError:
            with open(os.devnull, "wb") as nowhere:
                os.dup2(nowhere.fileno(), stream.fileno())


if __name__ == "__main__":
    main()
