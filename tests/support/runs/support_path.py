"""Where the modules of tests/support are, for subprocesses that import them."""

from __future__ import annotations

import os
from pathlib import Path

SUPPORT = sorted(folder for folder in Path(__file__).resolve().parents[1].iterdir() if folder.name != "__pycache__")
"""The folders that pytest puts on the path (pyproject.toml)."""
SUPPORT_PATH = os.pathsep.join(map(str, SUPPORT))
"""The same as a value for PYTHONPATH."""
