"""Parse a condition on rows: its tokens, with their offsets in the text, and its syntax tree.

The tree has comparisons, `in`, `between`, `like`, `is null`, and, or, not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from decimal import Decimal
from typing import Literal, TypeAlias

from ..errors import UsageError, clipped

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


Operator = Literal["=", "!=", "<", "<=", ">", ">="]

_OPERATORS: dict[str, Operator] = {
    "=": "=",
    "==": "=",
    "!=": "!=",
    "<>": "!=",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
}
_MAX_DEPTH = 100
"""Nested parentheses and `not`."""
_MAX_VALUES = 10_000
"""Values in all lists together."""
FEW_VALUES = 16
"""Values of a list that are compared one by one. Arrow looks the values of a longer list up."""
MAX_COMPARISONS = 1_000
"""Comparisons of one condition; a list with more than FEW_VALUES is one. Arrow ends the process at some thousands."""
_MAX_DIGITS = 100
"""Characters of a number. Decimals of Arrow have up to 76 digits."""
_MAX_PATTERN = 1_000
"""Characters of the text of like. Arrow refuses some of 10,000 when it evaluates them."""
_MAX_EXPONENT = 400
"""Power of ten of a number. Those of float64 are from -324 to 308."""


@dataclass(frozen=True)
class ColumnName:
    """A column name, and its offset in the text."""

    name: str
    at: int


@dataclass(frozen=True)
class Constant:
    """A literal, and its offset in the text."""

    value: int | Decimal | str | bool
    at: int


Operand: TypeAlias = ColumnName | Constant


@dataclass(frozen=True)
class Compared:
    """left operator right"""

    left: Operand
    operator: Operator
    right: Operand
    at: int


@dataclass(frozen=True)
class IsNull:
    """column is null"""

    column: ColumnName


@dataclass(frozen=True)
class Like:
    """column like pattern"""

    column: ColumnName
    pattern: Constant


@dataclass(frozen=True)
class Truth:
    """A boolean column as a condition."""

    column: ColumnName


@dataclass(frozen=True)
class Not:
    """not inner"""

    inner: Node


@dataclass(frozen=True)
class Both:
    """The conjunction or disjunction of the parts."""

    how: Literal["and", "or"]
    parts: tuple[Node, ...]


Node: TypeAlias = Compared | IsNull | Like | Truth | Not | Both


@dataclass(frozen=True)
class Condition:
    """A parsed condition. Picklable."""

    text: str
    """As the user wrote it."""
    root: Node

    @property
    def columns(self) -> tuple[ColumnName, ...]:
        """The columns in it, without duplicates, in the order of their first use."""
        first: dict[str, ColumnName] = {}
        for column in sorted(columns_of(self.root), key=lambda column: column.at):
            first.setdefault(column.name, column)
        return tuple(first.values())


def parse_where(text: str) -> Condition:
    """Parse a condition. Raises UsageError with the offset of the error."""
    if not text.strip():
        raise UsageError("input.where is empty: leave it out, or use a condition such as weight > 0.5")
    return Condition(text, _Parser(text).parse())


def columns_of(node: object) -> Iterator[ColumnName]:
    """The columns in a part of a condition, with duplicates."""
    if isinstance(node, ColumnName):
        yield node
    elif isinstance(node, tuple):
        for part in node:
            yield from columns_of(part)
    elif isinstance(node, Compared | IsNull | Like | Truth | Not | Both):
        for field in fields(node):
            yield from columns_of(getattr(node, field.name))


class _Parser:
    """A recursive descent parser: or → and → not → predicate."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._words = words_of(text)
        self._next = 0
        self._depth = 0
        self._comparisons = 0
        self._listed = 0

    def parse(self) -> Node:
        """The tree of all tokens."""
        root = self._any()
        word = self._word
        if word.kind != "end":
            raise self._refused(word, f"{clipped(word.text)!r} is unexpected")
        return root

    @property
    def _word(self) -> Word:
        return self._words[self._next]

    def _take(self) -> Word:
        word = self._word
        self._next += word.kind != "end"
        return word

    def _takes(self, *expected: str) -> bool:
        """Skip these keywords or signs if they are next; returns whether they were."""
        for number, one in enumerate(expected):
            word = self._words[min(self._next + number, len(self._words) - 1)]
            if word.keyword != one and not (word.kind == "sign" and word.text == one):
                return False
        self._next += len(expected)
        return True

    def _expect(self, expected: str, after: str) -> None:
        if not self._takes(expected):
            raise self._refused(self._word, f"{expected!r} is missing after {after}")

    def _refused(self, word: Word, why: str) -> UsageError:
        return refused(self._text, word.at, why)

    def _any(self) -> Node:
        parts = [self._all()]
        while self._takes("or"):
            parts.append(self._all())
        return parts[0] if len(parts) == 1 else Both("or", tuple(parts))

    def _all(self) -> Node:
        parts = [self._not()]
        while self._takes("and"):
            parts.append(self._not())
        return parts[0] if len(parts) == 1 else Both("and", tuple(parts))

    def _not(self) -> Node:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise self._refused(self._word, f"parentheses and not are nested deeper than {_MAX_DEPTH}")
        try:
            if self._takes("not"):
                return Not(self._not())
            if self._takes("("):
                inner = self._any()
                self._expect(")", "the condition in parentheses")
                return inner
            return self._predicate()
        finally:
            self._depth -= 1

    def _predicate(self) -> Node:
        start = self._word
        self._count(1)
        left = self._operand()
        operator = _OPERATORS.get(self._word.text) if self._word.kind == "sign" else None
        if operator is not None:
            at = self._take().at
            return Compared(left, operator, self._operand(), at)
        if self._takes("is"):
            negated = self._takes("not")
            self._expect("null", "is")
            return _negated(IsNull(self._column(left, start)), negated)
        at, negated = self._word.at, self._takes("not")
        if self._takes("between"):
            low = self._operand()
            self._expect("and", "the first value of between")
            between = Both("and", (Compared(left, ">=", low, at), Compared(left, "<=", self._operand(), at)))
            return _negated(between, negated)
        if self._takes("in"):
            return _negated(Both("or", tuple(Compared(left, "=", value, at) for value in self._list())), negated)
        if self._takes("like"):
            word, pattern = self._word, self._operand()
            if not isinstance(pattern, Constant) or not isinstance(pattern.value, str):
                raise self._refused(word, "like needs a text in single quotes")
            if len(pattern.value) > _MAX_PATTERN:
                raise self._refused(word, f"the text of like has more than {_MAX_PATTERN:,} characters")
            return _negated(Like(self._column(left, start), pattern), negated)
        if isinstance(left, ColumnName) and not negated:
            return Truth(left)
        raise self._refused(self._word, "a comparison is missing: =, <, in, between, like or is null")

    def _list(self) -> list[Operand]:
        self._expect("(", "in")
        values = [self._operand()]
        while self._takes(","):
            values.append(self._operand())
            if self._listed + len(values) > _MAX_VALUES:
                raise self._refused(self._word, f"lists have more than {_MAX_VALUES:,} values")
        self._listed += len(values)
        self._expect(")", "the list of in")
        if len(values) <= FEW_VALUES or any(isinstance(value, ColumnName) for value in values):
            self._count(len(values) - 1)
        return values

    def _count(self, comparisons: int) -> None:
        self._comparisons += comparisons
        if self._comparisons > MAX_COMPARISONS:
            raise self._refused(
                self._word,
                f"the condition has more than {MAX_COMPARISONS:,} comparisons; compare a column with many values by "
                "one list: in (…)",
            )

    def _column(self, operand: Operand, word: Word) -> ColumnName:
        if isinstance(operand, ColumnName):
            return operand
        raise self._refused(word, "a column name is expected here")

    def _operand(self) -> Operand:
        word = self._take()
        if word.kind == "sign" and word.text in ("-", "+"):
            number = self._take()
            if number.kind != "number":
                raise self._refused(number, f"a number is missing after {word.text}")
            value = self._number(number)
            return Constant(-value if word.text == "-" else value, word.at)
        if word.kind == "number":
            return Constant(self._number(word), word.at)
        if word.kind == "text":
            return Constant(word.text, word.at)
        if word.keyword in ("true", "false"):
            return Constant(word.keyword == "true", word.at)
        if word.keyword in ("date", "timestamp"):
            if self._word.kind == "text":  # DATE '2026-11-01'
                return Constant(self._take().text, word.at)
            return ColumnName(word.text, word.at)
        if word.keyword == "null":
            raise self._refused(word, "null equals nothing: write is null or is not null")
        if word.kind == "name" and not word.keyword:
            return ColumnName(word.text, word.at)
        if word.kind == "end":
            raise self._refused(word, "the condition ends here, and a column or a value is missing")
        raise self._refused(word, f"a column or a value is expected instead of {clipped(word.text)!r}")

    def _number(self, word: Word) -> int | Decimal:
        if len(word.text) > _MAX_DIGITS:
            raise self._refused(word, f"a number has more than {_MAX_DIGITS} characters")
        if word.text.isdecimal():
            return int(word.text)
        exponent = word.text.lower().partition("e")[2]
        if exponent and abs(int(exponent)) > _MAX_EXPONENT:
            raise self._refused(
                word, f"{clipped(word.text)} has an exponent that is not from -{_MAX_EXPONENT} to {_MAX_EXPONENT}"
            )
        return Decimal(word.text)


def _negated(node: Node, negated: bool) -> Node:
    return Not(node) if negated else node
