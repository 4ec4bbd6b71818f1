"""Report an exception as one line on stderr and an exit code, and as JSON if the command was asked for it."""

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
from ...tasks.storage.passwords import without_passwords
from ..messages.exits import BROKEN_PIPE, exit_code, interrupts, message
from ..messages.terminal import echo, escaping
from ..messages.wording import in_json, one_line
from ..settings.setting_names import naming_flags, with_flags

if TYPE_CHECKING:
    from ..events import Events


DEBUG = "edgemill.debug"
"""Key of `click.Context.meta`: show tracebacks."""
JSON_EVENTS = "edgemill.json-events"
"""Key of `click.Context.meta`: the Events that report errors as JSON lines."""
AS_JSON = "edgemill.as-json"
"""Key of `click.Context.meta`: errors are a JSON document on stdout. Removed once a document is printed."""
SETTING_ORIGIN = "edgemill.setting-origin"
"""Key of `click.Context.meta`: the SettingOrigin of the command line."""
_ARGUMENTS = "edgemill.arguments"


class ErrorHandlingGroup(click.Group):
    """Reports every exception as one line on stderr and an exit code. A closed pipe has an exit code alone."""

    def main(self, *arguments: Any, **more: Any) -> Any:
        with escaping():
            return super().main(*arguments, **more)

    def make_context(self, *arguments: Any, **more: Any) -> click.Context:
        try:
            with interrupts():
                return super().make_context(*arguments, **more)
        except (BrokenPipeError, KeyboardInterrupt) as error:  # the former from --help, which click writes here
            raise click.exceptions.Exit(exit_code(error)) from error

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # Arguments that cannot be parsed may still contain --json.
        ctx.meta[_ARGUMENTS] = list(args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with interrupts(), naming_flags():
                return super().invoke(ctx)
        except click.ClickException as error:  # click prints it on stderr
            if self._asks_for_json(ctx.meta[_ARGUMENTS]):
                _print_document(error.format_message(), [], error.exit_code)
            raise
        except (click.exceptions.Exit, click.Abort):
            raise  # click handles these
        except (Exception, KeyboardInterrupt) as error:
            code = exit_code(error)
            if code != BROKEN_PIPE:
                with suppress(OSError):  # a closed pipe or a full disk: the exit code remains
                    _print_error(ctx, error)
            ctx.exit(code)

    def _asks_for_json(self, arguments: list[str]) -> bool:
        """Whether the command that the arguments name would have printed one JSON document."""
        names = [argument for argument in arguments if argument in self.commands]
        options = self.commands[names[0]].params if names else []
        return "--json" in arguments and any(option.callback is set_json for option in options)


def set_json(ctx: click.Context, parameter: click.Parameter, value: bool) -> bool:
    """Callback of `--json` in commands that print one JSON document."""
    if value:
        ctx.meta[AS_JSON] = True
    return value


def _print_error(ctx: click.Context, error: BaseException) -> None:
    debug = bool(ctx.meta.get(DEBUG))
    text, notes = message(error), list(getattr(error, "__notes__", []))
    if isinstance(error, EdgemillError):
        origin = ctx.meta.get(SETTING_ORIGIN)
        text, notes = with_flags(text, origin), [with_flags(note, origin) for note in notes]
    if ctx.meta.get(AS_JSON):
        _print_document(text, notes, exit_code(error))
    if (events := ctx.meta.get(JSON_EVENTS)) is not None:
        _emit_error(events, text, notes, exit_code(error), debug)
        return
    if debug:
        echo(without_passwords(traceback.format_exc()).rstrip("\n"), err=True)
    echo(f"Error: {one_line(text) if isinstance(error, EdgemillError) else text}", err=True)
    for note in notes:
        echo(one_line(note), err=True)
    if exit_code(error) == 1 and not debug:
        echo("run with --debug for a traceback", err=True)


def _print_document(text: str, notes: list[str], code: int) -> None:
    with suppress(OSError):  # stderr and the exit code remain
        echo(in_json(json.dumps({"error": text, "notes": notes, "exit_code": code}, ensure_ascii=False)))


def _emit_error(events: Events, text: str, notes: list[str], code: int, debug: bool) -> None:
    more: dict[str, Any] = {"notes": notes}
    if debug:
        more["traceback"] = without_passwords(traceback.format_exc())
    events.emit("error", error=text, exit_code=code, **more)


def discard_unwritten() -> None:
    """Prepare for the exit of Python: discard unwritten output, and skip work that has no effect.

    Python flushes its streams at exit; if that fails, it exits with 120. colorama, which Numba imports, writes to the
    terminal at exit; through the escaped stream that would be visible. Python also collects cycles at exit, which takes
    half a second after a run; all files are closed by now, so `gc.freeze` excludes all objects from it.
    """
    gc.freeze()
    if (colorama := sys.modules.get("colorama.initialise")) is not None:
        atexit.unregister(colorama.reset_all)
    for stream in (sys.stdout, sys.stderr):
        if not isinstance(stream, io.IOBase):
            continue  # closed, or replaced by a test
        try:
            stream.flush()
        except OSError:
            with open(os.devnull, "wb") as nowhere:
                os.dup2(nowhere.fileno(), stream.fileno())
