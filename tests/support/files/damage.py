"""Damage to files, in all ways that tests/faults uses."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

Span = tuple[int, int]
"""First byte, and the byte after the last."""

DAMAGES = ("bit flip", "64-byte burst", "4 KB zeroed", "truncation")


def damaged(content: bytes, spans: Sequence[Span], times: int, seed: int) -> Iterator[tuple[str, bytes]]:
    """Each kind of damage in turn, at a random offset of each span in turn; every damage changes the file."""
    drawn = random.Random(seed)
    tried = 0
    while tried < times:
        kind = DAMAGES[tried % len(DAMAGES)]
        span = spans[tried // len(DAMAGES) % len(spans)]
        changed = _change(content, kind, drawn.randrange(*span), drawn)
        if changed != content:
            yield kind, changed
            tried += 1


def _change(content: bytes, kind: str, at: int, drawn: random.Random) -> bytes:
    if kind == "truncation":
        return content[:at]
    length = {"bit flip": 1, "64-byte burst": 64, "4 KB zeroed": 4096}[kind]
    old = content[at : at + length]
    new = {
        "bit flip": bytes([old[0] ^ 1 << drawn.randrange(8)]),
        "64-byte burst": drawn.randbytes(len(old)),
        "4 KB zeroed": bytes(len(old)),
    }[kind]
    return content[:at] + new + content[at + length :]
