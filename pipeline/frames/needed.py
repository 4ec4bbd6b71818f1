"""Optional packages, imported when they are needed."""

from __future__ import annotations

import importlib
from types import ModuleType

from ...tasks.errors import UsageError

__all__ = ["needed"]

_EXTRA = {"igraph": "igraph", "networkx": "networkx", "pandas": "pandas", "polars": "polars"}
"""Package → the extra of edgemill that brings it."""


def needed(module: str, what: str) -> ModuleType:
    """The module, which `what` needs. Raises UsageError that names the package and the extra if it is not installed."""
    package = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ImportError as error:
        if package in _EXTRA:
            how = f"pip install 'edgemill[{_EXTRA[package]}]'"
        else:
            how = f"install {package} as its own pages say"
        raise UsageError(f"{what} needs the package {package}, which cannot be imported ({error}): {how}") from error
