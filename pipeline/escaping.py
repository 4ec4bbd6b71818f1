"""Characters that a terminal or a page obeys, in place of showing them, as visible text.

They are the controls C0, DEL and C1, the overrides and isolates of the direction of text, and halves of surrogate
pairs. Names of files, columns and vertices may hold them.
"""

from __future__ import annotations

import re

__all__ = ["escaped", "has_controls", "in_json", "one_line"]

_CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff"
_IN_TEXT = re.compile(f"[{_CONTROLS}]")
_IN_LINE = re.compile(f"[{_CONTROLS}\t\n]")


def has_controls(text: str) -> bool:
    """Whether `escaped` would change the text."""
    return _IN_TEXT.search(text) is not None


def escaped(text: str) -> str:
    r"""The text with each such character as `\x1b` or `\u202e`; tabs and ends of lines stay."""
    return _IN_TEXT.sub(_visible, text)


def one_line(text: str) -> str:
    """As `escaped`, of one value: tabs and ends of lines do not stay."""
    return _IN_LINE.sub(_visible, text)


def in_json(text: str) -> str:
    """A JSON text of the same meaning without such characters."""
    return _IN_TEXT.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _visible(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
