"""Imports of many modules without Python's cycle collector."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_off() -> Iterator[None]:
    """Disable the cycle collector while the block imports modules: each collection visits all objects of all modules.

    If this process has frozen objects, as the command does, those of the modules are frozen, too: later collections
    then leave them out.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if gc.get_freeze_count():
            gc.freeze()
        if enabled:
            gc.enable()
