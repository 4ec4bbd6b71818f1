"""All-gather of short texts over a carrier."""

from __future__ import annotations

import numpy as np

from .carrier import Carrier, Words

EMPTY: Words = np.empty(0, np.uint32)


def all_gather(carrier: Carrier, text: bytes) -> list[bytes]:
    """[groups] the texts of all groups, by rank; takes one exchange."""
    padded = text + bytes(-len(text) % 4)
    words = np.concatenate([np.array([len(text)], np.uint32), np.frombuffer(padded, np.uint32)])
    packets = carrier.exchange(words, [EMPTY] * carrier.groups)
    return [packet.common[1:].tobytes()[: int(packet.common[0])] for packet in packets]
