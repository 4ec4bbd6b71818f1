"""Numbers of bytes in messages."""

from __future__ import annotations

_PREFIXES = ("k", "M", "G", "T", "P")
_LEAST_SHARE = 0.9
"""A unit is used from this share of it on: 0.90 GiB, but 870.40 MiB."""


def format_bytes(count: float) -> str:
    """A number of bytes with a binary unit, as in `1.15 GiB` and `12 B`."""
    for power in range(len(_PREFIXES), 0, -1):
        unit = 1024**power
        if count >= _LEAST_SHARE * unit:
            return f"{count / unit:.2f} {_PREFIXES[power - 1]}iB"
    return f"{count} B"
