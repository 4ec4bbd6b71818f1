"""The vertex programs of edgemill: a module is a program, whose name in the settings is that of the module.

The public subclass of `Program`, `SourceProgram` or `EdgeProgram` in it declares everything. Start with `components`,
the shortest. May import what a program needs of `programs`, kernels, NumPy, `Field` of pydantic for the limits of
parameters, and the program's check from `verify.program_checks`.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import Any


def shipped_class(name: str) -> type[Any] | None:
    """The class of a program by its name in the settings; None if it is no program of edgemill."""
    from .. import EdgeProgram, Program, SourceProgram

    if not any(module.name == name for module in iter_modules(__path__)):
        return None
    module = import_module(f"{__name__}.{name}")
    (kind,) = (
        one
        for key, one in vars(module).items()
        if isinstance(one, type)
        and one.__module__ == module.__name__
        and not key.startswith("_")
        and issubclass(one, Program | SourceProgram | EdgeProgram)
    )
    return kind


def __getattr__(name: str) -> Any:
    """The class of a program by its name, such as `StrongComponents`."""
    if not name.startswith("_"):
        for module in iter_modules(__path__):
            found = getattr(import_module(f"{__name__}.{module.name}"), name, None)
            if getattr(found, "__module__", "") == f"{__name__}.{module.name}":
                return found
    raise AttributeError(f"module {__name__!r} has no program {name!r}")
