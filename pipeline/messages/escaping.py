"""Escape characters that control a terminal or a page, so that they are shown as text, and cut long values.

These are the control characters C0, DEL and C1, overrides and isolates of the text direction, and unpaired surrogates.
Names of files, columns and vertices may contain them.
"""

from __future__ import annotations

import re
import shlex

_MAX_SHOWN = 200
"""Characters of a value that a message shows."""
_CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff"
_IN_TEXT = re.compile(f"[{_CONTROLS}]")
_IN_LINE = re.compile(f"[{_CONTROLS}\t\n]")


def has_controls(text: str) -> bool:
    """Whether the text contains such a character."""
    return _IN_TEXT.search(text) is not None


def escaped(text: str) -> str:
    r"""The text with each such character as `\x1b` or `\u202e`. Tabs and line breaks stay."""
    return _IN_TEXT.sub(_visible, text)


def one_line(text: str) -> str:
    """As `escaped`, with tabs and line breaks escaped too."""
    return _IN_LINE.sub(_visible, text)


def shown(value: object) -> str:
    """A value as Python writes it, for a message. Long ones are cut."""
    try:
        text = repr(value)
    except ValueError:  # Python does not write integers of more than 4,300 digits
        return "a number of thousands of digits"
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"


def in_json(text: str) -> str:
    """An equivalent JSON text without such characters."""
    return _IN_TEXT.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _visible(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def shell_word(text: str) -> str:
    """Text as one argument of a command, on one line."""
    return shlex.quote(one_line(text))
