"""Tasks that the stages of a run give the scheduler, but for bounding's steps: exchange by exchange, as in `stages`.

A look at counts of results and a parcel from one sender to one receiver, or to all receivers of one worker, are tasks
too, where workers are processes. What depends on the graph is counted at its most. Those by which DN-graphs take tracks
over from the night before are not counted: a plan does not look for it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from .extracting import ABREAST
from .sharding import batches_of

__all__ = ["Layout"]


@dataclass(frozen=True)
class Layout:
    """What the number of tasks depends on."""

    blocks: int
    buckets: int
    partitions: int
    files: int
    """Of each bucket and table."""
    workers: int
    apart: bool
    """Whether workers are processes of their own."""
    placed: bool
    """Whether all receivers have workers that are known beforehand."""
    homes: bool
    """Whether partitions have."""
    edges: int = 0
    """Of the graph. They say how many batches pass by shards."""

    def tasks(self, method: str) -> int:
        """Of all stages but for bounding's steps, with vertices placed by a partitioning method, or in `shards`."""
        cut = self._shards() if method == "shards" else self._placing(method) + self._owned() + self._triangles()
        return self._ingest() + cut + self._results() + self._extract() + self._tracks() + self._publish()

    def _looks(self, results: int) -> int:
        return results if self.apart else 0

    def _exchange(self, senders: int, receivers: int, placed: bool = False, upwards: bool = False) -> int:
        """A task for each, a look at what each sender has, and parcels. `upwards`: to buckets of larger ids only."""
        return senders + receivers + self._looks(senders + self._parcels(senders, receivers, placed, upwards))

    def _parcels(self, senders: int, receivers: int, placed: bool, upwards: bool) -> int:
        if placed or self.placed:
            return senders * min(receivers, self.workers)
        return senders * (senders + 1) // 2 if upwards else senders * receivers

    def _ingest(self) -> int:
        """Reading, numbering, and the order by degrees."""
        blocks, buckets = self.blocks, self.buckets
        read = blocks + self._looks(2 * blocks)
        ids = 2 * blocks + self._exchange(blocks, buckets) + self._looks(buckets) + buckets
        numbers = self._exchange(buckets, blocks)
        pairs = self._exchange(blocks, buckets) - blocks + self._looks(buckets)  # sent by what numbers came to
        return read + ids + numbers + pairs + self._order()

    def _order(self) -> int:
        return 2 * self._asked() + 2 * self.buckets

    def _asked(self) -> int:
        """Buckets ask or tell each other about their larger ends."""
        return self._exchange(self.buckets, self.buckets, upwards=True)

    def _owned(self) -> int:
        return self._exchange(self.buckets, self.partitions) + self.partitions

    def _placing(self, method: str) -> int:
        if self.partitions == 1 or method == "hash":
            return 0
        return self._asked() + self.buckets + self._looks(2 * self.buckets)

    def _counted(self) -> int:
        """Triangles of partitions, told to buckets."""
        two = 2 * self._exchange(self.partitions, self.partitions, self.homes)
        return two + self._exchange(self.partitions, self.buckets)

    def _triangles(self) -> int:
        return 2 * self._exchange(self.partitions, self.partitions, self.homes) + self._looks(self.partitions)

    def _shards(self) -> int:
        """Triangles of groups of shards, told to buckets, and the edges of each group. Partitions are groups here."""
        groups, buckets = self.partitions, self.buckets
        asked = buckets + self._exchange(buckets, groups, self.homes) + self._looks(buckets)
        told = self._exchange(groups, buckets) + self._looks(buckets + groups)
        edges = self._exchange(buckets, groups, self.homes) + 2 * groups + self._looks(groups)
        return asked + self._passed_by() + told + edges

    def _passed_by(self) -> int:
        """Every bucket passes by every group, in waves of as many batches as there are groups."""
        waves = len(batches_of([self.edges // max(1, self.buckets)] * self.buckets, self.partitions))
        shown = min(self.partitions, waves)
        return shown * (self.buckets + waves) + 2 * self.partitions * waves

    def _results(self) -> int:
        return self._exchange(self.partitions, self.buckets)

    def _extract(self) -> int:
        """What is left of the graph in DN-graphs is taken to be one partition."""
        buckets, left = self.buckets, replace(self, partitions=1)
        trees = buckets + self._joined() + self._exchange(1, buckets) + self._looks(4 * buckets)
        counted = left._owned() + left._counted()
        return trees + 2 * buckets + self._order() + counted + self._exchange(buckets, buckets)

    def _joined(self) -> int:
        """Outlines of buckets become one; each goes to one task, with others."""
        senders = tasks = self.buckets
        while True:
            receivers = -(-senders // ABREAST)
            tasks += receivers + self._looks(2 * senders)
            if receivers == 1:
                return tasks
            senders = receivers

    def _tracks(self) -> int:
        """Numbers for DN-graphs, by way of one task, which sends what it is asked for."""
        asked, told = self._exchange(self.buckets, 1), self._exchange(1, self.buckets) - 1
        return self.buckets + asked + told + self._looks(self.buckets)

    def _publish(self) -> int:
        return 2 * self._asked() + (2 * self.files + 2) * self.buckets
