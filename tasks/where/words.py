"""The tokens of a condition, with their offsets."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from ..errors import UsageError

KEYWORDS = frozenset(("and", "or", "not", "in", "is", "null", "between", "like", "true", "false", "date", "timestamp"))
_WORD = re.compile(
    r"""\s*(?:
      (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?)
    | (?P<text>'(?:[^']|'')*')
    | (?P<quoted>"(?:[^"]|"")*")
    | (?P<name>[^\W\d]\w*)
    | (?P<sign><=|>=|<>|!=|==|[=<>(),+-])
    )""",
    re.VERBOSE,
)


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
    words, at = [], 0
    while text[at:].strip():
        found = _WORD.match(text, at)
        if found is None or found.lastgroup is None:
            offset = at + len(text[at:]) - len(text[at:].lstrip())
            what = text[offset]
            if what in "'\"":
                raise refused(text, offset, f"the quote {what} is not closed")
            raise refused(text, offset, f"{what!r} is unexpected here")
        kind, word = found.lastgroup, found[found.lastgroup]
        start = found.start(kind)
        if kind == "text":
            words.append(Word("text", word[1:-1].replace("''", "'"), start))
        elif kind == "quoted":
            words.append(Word("name", word[1:-1].replace('""', '"'), start, quoted=True))
        else:
            words.append(Word(kind, word, start))  # type: ignore[arg-type]  # the names of the groups
        at = found.end()
    return [*words, Word("end", "", len(text))]


def refused(text: str, at: int, why: str) -> UsageError:
    """The error for the offset `at` of a condition."""
    return UsageError(f"input.where: {why}, at character {at + 1} of: {text}")
