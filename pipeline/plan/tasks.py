"""Number of tasks that the stages of a run give the scheduler, except those that search λ.

This module computes it exchange by exchange, in the order of the stages. A plan must count the tasks of thousands
of buckets within milliseconds, so it cannot run the stages with an engine that counts. `test_plan_tasks` compares the
number with the tasks of real runs.

If workers are processes, a task reads parts of one result, or of several that are known to be on one worker, and a task
makes each parcel of an exchange. For a number that depends on the graph the largest value is used. The tasks that match
DN-graphs with those of the previous night, and those that load kernels, are not counted.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..cluster.execution import RESULTS_TOGETHER
from ..stages.extracting import FAN_IN


@dataclass(frozen=True)
class Layout:
    """The values that determine the number of tasks."""

    blocks: int
    buckets: int
    partitions: int
    """Groups of shards, or 1."""
    files: int
    """Files of each bucket and table."""
    workers: int
    threads: int
    """Threads of a worker that run tasks."""
    apart: bool
    """Whether workers are processes of their own."""
    edges: int = 0
    """Edges of the graph. The number of batches that are streamed past shards depends on it."""

    def tasks(self, in_shards: bool) -> int:
        """Tasks of all stages except those that search λ."""
        if in_shards:
            cut = self._supports_by_shards() + self._edges_of_groups()
        else:
            cut = self._exchange(self.buckets, 1) + 3 + self._looks(1)  # rows, counts, and the subgraph, which is read
        return self._ingest() + cut + self._results() + self._extract() + self._tracks() + self._publish()

    def of_programs(self, programs: int, cuts: int, blocks: int) -> int:
        """Tasks of vertex programs in `blocks` blocks, into which the graph is cut `cuts` times."""
        buckets = self.buckets
        places = buckets + self._looks(2 * buckets)
        cut = cuts * self._exchange(buckets, blocks)
        gang = min(blocks, self.workers)
        run = gang + 2 * blocks + self._looks(blocks)
        ids = 2 * self._exchange(buckets, buckets) - buckets  # the receivers of requests send the answers
        return places + cut + programs * (run + self._exchange(blocks, buckets) + ids) + buckets

    def _looks(self, results: int) -> int:
        return results if self.apart else 0

    def _looks_together(self, results: int) -> int:
        """Tasks that read parts of results whose workers are known."""
        return self._groups(results, RESULTS_TOGETHER) if self.apart else 0

    def _groups(self, tasks: int, most: int) -> int:
        """Groups of at most `most` tasks on one worker, of `tasks` in turn on all workers."""
        each, more = divmod(tasks, self.workers)
        return more * -(-(each + 1) // most) + (self.workers - more) * -(-each // most)

    def _exchange(self, senders: int, receivers: int) -> int:
        """A task for each sender and receiver, and parcels."""
        parcels = self._groups(senders, RESULTS_TOGETHER) * self._groups(receivers, self.threads) if self.apart else 0
        return senders + receivers + parcels

    def _ingest(self) -> int:
        """Reading, numbering, and the degree order."""
        blocks, buckets = self.blocks, self.buckets
        read = blocks + self._looks(blocks) + self._looks_together(blocks)
        ids = blocks + self._exchange(blocks, buckets) + self._looks_together(buckets) + buckets
        numbers = self._exchange(buckets, blocks)
        sent = self._exchange(blocks, buckets) - blocks  # the receivers of numbers send the pairs
        return read + ids + numbers + sent + self._looks_together(buckets) + self._order()

    def _order(self) -> int:
        return 2 * self._between_buckets() + self._looks_together(self.buckets) + self.buckets

    def _between_buckets(self) -> int:
        return self._exchange(self.buckets, self.buckets)

    def _supports_by_shards(self) -> int:
        """Triangles counted by groups of shards, and reported to buckets."""
        groups, buckets = self.partitions, self.buckets
        edges = buckets + self._exchange(buckets, groups) + self._looks(buckets)
        return edges + self._streamed() + self._exchange(groups, buckets) + self._looks(buckets + groups)

    def _edges_of_groups(self) -> int:
        groups = self.partitions
        return self._exchange(self.buckets, groups) + 2 * groups + self._looks(groups)

    def _streamed(self) -> int:
        """Each bucket is streamed past each group, in waves of as many batches as there are groups."""
        from ..stages.sharding import make_batches  # imports kernels

        waves = len(make_batches([self.edges // max(1, self.buckets)] * self.buckets, self.partitions))
        at_once = min(self.partitions, waves)
        return at_once * (self.buckets + waves) + 2 * self.partitions * waves

    def _results(self) -> int:
        return self._exchange(self.partitions, self.buckets)

    def _extract(self) -> int:
        """Assumes that the edges of DN-graphs fit one task, which is usual."""
        buckets = self.buckets
        trees = buckets + self._joined() + self._exchange(1, buckets) + self._looks(4 * buckets)
        triangles = self._exchange(buckets, 1) + self._exchange(1, buckets) - 1  # the receiver of edges sends the sums
        return trees + buckets + triangles

    def _joined(self) -> int:
        """Tasks that join the outlines of buckets until one is left."""
        senders = tasks = self.buckets
        while True:
            receivers = -(-senders // FAN_IN)
            tasks += self._exchange(senders, receivers) - senders
            if receivers == 1:
                return tasks
            senders = receivers

    def _tracks(self) -> int:
        """Numbers for new DN-graphs, from one task."""
        asked, numbered = self._exchange(self.buckets, 1), self._exchange(1, self.buckets) - 1
        return self.buckets + asked + numbered + self._looks(self.buckets)

    def _publish(self) -> int:
        return 2 * self._between_buckets() + (2 * self.files + 2) * self.buckets
