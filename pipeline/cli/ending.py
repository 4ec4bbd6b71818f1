"""How a command ends: every exception in one line on stderr and the exit code that belongs to it."""

from __future__ import annotations

import io
import os
import sys
import traceback
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from ...tasks.errors import EdgemillError
from ...tasks.passwords import without_passwords
from ..escaping import one_line
from ..exits import UNREAD, exit_code, message, sigterm_interrupts
from ..terminal import escaping, tell

if TYPE_CHECKING:
    from ..telemetry import Events

__all__ = ["DEBUG", "IN_JSON", "Guarded", "let_go"]

DEBUG = "edgemill.debug"
"""Where a command says that tracebacks are wanted."""
IN_JSON = "edgemill.in-json"
"""Where a command leaves the events that tell of its errors."""


class Guarded(click.Group):
    """Ends every exception in one line on stderr and the exit code that belongs to it; a closed pipe without a word."""

    def main(self, *arguments: Any, **more: Any) -> Any:
        """Click's; what is printed meanwhile is escaped."""
        with escaping():
            return super().main(*arguments, **more)

    def make_context(self, *arguments: Any, **more: Any) -> click.Context:
        """Click's."""
        try:
            return super().make_context(*arguments, **more)
        except BrokenPipeError as error:  # of --help, which is written before a command is
            raise click.exceptions.Exit(exit_code(error)) from error

    def invoke(self, ctx: click.Context) -> Any:
        """Click's."""
        try:
            with sigterm_interrupts():
                return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise  # click ends these by itself
        except (Exception, KeyboardInterrupt) as error:
            code = exit_code(error)
            if code != UNREAD:
                with suppress(OSError):  # nobody reads, or a full disk takes no more: the code tells, too
                    _tell(ctx, error)
            ctx.exit(code)


def _tell(ctx: click.Context, error: BaseException) -> None:
    debug = bool(ctx.meta.get(DEBUG))
    if (events := ctx.meta.get(IN_JSON)) is not None:
        _tell_in_json(events, error, debug)
        return
    if debug:
        tell(without_passwords(traceback.format_exc()).rstrip("\n"), err=True)
    text = message(error)
    tell(f"error: {one_line(text) if isinstance(error, EdgemillError) else text}", err=True)
    for note in getattr(error, "__notes__", []):
        tell(one_line(note), err=True)
    if exit_code(error) == 1 and not debug:
        tell("--debug shows where it happened", err=True)


def _tell_in_json(events: Events, error: BaseException, debug: bool) -> None:
    more: dict[str, Any] = {"notes": list(getattr(error, "__notes__", []))}
    if debug:
        more["traceback"] = without_passwords(traceback.format_exc())
    events.emit("error", error=message(error), exit_code=exit_code(error), **more)


def let_go() -> None:
    """Drop what could not be written: Python would try again at its end, fail, and exit with 120."""
    for stream in (sys.stdout, sys.stderr):
        if not isinstance(stream, io.IOBase):
            continue  # there is none
        try:
            stream.flush()
        except OSError:
            with open(os.devnull, "wb") as nowhere:
                os.dup2(nowhere.fileno(), stream.fileno())
