"""The sizes of a run, from which each stage predicts the number of tasks that it gives the scheduler.

Beside each stage, a function counts its tasks from a `Layout`, in the order in which the stage starts them. A plan adds
up these numbers. It must do so for thousands of buckets within milliseconds, so it cannot run the stages with an engine
that counts tasks. `test_plan_tasks` compares the number with the tasks of real runs.

If a number depends on the graph, the largest value is used.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..cluster.execution import RESULTS_TOGETHER, count_together


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
    results_together: int = RESULTS_TOGETHER
    """Most results of one worker from which one task takes parts."""
    edges: int = 0
    """Edges of the graph. The number of batches that are streamed past shards depends on it."""
    sorted_groups: int = 0
    """Groups of blocks whose packed rows GPUs sort together; 0 if rows are not packed."""

    def peek(self, results: int, known: bool = False) -> int:
        """Tasks of `TaskEngine.peek` for `results` results. One task reads several if their workers are `known`."""
        if not self.apart:
            return 0
        return count_together(results, self.workers, self.results_together) if known else results

    def exchange(self, senders: int, receivers: int) -> int:
        """Tasks of an exchange: a task for each sender and receiver, and, between processes, its parcels."""
        if not self.apart:
            return senders + receivers
        together = count_together(senders, self.workers, self.results_together)
        return senders + receivers + together * count_together(receivers, self.workers, self.threads)

    def forward(self, senders: int, receivers: int) -> int:
        """Tasks of an exchange whose senders are the receivers of another one."""
        return self.exchange(senders, receivers) - senders
