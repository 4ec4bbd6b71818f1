"""The command `edgemill`: arguments in, exit code out. Everything heavy is imported inside the commands."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress

import click

from ..exits import exit_code, message
from ..terminal import tell
from .asking import diff, groups_of, top
from .ending import Guarded, let_go
from .generating import generate
from .groups import ktruss, members, subgraph
from .listing import programs
from .options import debug
from .results import explore, report, show, status, verify
from .running import plan, run

__all__ = ["edgemill", "main"]


@click.group(
    cls=Guarded, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110, "color": True}
)
@click.version_option(package_name="edgemill", message="%(prog)s %(version)s")
@debug
def edgemill() -> None:
    """Every edge's truss level λ, exactly, from Parquet to Parquet.

    Exit codes: 0 done, 2 usage or settings, 3 bad input, 4 cluster or store lost, 5 not converged within the
    limits, 6 output in use by another run, 7 out of memory or disk, 8 input not complete yet, 1 anything else.
    """


_COMMANDS = (
    *(run, plan, show, status, top, groups_of, members, subgraph, ktruss),
    *(diff, report, verify, explore, generate, programs),
)
for _command in _COMMANDS:
    edgemill.add_command(_command)


def main() -> None:
    """Entry point of the command."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by who calls it, as by `>&-`
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 — for as long as the process lives
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # λ on a terminal without Unicode is no reason to fail
    try:
        edgemill(prog_name="edgemill")
    except OSError as error:  # of --help, which is written before a command is, or of what click tells itself
        with suppress(OSError):  # the code tells, too
            tell(f"Error: {message(error)}", err=True)
        sys.exit(exit_code(error))
    finally:
        let_go()
