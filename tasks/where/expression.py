"""Convert a condition's tree to an Arrow expression over columns of known types, and select rows and files with it.

As in SQL, a comparison with null is neither true nor false, and such a row is not selected.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import UsageError, clipped
from .condition import (
    FEW_VALUES,
    MAX_COMPARISONS,
    Both,
    ColumnName,
    Compared,
    Condition,
    Constant,
    IsNull,
    Like,
    Node,
    Not,
    Operator,
    Truth,
    columns_of,
    refused,
)

_APPLY: Mapping[Operator, Callable[[Any, Any], Any]] = {
    "=": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}
_MIRRORED: Mapping[Operator, Operator] = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def expression_of(
    condition: Condition, types: Mapping[str, pa.DataType], constants: Mapping[str, Any] | None = None
) -> pc.Expression:
    """The condition as an expression; `types` are those of the columns, `constants` the values of some of them.

    Raises UsageError for an unknown column, and for a value that does not fit the type of its column.
    """
    return _Builder(condition.text, types, constants or {}).node(condition.root)


class _Builder:
    def __init__(self, text: str, types: Mapping[str, pa.DataType], constants: Mapping[str, Any]) -> None:
        self._text = text
        self._types = types
        self._constants = constants
        self._comparisons = 0

    def node(self, node: Node) -> pc.Expression:
        """The expression of a part of the tree."""
        match node:
            case Both("or", parts) if len(parts) > FEW_VALUES and self._can_look_up(parts):
                return self._looked_up(parts)
            case Both(how, parts):
                made = [self.node(part) for part in parts]
                return _balanced(made, (lambda a, b: a & b) if how == "and" else (lambda a, b: a | b))
            case Not(inner):
                return ~self.node(inner)
            case IsNull(column):
                return self._field(column).is_null()
            case Like(column, pattern):
                if not _is_text(self._type(column)):
                    raise self._refused(column.at, f"{column.name} is {self._type(column)}, but like applies to text")
                return pc.match_like(self._field(column), str(pattern.value))
            case Truth(column):
                if not pa.types.is_boolean(self._type(column)):
                    raise self._refused(
                        column.at, f"{column.name} is {self._type(column)}: compare it, as in {column.name} > 0"
                    )
                return self._field(column)
            case Compared():
                return self._compared(node)

    def _compared(self, node: Compared) -> pc.Expression:
        self._comparisons += 1
        if self._comparisons > MAX_COMPARISONS:
            raise self._refused(node.at, f"the condition has more than {MAX_COMPARISONS:,} comparisons")
        left, operator, right = node.left, node.operator, node.right
        if isinstance(left, Constant):
            if isinstance(right, Constant):
                raise self._refused(left.at, "neither side of the comparison is a column")
            left, operator, right = right, _MIRRORED[operator], left
        if isinstance(right, ColumnName):
            kinds = self._type(left), self._type(right)
            if kinds[0] != kinds[1] and not all(map(_is_number, kinds)) and not all(map(_is_text, kinds)):
                raise self._refused(
                    node.at, f"{left.name} is {kinds[0]} and {right.name} is {kinds[1]}: they cannot be compared"
                )
            return _APPLY[operator](self._field(left), self._field(right))
        operator, value = self._value(left, operator, right)
        return _APPLY[operator](self._field(left), pc.scalar(value))

    def _can_look_up(self, parts: Sequence[Node]) -> bool:
        """Whether these are comparisons of one column with values that Arrow finds in a table of them."""
        first = parts[0].left if isinstance(parts[0], Compared) else None
        if not isinstance(first, ColumnName) or not _is_looked_up(self._type(first)):
            return False
        return all(
            isinstance(part, Compared)
            and part.operator == "="
            and isinstance(part.left, ColumnName)
            and part.left.name == first.name
            and isinstance(part.right, Constant)
            for part in parts
        )

    def _looked_up(self, parts: Sequence[Any]) -> pc.Expression:
        """Whether a column has one of many values: null for null, as a comparison. Arrow compares their bounds with the
        statistics of row groups.
        """
        column = parts[0].left
        values = pa.array([self._value(column, "=", part.right)[1] for part in parts])
        bounds, field = pc.min_max(values), self._field(column)
        found = pc.is_in(field, value_set=values) | (field > field)  # the latter is null for null, else false
        return found & (field >= bounds["min"]) & (field <= bounds["max"])

    def _field(self, column: ColumnName) -> pc.Expression:
        kind = self._type(column)
        if column.name in self._constants:
            return pc.scalar(pa.scalar(self._constants[column.name], kind))
        return pc.field(column.name)

    def _type(self, column: ColumnName) -> pa.DataType:
        if column.name not in self._types:
            known = ", ".join(self._types)
            hint = "; text needs single quotes" if self._text[column.at : column.at + 1] == '"' else ""
            raise self._refused(column.at, f"the input has no column {column.name!r}; it has {known}{hint}")
        kind = self._types[column.name]
        return kind.value_type if pa.types.is_dictionary(kind) else kind

    def _value(self, column: ColumnName, operator: Operator, literal: Constant) -> tuple[Operator, pa.Scalar]:
        """The operator and scalar for a comparison of a column with a literal."""
        kind, value = self._type(column), literal.value
        if isinstance(value, Decimal) and pa.types.is_integer(kind):
            if value != int(value) and operator in ("=", "!="):
                raise self._refused(literal.at, f"{column.name} is {kind}, which {value} never equals")
            if operator in ("<=", ">") or value == int(value):
                value = int(value.to_integral_value(ROUND_FLOOR))
            else:
                value = int(value.to_integral_value(ROUND_CEILING))
        try:
            return operator, _scalar(value, kind)
        except (TypeError, ValueError, OverflowError, pa.ArrowException) as error:
            written = literal.value
            shown = f"'{clipped(written)}'" if isinstance(written, str) else clipped(str(written).lower())
            raise self._refused(
                literal.at, f"{column.name} is {kind}, and {shown} is not a value of that type"
            ) from error

    def _refused(self, at: int, why: str) -> UsageError:
        return refused(self._text, at, why)


def _scalar(value: int | Decimal | str | bool, kind: pa.DataType) -> pa.Scalar:
    """A literal as a scalar. Raises TypeError, ValueError, OverflowError or ArrowException if it is not of the type."""
    is_number = isinstance(value, int | Decimal) and not isinstance(value, bool)
    if pa.types.is_boolean(kind) and isinstance(value, bool):
        return pa.scalar(value, kind)
    if pa.types.is_integer(kind) and isinstance(value, int) and is_number:
        return pa.scalar(value, kind)
    if pa.types.is_floating(kind) and is_number:
        return pa.scalar(_float(value), pa.float64())
    if pa.types.is_decimal(kind) and is_number:
        return pa.scalar(Decimal(value))
    if not isinstance(value, str):
        raise TypeError(value)
    if _is_text(kind):
        return pa.scalar(value, pa.string() if pa.types.is_string_view(kind) else kind)
    if pa.types.is_date(kind):
        return pa.scalar(datetime.date.fromisoformat(value), kind)
    if pa.types.is_timestamp(kind):
        return _timestamp(value, kind)
    if pa.types.is_time(kind):
        return _time(value, kind)
    if _is_uuid(kind):
        return pa.scalar(bytes.fromhex(value.replace("-", "")), pa.binary(16))
    raise TypeError(value)


def _float(value: int | Decimal | str) -> float:
    """The nearest number of 64 bits. Raises OverflowError for one that is too large or too small for it."""
    found = float(value)
    if math.isinf(found) or (value and not found):
        raise OverflowError(value)
    return found


def _is_looked_up(kind: pa.DataType) -> bool:
    """Whether equal values of a type have equal bytes, and bounds."""
    tests = pa.types.is_integer, pa.types.is_string, pa.types.is_large_string, pa.types.is_date, pa.types.is_timestamp
    return any(test(kind) for test in tests)


def _exact(scalar: pa.Scalar, value: Any) -> pa.Scalar:
    """The scalar. Raises ValueError if its type cannot hold the value exactly."""
    if scalar.as_py() != value:
        raise ValueError(f"{value} is more precise than {scalar.type}")
    return scalar


def _timestamp(text: str, kind: pa.DataType) -> pa.Scalar:
    """A timestamp. Without an offset it is in UTC if the column has a time zone."""
    when = datetime.datetime.fromisoformat(_whole_microseconds(text))
    if kind.tz is None:
        if when.tzinfo is not None:
            raise ValueError("the column has no time zone")
        return _exact(pa.scalar(when, kind), when)
    when = when if when.tzinfo is not None else when.replace(tzinfo=datetime.UTC)
    return _exact(pa.scalar(when, kind), when)


def _time(text: str, kind: pa.DataType) -> pa.Scalar:
    when = datetime.time.fromisoformat(_whole_microseconds(text))
    if when.tzinfo is not None:
        raise ValueError("times have no time zone")
    return _exact(pa.scalar(when, kind), when)


def _whole_microseconds(text: str) -> str:
    """The text of a time. Raises ValueError if it has more digits than Python keeps."""
    if re.search(r"\.[0-9]{7}", text):
        raise ValueError("it has more than 6 digits of a second")
    return text


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _is_uuid(kind: pa.DataType) -> bool:
    return bool(pa.types.is_fixed_size_binary(kind) and kind.byte_width == 16)


def _balanced(parts: list[Any], join: Callable[[Any, Any], Any]) -> Any:
    """All parts joined, as a balanced tree: Arrow traverses it by recursion."""
    while len(parts) > 1:
        parts = [reduce(join, parts[at : at + 2]) for at in range(0, len(parts), 2)]
    return parts[0]


@dataclass(frozen=True)
class RowFilter:
    """Selects rows. Picklable."""

    condition: Condition

    types: tuple[tuple[str, pa.DataType], ...]
    """Columns of the condition and their types."""

    columns: tuple[str, ...]
    """Columns of the condition that are in the files; the values of the others are in their paths."""

    def expression(self, constants: Mapping[str, Any]) -> pc.Expression:
        """The condition for a file with these values in its path. Raises UsageError as `expression_of` does."""
        return expression_of(self.condition, dict(self.types), constants)


def cannot_match(condition: Condition, types: Mapping[str, pa.DataType], constants: Mapping[str, Any]) -> bool:
    """Whether the values in a file's path exclude that any of its rows matches the condition.

    Raises UsageError for a value that does not fit the type of its column.
    """
    return _cannot(condition, condition.root, types, constants)


def _cannot(condition: Condition, node: Node, types: Mapping[str, pa.DataType], constants: Mapping[str, Any]) -> bool:
    if {column.name for column in columns_of(node)} <= constants.keys():
        expression = expression_of(Condition(condition.text, node), types, constants)
        return bool(pa.table({"row": [0]}).filter(expression).num_rows == 0)
    if isinstance(node, Both):
        parts: Sequence[bool] = [_cannot(condition, part, types, constants) for part in node.parts]
        return any(parts) if node.how == "and" else all(parts)
    return False
