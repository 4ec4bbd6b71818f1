"""Optional packages, imported when they are needed."""

from __future__ import annotations

import importlib
from types import ModuleType

from ...tasks.errors import UsageError

_EXTRA = {"igraph": "igraph", "matplotlib": "plot", "networkx": "networkx", "pandas": "pandas", "polars": "polars"}
"""Package → the extra of edgemill that brings it."""


def import_optional(module: str, what: str) -> ModuleType:
    """Import the module, which `what` needs. Raises UsageError with the name of the package and of edgemill's extra."""
    package = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ImportError as error:
        if package in _EXTRA:
            how = f"pip install 'edgemill[{_EXTRA[package]}]'"
        else:
            how = f"install {package} as its documentation says"
        raise UsageError(f"{what} needs the package {package}, which cannot be imported ({error}): {how}") from error
