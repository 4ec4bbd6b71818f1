"""The words of a condition, each with its place."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from ..errors import UsageError

__all__ = ["KEYWORDS", "Word", "refused", "words_of"]

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
    """One word of a condition."""

    kind: Literal["number", "text", "name", "sign", "end"]
    text: str
    """A name or a text without its quotes."""
    at: int
    """Where it begins, counted from 0."""
    quoted: bool = False

    @property
    def keyword(self) -> str:
        """In small letters, what may be one of KEYWORDS; "" if it is none."""
        small = self.text.lower()
        return small if self.kind == "name" and not self.quoted and small in KEYWORDS else ""


def words_of(text: str) -> list[Word]:
    """The words, and an end. Raises UsageError with the place of what is none."""
    words, at = [], 0
    while text[at:].strip():
        found = _WORD.match(text, at)
        if found is None or found.lastgroup is None:
            place = at + len(text[at:]) - len(text[at:].lstrip())
            what = text[place]
            if what in "'\"":
                raise refused(text, place, f"the quote {what} has no end")
            raise refused(text, place, f"{what!r} has no meaning here")
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
    """What to raise about the place `at` of a condition."""
    return UsageError(f"input.where: {why}, at character {at + 1} of: {text}")
