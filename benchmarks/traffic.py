"""Bytes that each exchange of a run moves, from what a graph and its partitions have."""

from __future__ import annotations

from typing import Protocol


class Counts(Protocol):
    """What bytes follow from; `simulate_partitions.Simulated` has it all counted."""

    @property
    def method(self) -> str:
        """How vertices are partitioned."""

    @property
    def vertices(self) -> int:
        """Of the graph."""

    @property
    def edges(self) -> int:
        """Of the graph."""

    @property
    def block_ids(self) -> int:
        """Distinct ids of each block, added up."""

    @property
    def block_edges(self) -> int:
        """Distinct edges of each block, added up."""

    @property
    def bucket_highs(self) -> int:
        """Distinct larger ends of each bucket, added up."""

    @property
    def lists(self) -> int:
        """Oriented lists sent."""

    @property
    def list_entries(self) -> int:
        """Their entries."""

    @property
    def replies(self) -> int:
        """Entries answered."""

    @property
    def reply_ghosts(self) -> int:
        """Ghosts named in answers."""

    @property
    def ghosts(self) -> int:
        """Held by all partitions."""

    @property
    def ids(self) -> int:
        """Told in banding."""


STAGES = {
    "ids": "number",
    "numbers": "number",
    "pairs": "number",
    "degrees": "partition",
    "ranks": "partition",
    "out-degrees": "partition",
    "owned": "partition",
    "lists": "triangulate",
    "replies": "triangulate",
    "band": "bound",
    "peel": "bound",
    "results": "publish",
    "sums": "publish",
    "names": "publish",
}
"""Exchange → the stage that it belongs to. A run has `band` or `peel`."""


def traffic(counts: Counts) -> dict[str, int]:
    """Exchange → bytes of its payloads, integer ids, all λ known; what stays on a worker is counted too."""
    number = 4 if counts.vertices < 2**31 else 8  # tasks.order.shifted
    highs, edges = counts.bucket_highs, counts.edges
    return {
        "ids": 8 * counts.block_ids,
        "numbers": number * counts.block_ids,
        "pairs": 2 * number * counts.block_edges,
        "degrees": (number + 8) * highs,
        "ranks": number * highs,
        "out-degrees": (number + 8) * highs if counts.method == "range" else 0,
        "owned": (2 * number + 6) * edges,
        "lists": 12 * counts.list_entries + 16 * counts.lists,
        "replies": 8 * counts.replies + 20 * counts.reply_ghosts,
        "band": 4 * counts.ids,
        "peel": 4 * counts.ghosts,
        "results": 12 * edges,
        "sums": (number + 12) * highs,
        "names": 8 * highs,
    }
