"""Compiles our CUDA kernels before any run, as in the build of an image. Needs NVIDIA's compiler, but no GPU.

Does not compile CuPy's own kernels, which CuPy generates only where there is a GPU. `first_run` compiles these.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import product

from cupy.cuda import nvrtc

from ..runtime import machine_code, source
from ..runtime.constants import SHARD_WARPS_ALONE
from ..tables import SIZES

_TABLES: list[Mapping[str, int]] = [
    {"SIDE": side, "SLOTS": slots, "WARPS": warps, "ONE_WARP": one_warp}
    for side in (0, 1)
    for _, slots, warps, one_warp in SIZES
]
_VALUES: list[Mapping[str, int]] = [
    *({"VALUE": value, "ALONG": 0, "LARGEST": largest} for value in (0, 1) for largest in (0, 1)),
    *({"VALUE": 2, "ALONG": along, "LARGEST": largest} for along in (0, 1, 2) for largest in (0, 1)),
]
VARIANTS: Mapping[str, Sequence[Mapping[str, int]]] = {
    "shards/peel": [{"SYSTEM": 0}, {"SYSTEM": 1}, {"SYSTEM": 1, "WARPS": SHARD_WARPS_ALONE}],
    "peel": [{}],
    "compact/peel": [{"APART": apart} for apart in (0, 1)],
    "filter": [{}],
    "intersect": [{}, *_TABLES],
    "programs/extremes": _VALUES,
    "programs/push": _VALUES,
    "shards/third_vertex": [{}, *_TABLES],
    "compact/build": [{"APART": apart} for apart in (0, 1)],
    "arrays/count": [{}],
    "arrays/scatter": [{}],
    "arrays/strings": [{}],
    "arrays/total": [{}],
    "changes": [{}],
    "delta": [{}],
    "fixpoint": [{}],
    "leiden": [{}],
    "nest": [{}],
    "programs/classes": [{}, {"PER_LANE": 1, "LONGEST": 32}],
    "programs/connected": [{"VALUE": value} for value in (0, 1)],
    "programs/counts": [{"VALUE": value} for value in (0, 1)],
    "programs/exact": [{}],
    "programs/first": [{}],
    "programs/links": [{}],
    "programs/ranks": [{}],
    "programs/search": [{}],
    "programs/sums": [{"ALONG": along} for along in (0, 1, 2)],
    "rows": [{}],
    "shards/rows": [{}],
}
"""File → its sets of macros. Files that take longest to compile come first."""

_MOST = 16
"""Maximum number of processes. Each takes a second to start. All kernels together take 70 seconds to compile."""


def compile_ahead(processes: int, architectures: Sequence[int] | None = None) -> int:
    """Compile the kernels that the cache folder lacks for these architectures, in up to `processes` processes.

    If `architectures` is None, takes all architectures of `machine_code` that the compiler knows. Returns the number of
    compilations: one for each variant of a source and each architecture. There are about 350 in all, of 0.2 s each.
    Raises RuntimeError for a source that the compiler refuses, and OSError if the cache folder cannot be written.
    """
    if architectures is None:
        architectures = sorted(set(machine_code.ARCHITECTURES).intersection(nvrtc.getSupportedArchs()))
    variants = [source.code(file, defines) for file, several in VARIANTS.items() for defines in several]
    lacking = [each for each in product(variants, architectures) if not machine_code.is_kept(*each)]
    if lacking:
        # The compiler does most of its work for one thread of a process at a time.
        processes = min(processes, _MOST, len(lacking))
        with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
            list(pool.map(machine_code.keep, *zip(*lacking, strict=True)))
    return len(lacking)


def missing() -> str:
    """Why the compiler does not work on this machine, and what to do; empty if it works."""
    try:
        nvrtc.getVersion()
    except RuntimeError as error:
        return f"no NVRTC ({error}): install edgemill[cu13] or cu12, which bring it"
    return ""
