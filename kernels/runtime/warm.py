"""Compile the kernels of a run, or load them from the cache, before a stage's time is measured.

Kernels are compiled in parts: a part calls a few kernels on small inputs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np

from .. import cpu
from ..cpu.arrays.indexing import numbers
from ..cpu.arrays.sort import MANY, Runs, by_key, place_in_runs, sort_runs
from ..cpu.arrays.strings import hash_strings, number_strings, sort_strings
from ..cpu.butterflies import count_butterflies
from ..cpu.nest import components_of_edges, mark_forest, subtree_minima, subtree_sums
from ..cpu.peeling.blooms import ButterflyPeeling
from ..cpu.peeling.cascade import REMOVED, Cascade, set_to
from ..cpu.peeling.filtering import Filtering, lower, pack_list, pack_range
from ..cpu.peeling.live_edges import Live, LiveRows, below, not_removed
from ..cpu.peeling.peel import RecordedPeeling
from ..cpu.triangles import WholeCounts
from ..graph import Adjacency, IntArray, LongArray, Topology
from .side_by_side import Parts, WarmUp


def _warm_text() -> None:
    number_strings(np.zeros(2, np.int64), np.zeros(1, np.uint8))
    sort_strings(np.zeros(2, np.int64), np.zeros(1, np.uint8))
    uuid = np.frombuffer(b"00000000-0000-0000-0000-000000000000", np.uint8)
    sort_strings(np.array([0, len(uuid)]), uuid)


def _warm_hashes() -> None:
    hash_strings(np.zeros(2, np.int64), np.zeros(1, np.uint8), np.uint64(1))


def _warm_forest() -> None:
    """With `_warm_join` and `_warm_components`, the kernels that find the components of many edges."""
    one = np.ones(1, np.int32)
    mark_forest(one, one, one, 2)


def _warm_components() -> None:
    one, zero = np.ones(1, np.int32), np.zeros(1, np.int32)
    components_of_edges(zero, zero, one, zero, one, zero, -one)


def _warm_join() -> None:
    """Kernels that join the components that buckets have found."""
    one = np.ones(1, np.int32)
    parent = cpu.nest(one, one, one, 2).parent
    subtree_minima(parent, subtree_sums(parent, np.ones(1, np.int64)))


def _triangle() -> tuple[Topology, LongArray, IntArray]:
    """The edges of a triangle, and the start of each vertex's row among them with the larger ends."""
    low, high = np.array([0, 0, 1], np.int32), np.array([1, 2, 2], np.int32)
    return Topology(low, high, 3), np.array([0, 2, 3, 3], np.int64), high


def _triangle_rows() -> Adjacency:
    """The rows of a triangle, without a kernel."""
    neighbour, edge = np.array([1, 2, 0, 2, 0, 1], np.int32), np.array([0, 1, 0, 2, 1, 2], np.int32)
    return Adjacency(np.array([0, 2, 4]), np.full(3, 2, np.int32), neighbour, edge)


def _warm_rows() -> None:
    cpu.row_numbers(_triangle()[1])


def _warm_pairs() -> None:
    cpu.order_pairs(np.zeros(1, np.int32), np.ones(1, np.int32), 2, 2)


def _warm_digits() -> None:
    """Kernels that sort and mark the edges of large graphs."""
    many = np.arange(MANY, dtype=np.int32)
    set_to(many.copy(), by_key(many, many, MANY), 1)
    set_to(many.astype(np.int8), many, 1)


def _warm_gather() -> None:
    many = np.arange(MANY, dtype=np.int32)
    cpu.take(many, many)
    cpu.store(np.empty(MANY, np.int32), many, many)
    cpu.store(np.empty(MANY, np.bool_), many, np.ones(MANY, np.bool_))
    cpu.nonzero(many), cpu.nonzero(many > 0), cpu.number_marked(many > 0), numbers(MANY)


def _warm_scatter() -> None:
    many = np.arange(MANY, dtype=np.int32)
    cpu.scatter_sum(many, many, MANY), cpu.scatter_max(many, many, MANY)
    cpu.bincount(many, MANY), cpu.bincount(many.astype(np.int64), MANY)


def _warm_groups() -> None:
    cpu.positions_by_group(np.zeros(MANY, np.int16), 1)


def _warm_runs() -> None:
    one = np.zeros(1, np.int32)
    place_in_runs(one, one, 2, 2)


def _warm_order() -> None:
    sort_runs(Runs(np.array([0, 1]), 1, np.zeros(1, np.uint64), np.zeros(1, np.int32)))


def _warm_triangles() -> None:
    _, offsets, high = _triangle()
    WholeCounts(offsets, high).add_by_list()


def _warm_members() -> None:
    _, offsets, high = _triangle()
    WholeCounts(offsets, high).add_by_member(np.zeros(0, np.int32))


def _cascade() -> tuple[Cascade, Adjacency]:
    topology, rows = _triangle()[0], _triangle_rows()
    return Cascade(topology, rows), rows


def _warm_peel() -> None:
    cascade, rows = _cascade()
    cascade.list_losses(rows, np.zeros(3, np.int8), np.arange(3, dtype=np.int32), None)


def _warm_lower() -> None:
    (cascade, _), edges, state = _cascade(), np.arange(3, dtype=np.int32), np.zeros(3, np.int8)
    cascade.lower(np.ones(3, np.int32), state, np.array([2], np.int32), None, cascade.enter(edges, state))


def _warm_live() -> None:
    """With `_warm_scan`, the kernels of a peeling between cascades."""
    topology, _, _ = _triangle()
    LiveRows(topology, _triangle_rows(), np.array([REMOVED, 0, 0], np.int8), 3).remove(np.zeros(1, np.int32), 2)


def _warm_scan() -> None:
    one = np.ones(3, np.int32)
    below(Live(3), one, 1)
    not_removed(np.zeros(3, np.int8))
    set_to(one, np.zeros(1, np.int32), 0)


def _warm_recording() -> None:
    """Kernels of a peeling that records its order for updates."""
    RecordedPeeling(_triangle()[0], np.ones(3, np.int32)).advance()


def _warm_adjacency() -> None:
    cpu.adjacency(_triangle()[0])


def _warm_compact() -> None:
    cpu.compact(_triangle_rows(), np.ones(3, np.bool_))


def _warm_filter() -> None:
    """Kernels that remove the edges below a threshold by shares, and peel a band."""
    topology, _, _ = _triangle()
    part = Filtering(topology, np.ones(3, np.int32), _triangle_rows())
    part.survey(0)
    part.find(2)
    part.remove_alone(0)
    set_to(np.zeros(3, np.int8), np.zeros(1, np.int32), 0)


def _warm_changes() -> None:
    for most in (1, 256):
        delta = np.full(3, -most, np.int32)
        lower(pack_range(delta, 0, 3)[0], 0, delta, 0)
        lower(pack_list(delta, np.arange(3, dtype=np.int32))[0], 0, delta, 0)


def _warm_fixpoint() -> None:
    topology, _, _ = _triangle()
    one = np.ones(3, np.int32)
    cpu.Fixpoint(topology, _triangle_rows(), 1).evaluate(one, np.arange(3, dtype=np.int32), False)


def _square() -> Topology:
    """A butterfly: the vertices 0 and 1 of one side, 2 and 3 of the other."""
    return Topology(np.array([0, 0, 1, 1], np.int32), np.array([2, 3, 2, 3], np.int32), 4)


def _warm_butterflies() -> None:
    topology = _square()
    count_butterflies(cpu.adjacency(topology), topology.edges)


def _warm_blooms() -> None:
    ButterflyPeeling(_square(), np.ones(4, np.int32), 2**20).advance()


def _warm_shards() -> None:
    cpu.lookup(np.arange(3), np.arange(3))
    _warm_third_vertex()


def _warm_third_vertex() -> None:
    """Supports by shards, of a triangle whose edges come in two runs."""
    from ..cpu.shards.cut import Cut  # only needed with shards

    low, high, starts = (np.array(part, np.uint32) for part in ([0, 1, 0], [1, 2, 2], [0, 2, 3]))
    runs, one = np.array([0, 2, 3]), np.ones(3, np.int32)
    merged = cpu.merge_rows(low, high, runs, 3)
    cpu.to_merged_order(merged.origin, one > 0, low, one, one, runs, np.zeros(2, np.int16))
    frozen = low.copy()
    frozen.flags.writeable = False  # arrays from other workers are read-only: another type to the compiler
    for ends in (low, frozen):
        Cut(3, 1).classes(ends)
    rows = cpu.third_vertex_rows(merged, Cut(3, 1), 0, 1)
    cpu.count_by_third_vertex(rows, starts, low[:2], merged.high, np.zeros(3, np.int32))


PARTS: Mapping[str, Callable[[], None]] = {
    "adjacency": _warm_adjacency,
    "blooms": _warm_blooms,
    "butterflies": _warm_butterflies,
    "changes": _warm_changes,
    "compact": _warm_compact,
    "components": _warm_components,
    "digits": _warm_digits,
    "filter": _warm_filter,
    "fixpoint": _warm_fixpoint,
    "forest": _warm_forest,
    "gather": _warm_gather,
    "groups": _warm_groups,
    "hashes": _warm_hashes,
    "join": _warm_join,
    "live": _warm_live,
    "lower": _warm_lower,
    "members": _warm_members,
    "order": _warm_order,
    "pairs": _warm_pairs,
    "peel": _warm_peel,
    "recording": _warm_recording,
    "rows": _warm_rows,
    "runs": _warm_runs,
    "scan": _warm_scan,
    "scatter": _warm_scatter,
    "shards": _warm_shards,
    "text": _warm_text,
    "triangles": _warm_triangles,
}
SECONDS: Mapping[str, float] = {
    "adjacency": 1.0,
    "blooms": 6.0,
    "butterflies": 2.0,
    "changes": 2.0,
    "compact": 1.0,
    "components": 1.4,
    "digits": 1.2,
    "filter": 2.5,
    "fixpoint": 3.0,
    "forest": 1.4,
    "gather": 1.0,
    "groups": 0.7,
    "hashes": 0.4,
    "join": 1.8,
    "live": 0.9,
    "lower": 0.8,
    "members": 1.4,
    "order": 1.2,
    "pairs": 0.3,
    "peel": 1.9,
    "recording": 1.6,
    "rows": 1.2,
    "runs": 0.8,
    "scan": 0.8,
    "scatter": 0.3,
    "shards": 9.0,
    "text": 2.1,
    "triangles": 0.9,
}
"""Approximate seconds that each part takes to compile."""

_ALWAYS = "join", "forest", "components", "pairs", "rows", "triangles", "members", "digits"
_REMOVAL = "peel", "lower", "live", "scan", "adjacency", "compact"
_BY_METHOD: Mapping[str, Sequence[str]] = {
    "peel": _REMOVAL,
    "band": (*_REMOVAL, "filter"),
    "fixpoint": ("fixpoint", "adjacency"),
    "butterflies": ("butterflies", "blooms", "adjacency", "compact"),
}
_BANDS = "filter", "changes"
_MANY = "gather", "scatter", "groups", "runs", "order"
_TEXT = "text", "hashes", "forest", "components"
"""Parts that depend on more than the method; see `parts_for`."""

BY_STAGE: Mapping[str, frozenset[str]] = {
    "read": frozenset({"gather", "text", "hashes"}),
    "number": frozenset({"pairs", "scatter", "groups", "runs", "order"}),
}
"""Parts by the first stage that calls them. The others are not called before the stage `triangulate`."""

_KERNELS = Parts(__spec__.name, PARTS, SECONDS)


def parts_for(
    method: str, partitions: int, text: bool, many: bool = True, bands: bool = False, records: bool = False
) -> list[str]:
    """The parts of the kernels for CPUs that `method` (peel, band, fixpoint or butterflies) uses with `partitions`
    partitions.

    Adds parts for graphs of `MANY` edges or more with `many`, for strings with `text`, for several workers with a copy
    of the graph each with `bands`, and for recording the order of peeling for updates with `records`.
    """
    parts = [*_BY_METHOD[method], *_ALWAYS, *(_MANY if many else ())]
    parts += [part for part in _BANDS if bands and part not in parts]
    parts += ["shards"] * (partitions > 1) + ["recording"] * records
    return parts + [part for part in _TEXT if text and part not in parts]


def load_parts(parts: Sequence[str], processes: int = 1, here: bool = True) -> WarmUp:
    """Call the kernels of the parts; see `Parts.load`."""
    return _KERNELS.load(parts, processes, here)


def warm(
    method: str,
    partitions: int,
    on_gpu: bool = False,
    text: bool = False,
    processes: int = 1,
    many: bool = True,
    bands: bool = False,
    records: bool = False,
) -> WarmUp:
    """Call each kernel that `method` uses with `partitions` partitions, on small inputs; see `parts_for`.

    With `on_gpu`, calls the CPU's kernels of a run on GPUs, which sort and join components, and with `text` those that
    number strings. Then compiles the GPU's kernels that are chosen by the shape of the graph, or loads them from CuPy's
    cache (``CUPY_CACHE_DIR``); `tasks.warm` calls all others. Up to `processes` processes compile what no cache has
    yet.
    """
    if not on_gpu:
        return load_parts(parts_for(method, partitions, text, many, bands, records), processes)
    start = time.perf_counter()
    with _compiling_for_gpu(processes, partitions > 1):
        found = load_parts(["join", "pairs", *(_TEXT if text else ())], processes)
    from ..gpu.tables import compile_all

    compile_all(shards=partitions > 1)
    return WarmUp(found.compiled, time.perf_counter() - start)


@contextmanager
def _compiling_for_gpu(processes: int, shards: bool) -> Iterator[None]:
    """Within the context other processes compile CuPy's operations, unless this was done on this machine before."""
    from ..gpu.compiling import first_run as others

    what = f"operations{' of shards' * shards}"
    wanted = processes > 1 and not others.is_prepared(what)
    started = others.start(processes, shards) if wanted else []
    try:
        yield
    finally:
        for process in started:
            process.wait()
    if wanted:
        others.mark_prepared(what)


if __name__ == "__main__":
    _KERNELS.compile_named()
