"""What the fields of a model mean: the docstrings below them, which pydantic would read at each import of the model."""

from __future__ import annotations

import ast
import inspect
from itertools import pairwise
from typing import Any

__all__ = ["meanings"]


def meanings(model: type[Any]) -> dict[str, str]:
    """Field → its docstring, of those that have one."""
    (made,) = ast.parse(inspect.getsource(model)).body
    assert isinstance(made, ast.ClassDef)
    found = {}
    for field, text in pairwise(made.body):
        match field, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str() as meaning)):
                found[name] = inspect.cleandoc(meaning)
    return found
