"""What a person may have meant by a name that does not exist."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = ["did_you_mean"]

_MOST = 2
_ALIKE = 0.7
"""Share of letters that two names must have in common, in order (Ratcliff and Obershelp, as in difflib)."""


def did_you_mean(word: str, known: Iterable[tuple[str, str]]) -> str:
    """`; did you mean A or B?`, best first; empty if no known name is like the word.

    `known` are pairs of a name to compare with the word, and what to suggest for it.
    """
    names: dict[str, list[str]] = {}
    for name, meant in known:
        names.setdefault(name, []).append(meant)
    alike = get_close_matches(word, names, n=_MOST, cutoff=_ALIKE)
    best = list(dict.fromkeys(meant for name in alike for meant in names[name]))[:_MOST]
    return f"; did you mean {' or '.join(best)}?" if best else ""
