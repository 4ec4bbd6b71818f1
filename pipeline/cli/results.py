"""Commands on one output: `edgemill show`, `status`, `report`, `verify` and `explore`."""

from __future__ import annotations

import sys
from contextlib import nullcontext

import click

from ..messages.terminal import console_on, echo
from ..messages.wording import one_line
from .options import MOST_MEMBERS, console, debug, json_document, json_rows, print_document, print_json

_MOST_GROUPS = 10


@click.command()
@click.argument("out")
@click.option("--detail", is_flag=True, help="Show how it was made, too: partitions, bounding, seconds per stage.")
@json_document
@debug
def show(out: str, detail: bool, as_json: bool) -> None:
    """Summarize a result.

    Shows counts, edges by λ, the top DN-graphs with members, and the top vertices of vertex programs, of the result in
    the folder or at the URL OUT.
    """
    from ..results.result import Result
    from .show import top_groups

    result = Result(out)
    groups = top_groups(result, _MOST_GROUPS, MOST_MEMBERS)
    if as_json:
        from .documents import result_document

        print_document(result_document(result, groups, detail) | {"exit_code": 0})
        return
    from .show import show_result

    show_result(result, out, console(), groups, detail)


@click.command()
@click.argument("out")
@json_rows
@debug
@click.pass_context
def status(ctx: click.Context, out: str, as_json: bool) -> None:
    """Show the state of a run: owner, progress, outcome and checkpoint.

    OUT is the folder or URL that the run writes to. Of a series, latest also tells of newer nights that failed. The
    exit code is 0 for a running run and a finished result, 1 for a
    failed or dead run, 2 if there is no run.
    """
    from datetime import UTC, datetime

    from ...tasks.storage.folders import folder_at
    from ..monitor.status import later_failures, status_of
    from ..settings.setting_names import with_flags
    from .show import describe

    found, now = status_of(out), datetime.now(UTC)
    later = later_failures(folder_at(out)) if found.result is not None else []
    if as_json:
        nights = [{"day": day} | status.as_json(now) for day, status in later]
        print_json([found.as_json(now) | ({"later": nights} if nights else {})])
    else:
        echo(describe(found, now))
        for day, status in later:
            error = "" if status.log is None or status.log.error is None else f": {with_flags(status.log.error)}"
            echo(one_line(f"later       {day} {status.state}{error}"))
    ctx.exit(found.exit_code)


@click.command()
@click.argument("out")
@click.option("--output", metavar="FILE", help="Write the page to this new file and leave OUT unchanged.")
@click.option("--overwrite", is_flag=True, help="Replace FILE once the new one is complete.")
@debug
def report(out: str, output: str | None, overwrite: bool) -> None:
    """Write the HTML report of a result.

    The report, report.html, shows the result in the folder or at the URL OUT on one page.
    """
    from ..report.report import write_report

    echo(one_line(write_report(out, output, overwrite)))


@click.command()
@click.argument("out")
@click.option("--input", "input_path", metavar="EDGES", help="Also compare the result with these edges.")
@click.option(
    "--table-version",
    type=int,
    metavar="N",
    help="Version of EDGES, if a table. Default: the version that the run read.",
)
@json_document
@debug
@click.pass_context
def verify(ctx: click.Context, out: str, input_path: str | None, table_version: int | None, as_json: bool) -> None:
    """Check a result by the definition of λ.

    OUT is the folder or URL of the result. The check shares no code with the kernels.
    """
    from rich.text import Text

    from ...tasks.verify.result import verify as check

    terminal = console_on(sys.stderr)
    with terminal.status("checking") if terminal.is_terminal else nullcontext() as status:
        progress = (lambda name: status.update(Text(f"checking {name}"))) if status else None
        report = check(out, input_path, progress, table_version)
    failed = sum(not ok for _, ok, _ in report.checks)
    failure = f"{failed} of {len(report.checks)} checks failed: {out} is not a correct result"
    if as_json:
        checks = [{"name": name, "ok": bool(ok), "detail": detail} for name, ok, detail in report.checks]
        document = {"result": out, "ok": report.ok, "checks": checks, "exit_code": 0 if report.ok else 1}
        print_document(document if report.ok else document | {"error": failure})
    else:
        for name, ok, detail in report.checks:
            echo(f"{'ok    ' if ok else 'FAILED'}  {one_line(name)}{': ' if detail else ''}{one_line(detail)}")
    if not report.ok:
        echo(f"Error: {one_line(failure)}", err=True)
        ctx.exit(1)


@click.command()
@click.argument("out")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port on 127.0.0.1. Default: a free port.")
@click.option("--open", "open_browser", is_flag=True, help="Open the page in the default browser.")
@debug
def explore(out: str, port: int, open_browser: bool) -> None:
    """Explore a result in the browser.

    Serves a page on 127.0.0.1 until Ctrl-C, for the result in the folder or at the URL OUT. The page shows the
    hierarchy, finds groups by vertex, and draws DN-graphs with their neighbourhoods.
    """
    from ..explorer.server import explore as serve
    from ..results.result import Result

    def ready(address: str) -> None:
        echo(f"{one_line(out)} is at {address}; press Ctrl-C to stop")
        if open_browser:
            import webbrowser

            webbrowser.open(address)

    serve(Result(out), ready, port)
