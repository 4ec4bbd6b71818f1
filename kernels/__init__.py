"""Arrays in, arrays out; the only layer that knows Numba and CuPy.

Each operation picks its twin by the type of its first array and refuses others with TypeError: there is no silent
fallback. Kernels never write to their inputs, except where the text says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from . import cache, threads

cache.install()
threads.wait_passively()

from . import cpu  # noqa: E402  (its kernels are looked up in the cache when they are defined)
from .device import device, on_host, to_device, to_host, trim  # noqa: E402
from .graph import Adjacency, IntArray, LongArray, Nested, Topology  # noqa: E402
from .peers import Address  # noqa: E402

if TYPE_CHECKING:
    from .cpu.shards.closing import ClosingRows, MergedRows
    from .cpu.shards.cut import Cut
    from .gpu.compact_rows import CompactPeeling
    from .gpu.host_mail import HostMail
    from .gpu.nccl import Ranks
    from .gpu.shard_mail import DirectMail, RelayedMail, ShardMailbox
    from .gpu.shards import ShardPeeling

__all__ = [
    "add_up",
    "adjacency",
    "arrange",
    "cascade",
    "close_rows",
    "compact",
    "compact_peeling",
    "count_closed",
    "device",
    "direct_mail",
    "fixpoint",
    "hash_strings",
    "host_inbox_words",
    "host_mail",
    "intersect",
    "least_up",
    "lookup",
    "maxima_at",
    "merge_rows",
    "nccl_id",
    "nccl_lack",
    "nccl_ranks",
    "nccl_spare",
    "nest",
    "on_host",
    "order_pairs",
    "pack_lists",
    "peeling",
    "positions",
    "reband",
    "relayed_mail",
    "row_numbers",
    "shard_mailbox",
    "shard_peeling",
    "sort_keys",
    "sort_strings",
    "sums_at",
    "to_device",
    "to_host",
    "trim",
]


def _twin(array: object) -> ModuleType:
    if isinstance(array, np.ndarray):
        return cpu
    if type(array).__module__.partition(".")[0] == "cupy":
        from . import gpu  # CuPy is an extra, and slow to import

        return gpu
    raise TypeError(f"there are no kernels for arrays of type {type(array).__module__}.{type(array).__qualname__}")


def _gpu_twin(array: object) -> ModuleType:
    twin = _twin(array)
    if twin is cpu:
        raise TypeError("there are such kernels for arrays on a GPU, not for numpy.ndarray")
    return twin


def _cpu_twin(array: object) -> ModuleType:
    twin = _twin(array)
    if twin is not cpu:
        raise TypeError("there are such kernels for NumPy's arrays, not for those on a GPU")
    return twin


def row_numbers(offsets: LongArray) -> IntArray:
    """The row of each entry, int32 [entries], of a CSR with `offsets` [rows + 1]."""
    return _twin(offsets).row_numbers(offsets)


def lookup(keys: LongArray, wanted: LongArray) -> IntArray:
    """Index in `keys` (int64, ascending, distinct) of each wanted int64 value, int32; -1 where it is not there."""
    return _twin(keys).lookup(keys, wanted)


def pack_lists(
    offsets: LongArray, high: IntArray, part: NDArray[np.int16], own: int, partitions: int
) -> dict[int, tuple[LongArray, IntArray]]:
    """The oriented lists that other partitions need, for the push exchange.

    `offsets` [vertices + 1] and `high` [edges] are the oriented CSR of partition `own`, `part` [vertices] says where
    each local vertex belongs. Partition q needs the list of a from its first member that belongs to q on, if anything
    follows that member. Gives, by partition, where its lists start [lists + 1] and their entries as edge numbers here.
    """
    return _twin(high).pack_lists(offsets, high, part, own, partitions)


def intersect(
    starts: LongArray, members: IntArray, offsets: LongArray, high: IntArray, home: NDArray[np.bool_]
) -> tuple[IntArray, IntArray, NDArray[np.bool_]]:
    """Every triangle a < b < c of which the list of a is given and the edge (b, c) is owned here, each once.

    `starts` [lists + 1] and `members` [entries] (local vertices ascending within a list, -1 for vertices unknown here)
    are oriented lists, of this partition or of another; `offsets`, `high` are this partition's oriented CSR; `home`
    [vertices] is true where the vertex belongs here. Gives, all int32 but the last: the triangles each owned edge
    closes as (b, c) [edges]; the triangles each entry takes part in as (a, b) or (a, c) [entries]; and whether an
    entry has, as (a, b), a triangle whose c belongs elsewhere [entries].

    The forward algorithm (Schank and Wagner, "Finding, counting and listing all triangles in large graphs", WEA 2005):
    the list of a is marked in an array, then every row N⁺(b) is read once. Reads 8 bytes an entry of those rows; the
    supports add up to three times the triangles.
    """
    return _twin(high).intersect(starts, members, offsets, high, home)


def merge_rows(low: NDArray[np.uint32], high: NDArray[np.uint32], runs: LongArray, vertices: int) -> MergedRows:
    """Merge runs of edges, each sorted by (low, high), no edge twice, of a graph of so many vertices.

    Run i is [runs[i], runs[i + 1]); `runs` lies on the host. Of the result, `high` and `origin`, where each edge stood,
    are in the order of (low, high).
    """
    merged: MergedRows = _twin(high).merge_rows(low, high, runs, vertices)
    return merged


def close_rows(rows: MergedRows, cut: Cut, first: int, shards: int) -> ClosingRows:
    """For `count_closed`, the edges that a group of `shards` shards from class `first` on owns: their high end is of
    its classes.
    """
    closing: ClosingRows = _twin(rows.high).close_rows(rows, cut, first, shards)
    return closing


def count_closed(
    rows: ClosingRows, starts: NDArray[np.uint32], low: NDArray[np.uint32], high: NDArray[np.uint32], sums: IntArray
) -> tuple[IntArray, int]:
    """Find the triangles a < b < c of the edges (a, b) that pass by, with c of the classes of the group.

    List i of those edges is low[i] → high[starts[i] : starts[i + 1]], ascending. Gives the triangles of each edge that
    passed by, int32 [len(high)], and how many there are in all. Adds to `sums`, int32 [edges of the group], in place,
    those of each edge (a, c) and (b, c). The forward algorithm, cut by the third vertex.
    """
    found: tuple[IntArray, int] = _twin(sums).count_closed(rows, starts, low, high, sums)
    return found


def arrange(
    origin: NDArray[np.uint32],
    owned: NDArray[np.bool_],
    low: NDArray[np.uint32],
    support: IntArray,
    row: IntArray,
    runs: LongArray,
    senders: NDArray[np.int16],
) -> tuple[NDArray[np.uint32], IntArray, NDArray[np.int16], IntArray]:
    """Low ends and supports [edges] in the order that `origin` [edges] has them in, and sender and row of the `owned`.

    `low`, `support` and `owned` [edges] are as they arrived, `row` [owned edges] too. `runs` [senders + 1] says where
    the edges of each of the `senders` start; both lie on the host.
    """
    arranged: tuple[NDArray[np.uint32], IntArray, NDArray[np.int16], IntArray] = _twin(origin).arrange(
        origin, owned, low, support, row, runs, senders
    )
    return arranged


def adjacency(topology: Topology) -> Adjacency:
    """Rows of both directions."""
    return _twin(topology.low).adjacency(topology)


def compact(rows: Adjacency, live: NDArray[np.bool_]) -> Adjacency:
    """The rows without the edges for which `live` [edges] is false, packed; edge and vertex numbers stay."""
    return _twin(rows.edge).compact(rows, live)


def peeling(
    topology: Topology, count: IntArray, low: IntArray | None = None, level: int = 0, levels: int = 0
) -> cpu.Peeling:
    """The peeling of a subgraph whose edges have `count` [edges] triangles.

    `advance()`, while edges are `left`, lets those of the next level, or of several, fall. After each call `low`
    [edges] is λ of the fallen edges, `count` the triangles that the others have left (negative for the fallen), `level`
    the next level and `levels` how many had edges. With these four another goes on from there.
    """
    return _twin(topology.low).Peeling(topology, count, low, level, levels)


def compact_peeling(
    topology: Topology, count: IntArray, low: IntArray | None = None, level: int = 0, levels: int = 0
) -> CompactPeeling:
    """The same as `peeling`, on rows that take less than half the memory; on a GPU alone, and slower there."""
    return _gpu_twin(topology.low).CompactPeeling(topology, count, low, level, levels)


def shard_mailbox(like: NDArray[np.uint32], shards: int, edges: int) -> ShardMailbox:
    """Memory, beside the array `like`, that the shards of a graph of so many edges write into, for one of them.

    `address()` is for the others.
    """
    return _gpu_twin(like).ShardMailbox(shards, edges)


def direct_mail(like: NDArray[Any], rank: int, mailbox: ShardMailbox, addresses: Sequence[Address]) -> DirectMail:
    """The way from shard `rank` to all mailboxes, whose `addresses` are given, its own among them.

    `abandon()` frees the others from waiting for it, `lose()` its own kernel from waiting for them, `close()` lets go
    of their memory. Raises ConnectionError if they cannot be reached.
    """
    return _gpu_twin(like).DirectMail(rank, mailbox, addresses)


def host_inbox_words(like: NDArray[Any], shards: int, edges: int) -> int:
    """Size in words of what `host_mail` takes for each of the shards of a graph of so many edges."""
    return _gpu_twin(like).host_inbox_words(shards, edges)


def host_mail(like: NDArray[Any], rank: int, inboxes: Sequence[NDArray[np.uint32]], edges: int, here: int) -> HostMail:
    """The way from shard `rank` to `inboxes` [shards]: memory of the host, 0 at first, that all processes map.

    Each has `host_inbox_words` words. `edges` are those of the whole graph; `here` shards run on this GPU at once.
    `abandon`, `lose` and `close` are as those of `direct_mail`. Raises ConnectionError where CUDA cannot reach such
    memory.
    """
    return _gpu_twin(like).HostMail(rank, inboxes, edges, here)


def relayed_mail(like: NDArray[Any], rank: int, shards: int, edges: int, here: int) -> RelayedMail:
    """Memory of the host that the kernel of shard `rank` writes to, and reads, while a thread carries its mail.

    `edges` are those of the whole graph; `here` shards run on this GPU at once. For each meeting the thread calls
    `await_post`, `outgoing`, and `deliver` for each other shard. Raises MemoryError.
    """
    return _gpu_twin(like).RelayedMail(rank, shards, edges, here)


def nccl_lack() -> str:
    """Why NCCL cannot be had here, and what to do; empty if it can."""
    from .gpu import nccl

    return nccl.lack()


def nccl_id() -> bytes:
    """What names a new meeting of GPUs; one of them makes it for all."""
    from .gpu import nccl

    return nccl.new_id()


def nccl_ranks(identity: bytes, rank: int, count: int, most_common: int, most_own: int) -> Ranks:
    """Make this process's GPU one of `count` that NCCL connects; all call it at once with the same `identity`.

    Its `exchange` sends words to all, `most_common` at most, and to each, `most_own` at most. Raises RuntimeError.
    """
    from .gpu import nccl

    return nccl.Ranks(identity, rank, count, most_common, most_own)


def nccl_spare() -> int:
    """Multiprocessors that NCCL's kernels need while another one waits."""
    from .gpu import nccl

    return nccl.SPARE


def shard_peeling(
    low: NDArray[np.uint32],
    high: NDArray[np.uint32],
    vertices: int,
    edges: int,
    mail: DirectMail | HostMail | RelayedMail,
    **start: Any,
) -> ShardPeeling:
    """Peel one shard together with all others, which may be on other devices.

    `low`, `high` are the ends of the edges that the shard stores: ranks by ascending degree, sorted by (low, high).
    `start` is their `support`, or the `count`, `sums`, `level` and `levels` of a peeling before. Of the result,
    `launch(quit)` and `settle()` peel while `in_progress`; `gather()` and `intervals()` give the bounds of λ; `level`,
    `left`, `sums` tell how far it is. All shards make the same calls. Raises ValueError for 2^27 triangles of one edge,
    MemoryError for a shard of 2^32 entries.
    """
    return _gpu_twin(low).ShardPeeling(low, high, vertices, edges, mail, **start)


def cascade(topology: Topology, rows: Adjacency) -> cpu.Cascade:
    """Scratch for cascades in a subgraph: `run(rows, count, frontier, threshold, band) -> (fallen edges, rounds)`.

    `rows` are those it has now; each run may be given others, compacted from them.

    `run` lets the edges of `frontier` fall (counts ≥ 0 before), lowers the `count` (int32 [edges], changed in place)
    of each edge that loses a triangle to them, lets every edge fall whose count drops below `threshold[band[e]]`, and
    so on until silence. A triangle counts for e only if its other edges lie in a higher `band` (int32 [edges]) or stand
    in e's own, and only edges of e's band lose by e's fall. A fallen edge has count GONE. Reads the shorter row of each
    fallen edge and, for each triangle, two counts. The fallen are the caller's until the next `run`.
    """
    return _twin(topology.low).Cascade(topology, rows)


def reband(
    band: IntArray,
    count: IntArray,
    start: IntArray,
    commit: IntArray,
    touched: NDArray[np.bool_],
    threshold: IntArray,
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Write the outcome of silent filters and start the next ones, in one pass over a subgraph's edges.

    `band`, `count`, `start` [edges] are each edge's band (its lower end), its triangles left in the running filter,
    and those before it. `touched`, `commit`, `threshold` are tables over bands. In a touched band whose `commit` is t
    > 0 the fallen edges stay, with the count they started with, and the others move to band t, with the count they are
    left with: so nothing is ever counted twice. Gives new band, count and start, and the edges of touched bands below
    their new threshold, ascending.
    """
    return _twin(band).reband(band, count, start, commit, touched, threshold)


def fixpoint(topology: Topology, rows: Adjacency, owned: NDArray[np.bool_], highest: int) -> cpu.Fixpoint:
    """Scratch for fixpoint rounds in a subgraph whose bounds are at most `highest`.

    `evaluate(bound, active, by_one)` lowers the bound of each active edge once, in place (to the h-index of its
    triangles' lesser other bounds, or by one if fewer than its bound support it), and gives the owned edges to look at
    again; `unsettle(bound, fallen)` gives those that share a triangle with edges whose bounds fell elsewhere.
    """
    return _twin(topology.low).Fixpoint(topology, rows, owned, highest)


def nest(low: IntArray, high: IntArray, level: IntArray, vertices: int) -> Nested:
    """The connected components of {edges of level ≥ k} for all k, and how they nest.

    The edges join `low` and `high` [edges], both < `vertices` and in any order, at a `level` ≥ 0; loops and repeated
    edges are edges like others. By union-find from the highest level down, as in Kruskal's algorithm; sorts the edges
    by level, and then finds the roots of each one's ends.
    """
    return _twin(low).nest(low, high, level, vertices)


def add_up(parent: IntArray, values: LongArray) -> LongArray:
    """The sum of `values` (int64 [components]) over each component and all within it, where every component comes
    before its `parent` (-1 for none), as in `Nested`. CPU only.
    """
    return _cpu_twin(parent).add_up(parent, values)


def least_up(parent: IntArray, values: LongArray) -> LongArray:
    """The least of `values` over each component and all within it; otherwise as `add_up`."""
    return _cpu_twin(parent).least_up(parent, values)


def positions(places: IntArray) -> NDArray[Any]:
    """Places to index with several times: of the type that the backend's indexing would convert them to each time."""
    return _twin(places).positions(places)


def sums_at(place: NDArray[Any], values: IntArray, places: int) -> LongArray:
    """The sum of the values at each of `places`, int64; 0 for none."""
    return _twin(values).sums_at(place, values, places)


def maxima_at(place: NDArray[Any], values: IntArray, places: int) -> IntArray:
    """The largest of the values ≥ 0 at each of `places`; 0 for none."""
    return _twin(values).maxima_at(place, values, places)


def sort_keys(keys: LongArray, bits: int) -> LongArray:
    """The keys, each 0 ≤ key < 2^bits, ascending. Radix sort: reads and writes 8 bytes a key for every 11 bits."""
    return _twin(keys).sort_keys(keys, bits)


def hash_strings(offsets: NDArray[np.int64], content: NDArray[np.uint8], base: np.uint64) -> NDArray[np.uint64]:
    """Each string [strings] as a polynomial in `base`, whose coefficients are its bytes + 1, modulo 2^64; strings as
    for `sort_strings`.

    On the host alone: each byte is read once, and 8 bytes a string are all the memory.
    """
    return _cpu_twin(offsets).hash_strings(offsets, content, base)


def sort_strings(offsets: NDArray[np.int64], content: NDArray[np.uint8]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The permutation [strings] that sorts strings by their bytes, and, in that order, which are the same as the one
    before; string i is content[offsets[i] : offsets[i + 1]].

    Multikey quicksort, on the host alone: 16 bytes of memory a string, and of each about as many bytes are read as
    tell it from others.
    """
    return _cpu_twin(offsets).sort_strings(offsets, content)


def order_pairs(low: IntArray, high: IntArray, lows: int, highs: int) -> LongArray:
    """The permutation [pairs] that sorts pairs by (low, high), for 0 ≤ low < lows and 0 ≤ high < highs.

    Two counting sorts, with a table over each range of values; ties stay in their order.
    """
    return _twin(low).order_pairs(low, high, lows, highs)
