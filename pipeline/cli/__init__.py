"""The command `edgemill`: a click group with one command per function; each command imports what it needs.

Imports the rest of `pipeline`, and nothing imports it. Start with `edgemill` in this file, then `running`. Errors
become a message and an exit code in `error_output`.
"""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress

import click

from ..messages.exits import exit_code, message
from ..messages.terminal import echo
from .error_output import ErrorHandlingGroup, discard_unwritten
from .generating import generate
from .options import debug
from .queries import diff, groups_of, ktruss, members, subgraph, top
from .results import explore, report, show, status, verify
from .running import estimate, plan, programs, run, update, warm

__all__ = ["edgemill", "main"]


@click.group(
    cls=ErrorHandlingGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110, "color": True},
)
@click.version_option(package_name="edgemill", message="%(prog)s %(version)s")
@debug
def edgemill() -> None:
    """Find dense groups in large graphs.

    The λ of an edge is the largest k such that the edge lies in a subgraph in which every edge closes at least k
    triangles. A DN-graph is a connected group of edges of one λ that no edge of higher λ touches: a group that is
    denser than everything around it.

    edgemill computes λ of every edge exactly, extracts the DN-graphs and their hierarchy, and publishes Parquet.

    Exit codes: 0 success, 2 wrong usage or settings, 3 bad input, 4 cluster or object store lost, 5 stopped by a
    limit before λ was exact, 6 output locked by another run, 7 out of memory or disk, 8 input incomplete,
    1 any other error.
    """


_COMMANDS = (
    *(run, plan, estimate, update, show, status, top, groups_of, members, subgraph, ktruss),
    *(diff, report, verify, explore, generate, programs, warm),
)
for _command in _COMMANDS:
    edgemill.add_command(_command)


def main() -> None:
    """Entry point of the command."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller, as by `>&-`
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 — open until the process exits
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without Unicode shows ? for λ
    try:
        edgemill(prog_name="edgemill")
    except OSError as error:  # while click writes --help or an error of its own
        with suppress(OSError):  # the exit code reports the error, too
            echo(f"Error: {message(error)}", err=True)
        sys.exit(exit_code(error))
    finally:
        discard_unwritten()
