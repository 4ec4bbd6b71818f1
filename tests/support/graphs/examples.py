"""The number of examples of a property test: all with slow tests, a part without them."""

from __future__ import annotations

PART = 5
LEAST = 12
_quick = False


def be_quick() -> None:
    """Use a part of the examples from now on. Must be called before test modules are imported."""
    global _quick
    _quick = True


def examples(most: int, least: int = LEAST) -> int:
    """The number of examples, at most `most`. Without the slow tests a part of them, but `least`; a test whose examples
    take longer than others asks for less.
    """
    return max(min(most, least), most // PART) if _quick else most
