"""The tokens of a condition, with their offsets."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from ..errors import UsageError

KEYWORDS = frozenset(("and", "or", "not", "in", "is", "null", "between", "like", "true", "false", "date", "timestamp"))
_WORD = re.compile(
    r"""
      (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)
    | (?P<text>'[^']*(?:''[^']*)*')
    | (?P<quoted>"[^"]*(?:""[^"]*)*")
    | (?P<name>[^\W\d]\w*)
    | (?P<sign><=|>=|<>|!=|==|[=<>(),+-])
    """,
    re.VERBOSE,
)
_BLANKS = re.compile(r"\s*")
_MAX_CHARACTERS = 1_000_000
_MAX_SHOWN = 200
"""Characters of a condition that a message shows."""
_MAX_WORD = 60
"""Characters of a word that a message shows."""


@dataclass(frozen=True)
class Word:
    """One token of a condition."""

    kind: Literal["number", "text", "name", "sign", "end"]
    text: str
    """Its text; names and strings without quotes."""
    at: int
    """Offset of its first character, from 0."""
    quoted: bool = False

    @property
    def keyword(self) -> str:
        """The keyword in lower case; "" if the token is not one of KEYWORDS."""
        lower = self.text.lower()
        return lower if self.kind == "name" and not self.quoted and lower in KEYWORDS else ""


def words_of(text: str) -> list[Word]:
    """The tokens, and an end token. Raises UsageError with the offset of an invalid character."""
    if len(text) > _MAX_CHARACTERS:
        raise refused(text, _MAX_CHARACTERS, f"the condition has more than {_MAX_CHARACTERS:,} characters")
    words, at = [], _blanks(text, 0)
    while at < len(text):
        found = _WORD.match(text, at)
        if found is None or found.lastgroup is None:
            if text[at] in "'\"":
                raise refused(text, at, f"the quote {text[at]} is not closed")
            raise refused(text, at, f"{text[at]!r} is unexpected here")
        kind, word = found.lastgroup, found[found.lastgroup]
        if kind == "text":
            words.append(Word("text", word[1:-1].replace("''", "'"), at))
        elif kind == "quoted":
            words.append(Word("name", word[1:-1].replace('""', '"'), at, quoted=True))
        else:
            words.append(Word(kind, word, at))  # type: ignore[arg-type]  # the names of the groups
        at = _blanks(text, found.end())
    return [*words, Word("end", "", len(text))]


def _blanks(text: str, at: int) -> int:
    """The offset of the first character from `at` on that is no blank."""
    found = _BLANKS.match(text, at)
    return at if found is None else found.end()


def refused(text: str, at: int, why: str) -> UsageError:
    """The error for the offset `at` of a condition. The message has the part of a long one around it."""
    start = max(0, min(at - _MAX_SHOWN // 2, len(text) - _MAX_SHOWN))
    shown = text[start : start + _MAX_SHOWN]
    before, after = "…" if start else "", "…" if start + _MAX_SHOWN < len(text) else ""
    return UsageError(f"input.where: {why}, at character {at + 1} of: {before}{shown}{after}")


def clipped(text: str) -> str:
    """A word or a value for a message."""
    return text if len(text) <= _MAX_WORD else f"{text[:_MAX_WORD]}…"
