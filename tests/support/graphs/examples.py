"""The number of examples of a property test: all with slow tests, a part without them."""

from __future__ import annotations

PART = 3
LEAST = 20
_quick = False


def be_quick() -> None:
    """Use a part of the examples from now on. Must be called before test modules are imported."""
    global _quick
    _quick = True


def examples(most: int) -> int:
    """The number of examples, at most `most`."""
    return max(min(most, LEAST), most // PART) if _quick else most
