"""Suggestions for an unknown name."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_MOST_SUGGESTIONS = 2
_LEAST_SIMILARITY = 0.7
"""Least similarity of a suggestion, by Ratcliff and Obershelp's measure (difflib)."""


def did_you_mean(word: str, known: Iterable[tuple[str, str]]) -> str:
    """`; did you mean A or B?`, best first; empty if no known name is similar to the word.

    `known` holds pairs: a name to compare with the word, and the suggestion for it.
    """
    names: dict[str, list[str]] = {}
    for name, suggestion in known:
        names.setdefault(name, []).append(suggestion)
    similar = get_close_matches(word, names, n=_MOST_SUGGESTIONS, cutoff=_LEAST_SIMILARITY)
    best = list(dict.fromkeys(suggestion for name in similar for suggestion in names[name]))[:_MOST_SUGGESTIONS]
    return f"; did you mean {' or '.join(best)}?" if best else ""
