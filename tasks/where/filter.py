"""A condition with the types of the columns that it names, ready to be applied to rows and to the paths of files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from .condition import Both, Condition, Node, columns_of
from .expression import expression_of

__all__ = ["RowFilter", "cannot_match"]


@dataclass(frozen=True)
class RowFilter:
    """Which rows are wanted. Picklable."""

    condition: Condition

    types: tuple[tuple[str, pa.DataType], ...]
    """The columns that the condition names."""

    columns: tuple[str, ...]
    """Those of them that the files have; the paths of the files have the others."""

    def expression(self, constants: Mapping[str, Any]) -> pc.Expression:
        """The condition for a file whose path gives these values. Raises UsageError as `expression_of` does."""
        return expression_of(self.condition, dict(self.types), constants)


def cannot_match(condition: Condition, types: Mapping[str, pa.DataType], constants: Mapping[str, Any]) -> bool:
    """Whether no row of a file can meet the condition, by the values that its path gives alone.

    Raises UsageError for a value that does not go with the type of its column.
    """
    return _cannot(condition, condition.root, types, constants)


def _cannot(condition: Condition, node: Node, types: Mapping[str, pa.DataType], constants: Mapping[str, Any]) -> bool:
    if {column.name for column in columns_of(node)} <= constants.keys():
        wanted = expression_of(Condition(condition.text, node), types, constants)
        return bool(pa.table({"row": [0]}).filter(wanted).num_rows == 0)
    if isinstance(node, Both):
        parts: Sequence[bool] = [_cannot(condition, part, types, constants) for part in node.parts]
        return any(parts) if node.how == "and" else all(parts)
    return False
