"""Peeling of shards in step, on one GPU or on several GPUs of one machine. shards/peel.cu describes the algorithm."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import cupy
import numpy as np
from cupy.cuda import runtime
from numpy.typing import NDArray

from ...gpu_shards import MAX_PEERS, ShardSums
from ..arrays.indexing import total
from ..runtime import source
from ..runtime.constants import (
    HALF_REMAINS,
    HALF_REMOVED,
    HALF_ROLE,
    NEWS_LOST,
    NEWS_QUIT,
    SHARD_HEAVY_PARTS,
    SHARD_WARPS,
    SHARD_WARPS_ALONE,
    SHARD_WORK_BYTES,
    STATE_HALVES,
    STATE_WORDS,
    SUMS_WORDS,
)
from .mail import DirectMail, HostMail, RelayedMail
from .rows import MAX_TRIANGLES, Part, build_part, owned, split_counts, trim_part
from .shared_memory import PATIENCE_SECONDS

SHRINK_AT = 0.5
"""A shard renumbers its halves when at most this share of them remains, as in `kernels.gpu.peel`."""
SHRINK_WITH = 0.6
"""As `SHRINK_AT`, while another shard renumbers."""
TRIM_AT = 0.8
"""Removed edges are removed from the rows when at most this share remains of the halves in the rows."""
TRIM_WITH = 0.9
"""As `TRIM_AT`, while another shard trims its rows."""
MAX_ROUNDS = 2000
"""Rounds of one launch. Time limits and progress are checked between launches."""
_HALVES, _LEVEL, _LEVELS, _NEWS, _ROUNDS, _EXCHANGES, _SENT = range(STATE_HALVES, STATE_WORDS)
"""Words of State in shards/state.cuh."""


_ROLE_BITS = HALF_ROLE.bit_length() - 1


class ShardPeeling:
    """The peeling of the shard `mail.rank` of a graph with `vertices` vertices and `edges` edges.

    `low` and `high`, uint32 [local edges], are the ends of the edges with an end in the shard's class: ranks by
    ascending degree, sorted by (low, high). `support`, int32 [local edges], is the number of triangles of each edge at
    the start. To continue an earlier peeling, pass its `count`, `words` (as `sums`), `level` and `levels` instead.

    `launch(quit)` and `finish()` peel while `in_progress`; then `gather()`, if edges are left, and `intervals()` return
    the bounds of λ. All shards make the same calls. Raises ValueError for 2^27 or more triangles of one edge,
    MemoryError for 2^32 or more entries.
    """

    def __init__(
        self,
        low: Any,
        high: Any,
        vertices: int,
        edges: int,
        mail: DirectMail | HostMail | RelayedMail,
        support: Any = None,
        count: Any = None,
        sums: Any = None,
        level: int = 0,
        levels: int = 0,
    ) -> None:
        self.part = Part(vertices, mail.shards, mail.rank)
        self._mail, self.level, self.levels = mail, level, levels
        self._in_rows = 0
        self.in_progress = edges > 0
        """Whether edges are left and no shard has quit."""
        self._ends = (low, high)
        self._origin: Any = None  # [present halves] original numbers; None if the numbers have not changed
        self._sums: Any = cupy.zeros(SUMS_WORDS, np.uint64) if sums is None else cupy.asarray(sums)
        self.supports = 0
        """Sum of the triangles of the edges whose high end is in this shard's class."""
        self.remaining_edges = self.remaining_triangles = 0
        """Of the edges whose high end is in this shard's class: the number that remain, and the sum of their remaining
        triangles. Valid after `intervals`.
        """
        if support is not None:
            if int(support.max() if len(support) else 0) >= MAX_TRIANGLES:
                raise ValueError(
                    f"an edge has {int(support.max()):,} triangles, and GPUs count at most {MAX_TRIANGLES - 1:,}"
                )
            count, self.supports = split_counts(self.part, low, high, support)
            self._sums[0] = edges
        self.rounds = self.exchanges = self.edges_sent = 0
        # Kernels that run at the same time have streams of their own. Everything else uses the current stream,
        # so that it can reuse freed memory, which CuPy keeps separately for each stream.
        alone = mail.here == 1 and not mail.reserved_processors
        self._stream = cupy.cuda.get_current_stream() if alone else cupy.cuda.Stream(non_blocking=True)
        self._open_lists()
        if support is not None:
            self._all = count  # by original numbers
            self._start(low, high, count)
        else:
            self._all, self._low, self._high, self._count = count.copy(), low, high, count
            self._shrink()
        cupy.cuda.get_current_stream().synchronize()

    @property
    def left(self) -> int:
        """Number of remaining edges of the whole graph."""
        return int(self._sums[0])

    @property
    def sums(self) -> ShardSums:
        """What the kernels have counted."""
        return ShardSums.of(self.words)

    @property
    def words(self) -> NDArray[np.uint64]:
        """`sums` as an array, for a peeling that continues this peeling."""
        return np.asarray(self._sums.get())

    @property
    def count(self) -> Any:
        """int32 [local edges] halves with their roles; HALF_REMOVED + λ for removed edges."""
        if self._origin is not None:
            self._all[self._origin] = self._count
        return self._all

    def launch(self, quit: bool) -> None:
        """Start the kernel, which peels levels together with all other shards. With `quit` all stop after one level."""
        stop_at = max(int(SHRINK_AT * len(self._count)), int(TRIM_AT * self._in_rows))
        limits = (np.uint32(stop_at), np.uint32(MAX_ROUNDS), np.uint32(NEWS_QUIT if quit else 0))
        with self._stream:
            self._run("shards", *limits)

    def finish(self) -> None:
        """Wait until all shards have stopped, and renumber the halves if few enough remain.

        Raises ConnectionError if another shard has failed.
        """
        # Waiting for a copy blocks other threads of this process from the GPU; waiting for a stream does not.
        self._stream.synchronize()
        state = self._state.get().tolist()
        news = self._check_news(state)
        self.level, self.levels = state[_LEVEL], state[_LEVELS]
        self.rounds, self.exchanges, self.edges_sent = state[_ROUNDS], state[_EXCHANGES], state[_SENT]
        self.in_progress = bool(self._sums[0]) and not news & NEWS_QUIT
        halves = state[_HALVES]
        if 0 < halves <= int(SHRINK_WITH * len(self._count)):
            self._shrink()
        elif 0 < halves <= int(TRIM_WITH * self._in_rows):
            trim_part(self._rows, self._count)
            self._in_rows = halves
        cupy.cuda.get_current_stream().synchronize()

    def gather(self) -> None:
        """Start the kernel that adds up the halves of each remaining edge at the shard of its high end."""
        with self._stream:
            self._gathered = self._count.copy()
            self._run("gather_halves", self._gathered)

    def intervals(self) -> tuple[Any, Any]:
        """Lower and upper bounds of λ, int32, of the edges whose high end is in the class.

        Call `gather` first if edges are left.
        """
        self._stream.synchronize()  # as in `finish`
        mine = owned(self.part, self._ends[1])
        known = self.count
        if not self.left:
            low = high = known[mine] - HALF_REMOVED
        else:
            self._check_news(self._state.get().tolist())
            high = cupy.where(known < HALF_REMAINS, known - HALF_REMOVED, 0)
            low = cupy.where(known < HALF_REMAINS, high, self.level)[mine]
            remain = cupy.flatnonzero(self._gathered >= HALF_REMAINS)
            whole = self._gathered[remain]
            whole -= (whole + HALF_ROLE // 2 >> _ROLE_BITS) << _ROLE_BITS  # the count without the role
            high[remain if self._origin is None else self._origin[remain]] = whole
            left = known[mine] >= HALF_REMAINS
            high = high[mine]
            self.remaining_edges, self.remaining_triangles = total(left), total(high[left])
        return low, high

    def wait(self) -> None:
        """Wait until no kernel of this shard runs, and ignore errors."""
        with suppress(runtime.CUDARuntimeError):
            self._stream.synchronize()

    def _check_news(self, state: list[int]) -> int:
        news = state[_NEWS]
        if news & NEWS_LOST:
            raise ConnectionError(f"another shard has failed, or has made no progress for {PATIENCE_SECONDS:.0f} s")
        return news

    def _run(self, name: str, *own: Any) -> None:
        share, reserved = self._mail.here, self._mail.reserved_processors
        system = int(not self._mail.on_one_device)
        alone = reserved and source.max_shared() >= SHARD_WARPS_ALONE * SHARD_WORK_BYTES
        warps = SHARD_WARPS_ALONE if alone else SHARD_WARPS
        kernel = source.kernel(
            f"shards/peel:{name}", cooperative=share == 1 and not reserved, SYSTEM=system, WARPS=warps
        )
        block, shared = 32 * warps, warps * SHARD_WORK_BYTES
        rows = (self._rows.rows, self._rows.pairs, self._rows.table, self._rows.filters)
        halves = np.uint32(len(self._count))
        arguments = (self._parameters, cupy.zeros(3, np.uint32), halves, *rows, self._count, *own)
        blocks = max(1, (source.resident(kernel, block, shared) - reserved) // share)
        kernel((blocks,), (block,), arguments, shared_mem=shared)

    def _open_lists(self) -> None:
        """Allocate what does not depend on the number of remaining halves."""
        mail = self._mail
        self._state = cupy.zeros(STATE_WORDS, np.uint32)
        self._state[_LEVEL], self._state[_LEVELS] = self.level, self.levels
        self._meeting = cupy.zeros(8 + 9 * MAX_PEERS, np.uint32)
        self._alarms = cupy.empty((2, mail.max_events, 2), np.int32)
        self._removing = cupy.empty(mail.shards * mail.max_edges, np.int32)
        self._removed_ends = cupy.empty((mail.shards * mail.max_edges, 2), np.uint32)
        self._heavy = cupy.empty((SHARD_HEAVY_PARTS, 2), np.uint32)
        self._tables = [cupy.asarray(table) for table in mail.tables()]

    def _start(self, low: Any, high: Any, count: Any) -> None:
        """Build the rows of the remaining edges `low`, `high`, and allocate what depends on the number of halves."""
        self._low, self._high, self._count = low, high, count
        self._rows: Any = build_part(self.part, low, high)
        self._in_rows = self._state[_HALVES] = len(count)
        room = len(count) + 2 * self._mail.max_events
        self._queue, self._candidates = cupy.empty_like(count), cupy.empty_like(count)
        self._events: Any = cupy.empty(room, np.int32)
        part, mail = self.part, self._mail
        words = [
            part.vertices | part.shards << 32,
            part.own | room << 32,
            part.own,
            part.shards,
            int(PATIENCE_SECONDS * 1e9),
            mail.max_edges,
            mail.max_events,
            self._tables[1].shape[1],
            self._meeting.data.ptr,
            mail.inbox,
            *(table.data.ptr for table in self._tables),
            mail.peer_lost.ctypes.data,
            self._state.data.ptr,
            self._sums.data.ptr,
            self._queue.data.ptr,
            self._candidates.data.ptr,
            self._events.data.ptr,
            self._alarms[0].data.ptr,
            self._alarms[1].data.ptr,
            self._removing.data.ptr,
            self._heavy.data.ptr,
            low.data.ptr,
            high.data.ptr,
            self._removed_ends.data.ptr,
        ]
        self._parameters = cupy.asarray(np.array(words, np.uint64))

    def _shrink(self) -> None:
        if self._origin is not None:
            self._all[self._origin] = self._count
        self._rows = self._queue = self._candidates = self._events = None  # frees their memory
        stay = cupy.flatnonzero(self._count >= HALF_REMAINS).astype(np.int32)
        self._origin = stay if self._origin is None else self._origin[stay]
        low, high, count = self._low[stay], self._high[stay], self._count[stay]
        self._low = self._high = self._count = None
        self._start(low, high, count)
