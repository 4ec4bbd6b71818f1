"""Answers `gc.get_freeze_count` without a walk through all frozen objects each time.

A process of tests freezes more than a million objects (conftest.py). Python counts them one by one whenever it is
asked, which takes a tenth of a second, and each command or update that a test runs within its process asks.
"""

from __future__ import annotations

import gc


def count_frozen_once() -> None:
    """From now on, `gc.get_freeze_count` remembers a count that is not 0 until all objects are unfrozen.

    The count may be out of date then; that it is not 0 never is.
    """
    count, unfreeze, known = gc.get_freeze_count, gc.unfreeze, [0]

    def counted() -> int:
        known[0] = known[0] or count()
        return known[0]

    def unfrozen() -> None:
        known[0] = 0
        unfreeze()

    for name, replacement in (("get_freeze_count", counted), ("unfreeze", unfrozen)):
        setattr(gc, name, replacement)
