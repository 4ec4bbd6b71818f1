"""What is told, checked and made of one result: `edgemill show`, `status`, `report`, `verify` and `explore`."""

from __future__ import annotations

import sys
from contextlib import nullcontext

import click

from ..escaping import one_line
from ..terminal import console_on, tell
from .options import MOST_MEMBERS, console, debug, json_document, json_rows, print_document, print_json

__all__ = ["explore", "report", "show", "status", "verify"]


_MOST_GROUPS = 10


@click.command()
@click.argument("out")
@click.option("--detail", is_flag=True, help="Also how it was made: partitions, the search for λ, seconds of stages.")
@json_document
@debug
def show(out: str, detail: bool, as_json: bool) -> None:
    """Show the finished run in the folder OUT, or at that URL: its first DN-graphs with members, counts, edges by λ."""
    from ..result import Result
    from ..summary.best import best_groups

    result = Result(out)
    groups = best_groups(result, _MOST_GROUPS, MOST_MEMBERS)
    if as_json:
        from ..summary.document import result_document

        print_document(result_document(result, groups, detail) | {"exit_code": 0})
        return
    from ..summary.showing import print_result

    print_result(result.manifest, out, console(), groups, detail)


@click.command()
@click.argument("out")
@json_rows
@debug
@click.pass_context
def status(ctx: click.Context, out: str, as_json: bool) -> None:
    """Tell how the run into the folder or URL OUT stands: who runs it and how far it is, how it ended, what is kept.

    The exit code is 0 for a run under way and a finished result, 1 for a run that failed or died, 2 if there was none.
    """
    from datetime import UTC, datetime

    from ..status import status_of
    from ..status_text import describe

    found, now = status_of(out), datetime.now(UTC)
    print_json([found.as_json(now)]) if as_json else tell(describe(found, now))
    ctx.exit(found.exit_code)


@click.command()
@click.argument("out")
@click.option("--output", metavar="FILE", help="Write the page there, a new file, and leave OUT as it is.")
@click.option("--overwrite", is_flag=True, help="Replace FILE, once the new one is complete.")
@debug
def report(out: str, output: str | None, overwrite: bool) -> None:
    """Make report.html of the finished run in the folder or at the URL OUT anew: the result on one page."""
    from ..report.written import write_report

    tell(one_line(write_report(out, output, overwrite)))


@click.command()
@click.argument("out")
@click.option("--input", "input_path", metavar="EDGES", help="Compare with these edges too.")
@click.option(
    "--table-version", type=int, metavar="N", help="Of EDGES, if they are a table; left out: the one that was read."
)
@json_document
@debug
@click.pass_context
def verify(ctx: click.Context, out: str, input_path: str | None, table_version: int | None, as_json: bool) -> None:
    """Check the result in the folder or at the URL OUT by definition; the code shares nothing with the kernels."""
    from rich.text import Text

    from ...tasks.verify import verify as check

    there = console_on(sys.stderr)
    with there.status("checking") if there.is_terminal else nullcontext() as status:
        progress = (lambda name: status.update(Text(f"checking {name}"))) if status else None
        report = check(out, input_path, progress, table_version)
    failed = sum(not ok for _, ok, _ in report.checks)
    wrong = f"{failed} of {len(report.checks)} checks failed: {out} is not a correct result"
    if as_json:
        checks = [{"name": name, "ok": bool(ok), "detail": detail} for name, ok, detail in report.checks]
        document = {"result": out, "ok": report.ok, "checks": checks, "exit_code": 0 if report.ok else 1}
        print_document(document if report.ok else document | {"error": wrong})
    else:
        for name, ok, detail in report.checks:
            tell(f"{'ok    ' if ok else 'FAILED'}  {one_line(name)}{': ' if detail else ''}{one_line(detail)}")
    if not report.ok:
        tell(f"Error: {one_line(wrong)}", err=True)
        ctx.exit(1)


@click.command()
@click.argument("out")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port on 127.0.0.1; left out: a free one.")
@click.option("--open", "open_browser", is_flag=True, help="Open it in the default browser.")
@debug
def explore(out: str, port: int, open_browser: bool) -> None:
    """Serve a page on 127.0.0.1 with the dense groups of the result in the folder or at the URL OUT, until Ctrl-C.

    The hierarchy, search by vertex, and drawings of DN-graphs with their surroundings.
    """
    from ..explore import explore as serve
    from ..result import Result

    def ready(address: str) -> None:
        tell(f"{one_line(out)} is at {address} until Ctrl-C")
        if open_browser:
            import webbrowser

            webbrowser.open(address)

    serve(Result(out), ready, port)
