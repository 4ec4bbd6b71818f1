"""The folders for compiled kernels, of the user and of the environment. Does not load Numba."""

from __future__ import annotations

import hashlib
import os
import sys
from functools import lru_cache
from pathlib import Path

KERNELS = Path(__file__).resolve().parent.parent
"""The folder of the kernels' sources."""


def home() -> Path:
    """The user's folder, which has a folder for each hash of the sources; see `cache`. It may not exist yet.

    Raises RuntimeError if neither the environment nor the system names a home folder.
    """
    if chosen := os.environ.get("EDGEMILL_CACHE_DIR"):
        project = Path(chosen).expanduser().absolute()
    elif shared := os.environ.get("XDG_CACHE_HOME"):
        project = Path(shared).absolute() / "edgemill"
    else:
        project = Path.home() / ".cache" / "edgemill"
    return project / "kernels"


def environment() -> Path:
    """As `home`, for kernels that were compiled into this environment, which are read first. It may not exist."""
    return Path(sys.prefix) / "share" / "edgemill" / "kernels"


@lru_cache(maxsize=1)
def sources() -> str:
    """The hash of the kernels' sources in Python: 32 hexadecimal digits."""
    whole = hashlib.sha256()
    for source in sorted(KERNELS.rglob("*.py"), key=lambda path: path.relative_to(KERNELS).as_posix()):
        text = source.read_bytes()
        whole.update(f"{source.relative_to(KERNELS).as_posix()} {len(text)}\n".encode() + text)
    return whole.hexdigest()[:32]
