"""The record of the manifest of a result that was made from an earlier one."""

from __future__ import annotations

from typing import Literal

from .records import Record


class UpdateRecord(Record):
    """From which result, by which changes, and how a result was brought up to date."""

    base: str
    """Folder or URL of the earlier result."""
    base_run: str
    full_run: str
    """The last run of the chain that found λ of all edges from nothing."""
    nights: int
    """Updates since `full_run`; 0 if this run found λ from nothing."""
    way: Literal["changes", "whole"]
    """Whether λ was found from the changes, or from nothing."""
    reason: str
    """Why it went this way."""
    inserted: int
    """Edges that the earlier result lacks."""
    deleted: int
    """Edges of the earlier result that are gone."""
    present: int = 0
    """Edges to insert that the earlier result has already; 0 for a whole input."""
    absent: int = 0
    """Edges to delete that the earlier result lacks; 0 for a whole input."""
    in_both: int = 0
    """Edges to delete and to insert, which are in the result; 0 for a whole input."""
    repeated: int = 0
    """Rows of the batch after the first of an edge; 0 for a whole input."""
    vertices_new: int
    vertices_gone: int
    changed: int | None = None
    """Edges of both results whose λ differs; null if λ was found from nothing."""
    triangles: int = 0
    """Triangles that the update looked at, also if it was given up."""
    expected: int | None = None
    """Work in triangles that samples of the changed edges told of before; null if none was replayed."""
    files_kept: int = 0
    """Files that are those of the earlier result."""
