"""The docstrings of a model's fields, read from its source. Pydantic would read them at every import."""

from __future__ import annotations

import ast
import inspect
import textwrap
from itertools import pairwise
from typing import Any


def field_docstrings(model: type[Any], everywhere: bool = False) -> dict[str, str]:
    """Field → docstring, for fields that have one, with the fields of base classes of this package, or `everywhere`, as
    far as there is source.
    """
    package = __name__.partition(".")[0]
    docstrings: dict[str, str] = {}
    for kind in reversed(model.__mro__[:-1]):
        if everywhere or kind.__module__.partition(".")[0] == package:
            docstrings |= _own_docstrings(kind)
    return docstrings


def _own_docstrings(model: type[Any]) -> dict[str, str]:
    try:
        (definition,) = ast.parse(textwrap.dedent(inspect.getsource(model))).body
    except (OSError, TypeError, SyntaxError):  # a class that was made at a prompt, or within other code
        return {}
    docstrings: dict[str, str] = {}
    if not isinstance(definition, ast.ClassDef):
        return docstrings
    for field, text in pairwise(definition.body):
        match field, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str() as docstring)):
                docstrings[name] = inspect.cleandoc(docstring)
    return docstrings
