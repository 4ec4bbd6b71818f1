"""How a command ends: every exception in one line on stderr and the exit code that belongs to it."""

from __future__ import annotations

import atexit
import gc
import io
import json
import os
import sys
import traceback
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from ...tasks.errors import EdgemillError
from ...tasks.passwords import without_passwords
from ..escaping import in_json, one_line
from ..exits import UNREAD, exit_code, message, sigterm_interrupts
from ..terminal import escaping, tell
from ..wording.settings_named import with_flags

if TYPE_CHECKING:
    from ..telemetry import Events

__all__ = ["AS_JSON", "DEBUG", "IN_JSON", "TYPED", "Guarded", "let_go", "set_json"]

DEBUG = "edgemill.debug"
"""Where a command says that tracebacks are wanted."""
IN_JSON = "edgemill.in-json"
"""Where a command leaves the events that tell of its errors."""
AS_JSON = "edgemill.as-json"
"""Where a command says that its answer, and so its error, is a JSON document on stdout. Gone once that is printed."""
TYPED = "edgemill.typed"
"""Where a command says by what its settings were given."""
_ARGUMENTS = "edgemill.arguments"


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

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Click's; the arguments are kept, as those of a command that cannot be parsed may ask for JSON, too."""
        ctx.meta[_ARGUMENTS] = list(args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Click's."""
        try:
            with sigterm_interrupts():
                return super().invoke(ctx)
        except click.ClickException as error:  # click tells it on stderr
            if self._asks_for_json(ctx.meta[_ARGUMENTS]):
                _tell_document(error.format_message(), [], error.exit_code)
            raise
        except (click.exceptions.Exit, click.Abort):
            raise  # click ends these by itself
        except (Exception, KeyboardInterrupt) as error:
            code = exit_code(error)
            if code != UNREAD:
                with suppress(OSError):  # nobody reads, or a full disk takes no more: the code tells, too
                    _tell(ctx, error)
            ctx.exit(code)

    def _asks_for_json(self, arguments: list[str]) -> bool:
        """Whether the command in the arguments would have printed one JSON document."""
        names = [argument for argument in arguments if argument in self.commands]
        options = self.commands[names[0]].params if names else []
        return "--json" in arguments and any(option.callback is set_json for option in options)


def set_json(ctx: click.Context, parameter: click.Parameter, value: bool) -> bool:
    """Callback of the option `--json` of commands that print one JSON document."""
    if value:
        ctx.meta[AS_JSON] = True
    return value


def _tell(ctx: click.Context, error: BaseException) -> None:
    debug = bool(ctx.meta.get(DEBUG))
    text, notes = message(error), list(getattr(error, "__notes__", []))
    if isinstance(error, EdgemillError):
        typed = ctx.meta.get(TYPED)
        text, notes = with_flags(text, typed), [with_flags(note, typed) for note in notes]
    if ctx.meta.get(AS_JSON):
        _tell_document(text, notes, exit_code(error))
    if (events := ctx.meta.get(IN_JSON)) is not None:
        _tell_in_json(events, text, notes, exit_code(error), debug)
        return
    if debug:
        tell(without_passwords(traceback.format_exc()).rstrip("\n"), err=True)
    tell(f"Error: {one_line(text) if isinstance(error, EdgemillError) else text}", err=True)
    for note in notes:
        tell(one_line(note), err=True)
    if exit_code(error) == 1 and not debug:
        tell("--debug shows where it happened", err=True)


def _tell_document(text: str, notes: list[str], code: int) -> None:
    with suppress(OSError):  # stderr and the code tell, too
        tell(in_json(json.dumps({"error": text, "notes": notes, "exit_code": code}, ensure_ascii=False)))


def _tell_in_json(events: Events, text: str, notes: list[str], code: int, debug: bool) -> None:
    more: dict[str, Any] = {"notes": notes}
    if debug:
        more["traceback"] = without_passwords(traceback.format_exc())
    events.emit("error", error=text, exit_code=code, **more)


def let_go() -> None:
    """Drop what could not be written: Python would try again at its end, fail, and exit with 120.

    And keep colorama, which Numba imports, from writing to the terminal then: by way of ours that would be visible.
    Python also searches all objects for cycles as it ends, several times, which takes half a second after a run. What
    has to be closed is closed by now, so it is told to leave out those that there are.
    """
    gc.freeze()
    if (colorama := sys.modules.get("colorama.initialise")) is not None:
        atexit.unregister(colorama.reset_all)
    for stream in (sys.stdout, sys.stderr):
        if not isinstance(stream, io.IOBase):
            continue  # there is none
        try:
            stream.flush()
        except OSError:
            with open(os.devnull, "wb") as nowhere:
                os.dup2(nowhere.fileno(), stream.fileno())
