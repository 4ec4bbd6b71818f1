"""On how many examples a property is tried: on all with the slow tests, on a part without them."""

from __future__ import annotations

PART = 3
LEAST = 20
_quick = False


def be_quick() -> None:
    """Take a part of the examples from now on; to be called before the modules of tests are imported."""
    global _quick
    _quick = True


def examples(most: int) -> int:
    """How many of `most` are tried."""
    return max(min(most, LEAST), most // PART) if _quick else most
