"""Compile every kernel of a run, or load it from the cache, before a stage's time is measured."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from .side_by_side import Parts, WarmUp
from .warm_parts import PARTS, SECONDS

_ALWAYS = "join", "forest", "components", "pairs", "rows", "triangles", "members", "digits"
_REMOVAL = "peel", "lower", "live", "scan", "adjacency", "compact"
_BY_METHOD: Mapping[str, Sequence[str]] = {
    "peel": _REMOVAL,
    "band": (*_REMOVAL, "filter"),
    "fixpoint": ("fixpoint", "adjacency"),
}
_BANDS = "filter", "changes"
_MANY = "gather", "scatter", "groups", "runs", "order"
_TEXT = "text", "hashes", "forest", "components"
"""Parts by what needs them, besides the method."""

BY_STAGE: Mapping[str, frozenset[str]] = {
    "read": frozenset({"gather", "text", "hashes"}),
    "number": frozenset({"pairs", "scatter", "groups", "runs", "order"}),
}
"""Parts by the first stage that calls them. The others are not called before the stage `triangulate`."""

_KERNELS = Parts(__spec__.name, PARTS, SECONDS)


def parts_for(method: str, partitions: int, text: bool, many: bool = True, bands: bool = False) -> list[str]:
    """The parts of the kernels for CPUs that `method` (peel, band or fixpoint) uses with `partitions` partitions.

    With `many` also those for graphs of `MANY` edges or more, with `text` those for strings, with `bands` those that
    several workers use, each of which holds a copy.
    """
    parts = [*_BY_METHOD[method], *_ALWAYS, *(_MANY if many else ())]
    parts += [part for part in _BANDS if bands and part not in parts]
    parts += ["shards"] * (partitions > 1)
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
) -> WarmUp:
    """Call each kernel that `method` uses with `partitions` partitions, on one triangle; see `parts_for`.

    A run on GPUs sorts and joins components on the CPU, and numbers strings there, so with `on_gpu` these kernels are
    called. The GPU's kernels that are chosen by the shape of the graph are then compiled, or loaded from CuPy's cache
    (``CUPY_CACHE_DIR``); `tasks.warm` calls all others. Up to `processes` processes compile side by side what a cache
    does not have yet.
    """
    if not on_gpu:
        return load_parts(parts_for(method, partitions, text, many, bands), processes)
    start = time.perf_counter()
    with _compiling_for_gpu(processes, partitions > 1):
        found = load_parts(["join", "pairs", *(_TEXT if text else ())], processes)
    from ..gpu.tables import compile_all

    compile_all(shards=partitions > 1)
    return WarmUp(found.compiled, time.perf_counter() - start)


@contextmanager
def _compiling_for_gpu(processes: int, shards: bool) -> Iterator[None]:
    """Other processes compile the operations of CuPy meanwhile, if none has done so before on this machine."""
    from ..gpu.preparing import processes as others

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
