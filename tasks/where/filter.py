"""A condition with the types of its columns, to select rows and files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from .condition import Both, Condition, Node, columns_of
from .expression import expression_of


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
