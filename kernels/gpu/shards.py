"""Peeling of shards in step, on one device or on several of one machine; shards.cu tells how."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import cupy
import numpy as np
from cupy.cuda import runtime
from numpy.typing import NDArray

from ..peers import MOST_PEERS
from ..shard_sums import ShardSums
from . import source
from .host_mail import HostMail
from .peers import PATIENCE_SECONDS
from .shard_mail import LOST, DirectMail, RelayedMail
from .shard_rows import LEFT, MOST_TRIANGLES, STANDING, Part, build_part, owned, split_counts, trim_part

SHRINK_AT = 0.5
"""Halves are numbered anew when this share of them is left in a shard, as in `peel`."""
SHRINK_WITH = 0.6
"""The same while another shard does so."""
TRIM_AT = 0.8
"""Edges that left are taken out of the rows when this share of the halves is left that were there the last time."""
TRIM_WITH = 0.9
"""The same while another shard does so."""
MOST_ROUNDS = 2000
"""Rounds of one launch, after which limits are looked at and progress is told."""
WARPS = 16
"""Of a block; as in shard_round.cuh. Two blocks share a multiprocessor where it has room for them."""
WARPS_ALONE = 32
"""Of a block that takes a multiprocessor for itself, so that those without a block stay empty."""
_SHARED = 32 * (4 * 4 + 8) + 192 * 8 + 128 * 8 + 192 + 32 * 4 + 8
"""Bytes of shared memory for each warp: Work of shard_round.cuh."""
_HEAVY = 2**20
"""Parts of heavy edges that a round has room for; as in shard_round.cuh."""
_QUIT = 8
_STANDING, _LEVEL, _LEVELS, _NEWS, _ROUNDS, _EXCHANGES, _TOLD = range(9, 16)
"""Words of State in shard_state.cuh."""


class ShardPeeling:
    """The peeling of the shard `mail.rank` of a graph of `vertices` vertices and `edges` edges.

    `low`, `high` [local edges] uint32 are the ends of the edges with an end of its class, as ranks by ascending degree,
    sorted by (low, high). `support` [local edges] int32 has their triangles at the start; later, `count`, `sums`,
    `level` and `levels` are those of the peeling before. Raises ValueError for 2^27 triangles of one edge.
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
        """Whether edges are left, and no shard has quit."""
        self._ends = (low, high)
        self._origin: Any = None  # number at the start of each half there is now; None for the same
        self._sums: Any = cupy.zeros(15, np.uint64) if sums is None else cupy.asarray(sums)
        self.supports = 0
        """Triangles of the edges of which this shard has the high end, added up."""
        self.standing = self.remaining = 0
        """Of these edges how many stand, and the triangles that they have left; after `intervals`."""
        if support is not None:
            if int(support.max() if len(support) else 0) >= MOST_TRIANGLES:
                raise ValueError(
                    f"an edge of {int(support.max()):,} triangles; GPUs count up to {MOST_TRIANGLES - 1:,}"
                )
            count, self.supports = split_counts(self.part, low, high, support)
            self._sums[0] = edges
        self.rounds = self.exchanges = self.told = 0
        # Kernels that run at once have streams of their own. All else goes by the current one, so that it finds memory
        # that others gave back: CuPy keeps it apart for each stream.
        alone = mail.here == 1 and not mail.spare
        self._stream = cupy.cuda.get_current_stream() if alone else cupy.cuda.Stream(non_blocking=True)
        self._open_lists()
        if support is not None:
            self._all = count  # by the numbers at the start
            self._start(low, high, count)
        else:
            self._all, self._low, self._high, self._count = count.copy(), low, high, count
            self._shrink()
        cupy.cuda.get_current_stream().synchronize()

    @property
    def left(self) -> int:
        """Edges of the whole graph that stand."""
        return int(self._sums[0])

    @property
    def sums(self) -> ShardSums:
        """What was counted."""
        return ShardSums.of(self.words)

    @property
    def words(self) -> NDArray[np.uint64]:
        """The same, for a peeling that goes on."""
        return np.asarray(self._sums.get())

    @property
    def count(self) -> Any:
        """int32 [local edges] halves with their roles; LEFT + λ for edges that left."""
        if self._origin is not None:
            self._all[self._origin] = self._count
        return self._all

    def launch(self, quit: bool) -> None:
        """Start to let levels go by, together with all others; with `quit` all stop after the first."""
        stop_at = max(int(SHRINK_AT * len(self._count)), int(TRIM_AT * self._in_rows))
        limits = (np.uint32(stop_at), np.uint32(MOST_ROUNDS), np.uint32(_QUIT if quit else 0))
        with self._stream:
            self._run("shards", *limits)

    def settle(self) -> None:
        """Wait until all have stopped, and number halves anew if few enough are left.

        Raises ConnectionError if another shard did not come.
        """
        # Who waits for a copy keeps other threads of this process from the GPU; who waits for a stream does not.
        self._stream.synchronize()
        state = self._state.get().tolist()
        news = self._heard(state)
        self.level, self.levels = state[_LEVEL], state[_LEVELS]
        self.rounds, self.exchanges, self.told = state[_ROUNDS], state[_EXCHANGES], state[_TOLD]
        self.in_progress = bool(self._sums[0]) and not news & _QUIT
        standing = state[_STANDING]
        if 0 < standing <= int(SHRINK_WITH * len(self._count)):
            self._shrink()
        elif 0 < standing <= int(TRIM_WITH * self._in_rows):
            trim_part(self._rows, self._count)
            self._in_rows = standing
        cupy.cuda.get_current_stream().synchronize()

    def gather(self) -> None:
        """Start to bring the halves of edges that stand together, at the shard of the high end."""
        with self._stream:
            self._gathered = self._count.copy()
            self._run("gather_halves", self._gathered)

    def intervals(self) -> tuple[Any, Any]:
        """Bounds of λ of the edges of which this shard has the high end, int32; after `gather` if edges are left."""
        self._stream.synchronize()  # as in `settle`
        mine = owned(self.part, self._ends[1])
        known = self.count
        if not self.left:
            low = high = known[mine] - LEFT
        else:
            self._heard(self._state.get().tolist())
            high = cupy.where(known < STANDING, known - LEFT, 0)
            low = cupy.where(known < STANDING, high, self.level)[mine]
            stand = cupy.flatnonzero(self._gathered >= STANDING)
            whole = self._gathered[stand]
            whole -= (whole + 2**27 >> 28) << 28
            high[stand if self._origin is None else self._origin[stand]] = whole
            left = known[mine] >= STANDING
            high = high[mine]
            self.standing, self.remaining = int(left.sum()), int(high[left].sum(dtype=np.int64))
        return low, high

    def wait(self) -> None:
        """Until nothing of it runs any more, whatever became of it."""
        with suppress(runtime.CUDARuntimeError):
            self._stream.synchronize()

    def _heard(self, state: list[int]) -> int:
        news = state[_NEWS]
        if news & LOST:
            raise ConnectionError(f"another shard has failed, or not moved for {PATIENCE_SECONDS:.0f} s")
        return news

    def _run(self, name: str, *own: Any) -> None:
        share, spare = self._mail.here, self._mail.spare
        system = int(not self._mail.on_one_device)
        warps = WARPS_ALONE if spare and source.most_shared() >= WARPS_ALONE * _SHARED else WARPS
        kernel = source.kernel(f"shards:{name}", cooperative=share == 1 and not spare, SYSTEM=system, WARPS=warps)
        block, shared = 32 * warps, warps * _SHARED
        rows = (self._rows.rows, self._rows.pairs, self._rows.table, self._rows.filters)
        halves = np.uint32(len(self._count))
        arguments = (self._described, cupy.zeros(3, np.uint32), halves, *rows, self._count, *own)
        blocks = max(1, (source.resident(kernel, block, shared) - spare) // share)
        kernel((blocks,), (block,), arguments, shared_mem=shared)

    def _open_lists(self) -> None:
        """What does not depend on the halves that are left."""
        mail = self._mail
        self._state = cupy.zeros(16, np.uint32)
        self._state[_LEVEL], self._state[_LEVELS] = self.level, self.levels
        self._meeting = cupy.zeros(8 + 9 * MOST_PEERS, np.uint32)
        self._told = cupy.empty((2, mail.most_events, 2), np.int32)
        self._leaving = cupy.empty(mail.shards * mail.most_edges, np.int32)
        self._departing = cupy.empty((mail.shards * mail.most_edges, 2), np.uint32)
        self._heavy = cupy.empty((_HEAVY, 2), np.uint32)
        self._tables = [cupy.asarray(table) for table in mail.tables()]

    def _start(self, low: Any, high: Any, count: Any) -> None:
        """Build rows of these edges, which all stand, and all that is laid out by the number of halves."""
        self._low, self._high, self._count = low, high, count
        self._rows: Any = build_part(self.part, low, high)
        self._in_rows = self._state[_STANDING] = len(count)
        room = len(count) + 2 * self._mail.most_events
        self._queue, self._noted = cupy.empty_like(count), cupy.empty_like(count)
        self._event: Any = cupy.empty(room, np.int32)
        part, mail = self.part, self._mail
        words = [
            part.vertices | part.shards << 32,
            part.own | room << 32,
            part.own,
            part.shards,
            int(PATIENCE_SECONDS * 1e9),
            mail.most_edges,
            mail.most_events,
            self._tables[1].shape[1],
            self._meeting.data.ptr,
            mail.inbox,
            *(table.data.ptr for table in self._tables),
            mail.lost.ctypes.data,
            self._state.data.ptr,
            self._sums.data.ptr,
            self._queue.data.ptr,
            self._noted.data.ptr,
            self._event.data.ptr,
            self._told[0].data.ptr,
            self._told[1].data.ptr,
            self._leaving.data.ptr,
            self._heavy.data.ptr,
            low.data.ptr,
            high.data.ptr,
            self._departing.data.ptr,
        ]
        self._described = cupy.asarray(np.array(words, np.uint64))

    def _shrink(self) -> None:
        if self._origin is not None:
            self._all[self._origin] = self._count
        self._rows = self._queue = self._noted = self._event = None  # room for those of the edges that are left
        stay = cupy.flatnonzero(self._count >= STANDING).astype(np.int32)
        self._origin = stay if self._origin is None else self._origin[stay]
        low, high, count = self._low[stay], self._high[stay], self._count[stay]
        self._low = self._high = self._count = None
        self._start(low, high, count)
