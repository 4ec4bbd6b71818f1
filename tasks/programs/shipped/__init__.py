"""The vertex programs of edgemill: a module is a program, whose name in the settings is that of the module.

The public subclass of `Program`, `SourceProgram` or `EdgeProgram` in it declares everything. Start with `components`,
the shortest. May import what a program needs of `programs`, kernels, NumPy, and `Field` of pydantic for the limits of
parameters.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import Any


def __getattr__(name: str) -> Any:
    """The class of a program by its name, such as `StrongComponents`."""
    if not name.startswith("_"):
        for module in iter_modules(__path__):
            found = getattr(import_module(f"{__name__}.{module.name}"), name, None)
            if getattr(found, "__module__", "") == f"{__name__}.{module.name}":
                return found
    raise AttributeError(f"module {__name__!r} has no program {name!r}")
