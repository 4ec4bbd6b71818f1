"""Text in messages: escaped characters, shortened values, numbers of bytes, and suggestions for an unknown name.

Characters that control a terminal or a page are escaped, so that they are shown as text: the control characters C0, DEL
and C1, overrides and isolates of the text direction, and unpaired surrogates. Names of files, columns and vertices may
contain them.
"""

from __future__ import annotations

import re
import reprlib
import shlex
from collections.abc import Iterable
from difflib import get_close_matches

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


def in_json(text: str) -> str:
    """An equivalent JSON text without such characters."""
    return _IN_TEXT.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _visible(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def shell_word(text: str) -> str:
    """Text as one argument of a command, on one line."""
    return shlex.quote(one_line(text))


class _Short(reprlib.Repr):
    """Values of bounded length and depth."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = self.maxlong = 200

    def repr_int(self, value: int, level: int) -> str:
        return (
            super().repr_int(value, level) if value.bit_length() < 2**13 else f"a number of {value.bit_length():,} bits"
        )


_SHORT = _Short()


def shown(value: object) -> str:
    """A value for a message, as Python writes it: its beginning, if it is long or holds others at great depth."""
    return _SHORT.repr(value)


_PREFIXES = ("k", "M", "G", "T", "P")
_LEAST_SHARE = 0.9
"""A unit is used from this share of it on: 0.90 GiB, but 870.40 MiB."""


def format_bytes(count: float) -> str:
    """A number of bytes with a binary unit, as in `1.15 GiB` and `12 B`."""
    for power in range(len(_PREFIXES), 0, -1):
        unit = 1024**power
        if count >= _LEAST_SHARE * unit:
            return f"{count / unit:.2f} {_PREFIXES[power - 1]}iB"
    return f"{count} B"


_MOST_SUGGESTIONS = 2
_LEAST_SIMILARITY = 0.7
"""Least similarity of a suggestion, by Ratcliff and Obershelp's measure (difflib)."""


def did_you_mean(word: str, known: Iterable[tuple[str, str]]) -> str:
    """`; did you mean A or B?`, best first; empty if no known name is similar to the word.

    `known` holds pairs: a name to compare with the word, and the suggestion for it.
    """
    names: dict[str, list[str]] = {}
    for name, suggestion in known:
        names.setdefault(name, []).append(suggestion)
    similar = get_close_matches(word, names, n=_MOST_SUGGESTIONS, cutoff=_LEAST_SIMILARITY)
    best = list(dict.fromkeys(suggestion for name in similar for suggestion in names[name]))[:_MOST_SUGGESTIONS]
    return f"; did you mean {' or '.join(best)}?" if best else ""
