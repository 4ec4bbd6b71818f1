"""Makes `import benchmarks` find the project's folder of that name, which is not installed, and not this one."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

_FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"

_spec = importlib.util.spec_from_file_location(
    "benchmarks", _FOLDER / "__init__.py", submodule_search_locations=[str(_FOLDER)]
)
assert _spec is not None and _spec.loader is not None
sys.modules["benchmarks"] = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(sys.modules["benchmarks"])
