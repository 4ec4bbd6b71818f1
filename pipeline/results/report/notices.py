"""Notices at the top of the page: dropped rows, graphs without triangles, assumptions about the input."""

from __future__ import annotations

from ...output.manifest import Counts, Manifest
from .parts import clipped, counted, number, share

MOST_OF_A_NOTE = 1000
"""Characters. A note ends with advice, after names of columns and files."""


def notices(manifest: Manifest) -> list[str]:
    """Sentences, most important first. Empty if every row became an edge and the graph has triangles."""
    counts = manifest.counts
    return [*_triangles(counts), *_dropped(counts), *(f"{note[:1].upper()}{note[1:]}." for note in _notes(manifest))]


def _notes(manifest: Manifest) -> list[str]:
    """The manifest's notes about the input, without the note about missing triangles, which `_triangles` covers."""
    return [
        clipped(note, MOST_OF_A_NOTE)
        for note in manifest.input.notes
        if not note.startswith("no edge is in a triangle")
    ]


def _triangles(counts: Counts) -> list[str]:
    if counts.triangles != 0:
        return []
    if not counts.edges:
        return ["The graph has no edges, so it has no dense groups."]
    return [
        "The graph has no triangle, so λ of every edge is 0 and there are no dense groups. "
        "Does each row link two kinds of things, such as people and films? Then no row links two things of the same "
        "kind, and no triangle can exist. Link people who share a film, and run again."
    ]


def _dropped(counts: Counts) -> list[str]:
    kinds = {
        ("repeats an edge, in either direction", "repeat an edge, in either direction"): counts.duplicates,
        ("links a vertex to itself", "link a vertex to itself"): counts.self_loops,
        ("has a null in place of an id", "have a null in place of an id"): counts.nulls_dropped,
        ("does not meet the condition", "do not meet the condition"): counts.filtered,
    }
    found = [f"{number(count)} {one if count == 1 else more}" for (one, more), count in kinds.items() if count]
    if not found:
        return []
    dropped = counts.rows - counts.edges
    of = f"{counted(dropped, 'row')} of {number(counts.rows)} ({share(dropped, counts.rows)})"
    return [f"{of} {'was' if dropped == 1 else 'were'} not used: {'; '.join(found)}."]
