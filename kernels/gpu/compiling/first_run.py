"""Compiles all kernels of a run on GPUs in several processes, at the first run on a machine.

    python -m edgemill.kernels.gpu.compiling.first_run

is one of these processes. It reads the numbers of operations from standard input, which is one pipe for all processes,
and compiles them into CuPy's cache. CUDA's compiler does most of its work for one thread of a process at a time, so
threads would not help.

CuPy generates and compiles a kernel for each operation and types of operands: about a hundred for a run. An operation
that `operations` lacks is compiled when a run needs it. A test names missing operations.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from itertools import product
from pathlib import Path
from subprocess import DEVNULL
from typing import Any

import cupy
import numpy as np

from ...runtime import cache_folder
from .. import tables
from ..runtime import source
from ..runtime.constants import SHARD_WARPS, SHARD_WARPS_ALONE

LENGTH = 2**22
"""Elements of operands. CuPy scans short arrays with other kernels than long ones."""
_FEW, _SHORT = 100, 5000
"""Elements of shorter operands."""

_UFUNCS = {
    "add": "int64,int64 int64,int int64,int32 int32,int32 int32,int uint64,uint",
    "bitwise_and": "bool,bool int64,int int32,int",
    "bitwise_or": "int64,int64 int64,int32",
    "bitwise_xor": "uint64,uint64",
    "equal": "int64,int64 int32,int int16,int",
    "floor_divide": "int64,int int32,int",
    "greater": "int64,int64 int64,int int32,int32 int32,int",
    "greater_equal": "int32,int",
    "invert": "bool",
    "left_shift": "int64,int int32,int",
    "less": "int64,int int32,int int16,int",
    "less_equal": "int64,int",
    "maximum": "int64,int64 int32,int32",
    "minimum": "int64,int64 int32,int32",
    "multiply": "int64,int int,int32 uint64,uint",
    "negative": "int64 int32",
    "not_equal": "int64,int64 int64,int int32,int32 int32,int",
    "remainder": "int32,int uint64,uint",
    "right_shift": "int64,int int32,int uint64,uint",
    "subtract": "int64,int64 int64,int int32,int32 int32,int int,int32",
    "where": "bool,int64,int bool,int32,int bool,int16,int16",
}
"""Operands of each function: types of arrays, or scalars: `int` is a Python int, `uint` np.uint64, `word` np.uint32."""
_UFUNCS_ON_WORDS = {
    "add": "uint32,word",
    "bitwise_and": "uint32,word",
    "bitwise_or": "uint64,uint32 bool,bool uint8,uint8",
    "equal": "bool,bool",
    "floor_divide": "uint32,word",
    "greater": "uint32,int",
    "left_shift": "uint64,uint",
    "multiply": "uint32,word",
    "not_equal": "bool,bool",
    "subtract": "word,uint32 uint32,uint32",
    "where": "bool,uint32,word bool,word,uint32 bool,uint32,uint32",
}
_SCALARS = {"int": 1, "uint": np.uint64(1), "word": np.uint32(1)}
_CONVERSIONS = """
    int32,int64 int64,int32 int64,uint64 int64,int16 int32,uint64 uint64,int16 bool,int32 int16,int64 int16,int32
"""
_CONVERTED_WORDS = """
    int64,uint32 int32,uint32 uint32,int64 uint32,uint32 uint32,uint64 uint64,uint64 uint32,bool uint32,int16 bool,bool
"""
_TAKEN = "int64,int64 int64,int32 int64,int16 int32,int64 int32,int32 int32,int16 int32,bool"
_TAKEN_WORDS = "int32,uint32 uint32,uint32 int64,uint32 uint32,bool uint32,int32 uint32,int64 int64,bool"
_STORED = "int64,int32 int64,bool int32,int64 int32,int32 int32,int16 int32,bool"
_STORED_WORDS = "uint32,int32"
"""Types of an index, and of the array that is indexed."""
_SEARCHED = "int64,int64 int32,int64 int64,int32"
"""Types of the array that is searched and of the values."""


Operation = Callable[[], object]
"""Makes CuPy compile or load kernels."""


def operations(shards: bool) -> list[Operation]:
    """Functions that compile the kernels of a run on one GPU, the slowest first; then those of shards if `shards`."""
    alone = [*_own_kernels(), *_scans(), *_on_indices(_TAKEN, _STORED), *_ufuncs(_UFUNCS), *_others()]
    if not shards:
        return alone
    on_words = [*_on_indices(_TAKEN_WORDS, _STORED_WORDS), *_ufuncs(_UFUNCS_ON_WORDS), *_converted(_CONVERTED_WORDS)]
    return [*alone, *_of_shards(), *on_words]


def _of_shards() -> Iterator[Operation]:
    for cooperative, system in product((True, False), (0, 1)):
        yield partial(_compile, "shards/peel:shards", cooperative=cooperative, SYSTEM=system, WARPS=SHARD_WARPS)
    yield partial(_compile, "shards/peel:shards", SYSTEM=1, WARPS=SHARD_WARPS_ALONE)
    for side, (_, slots, warps, one_warp) in product((0, 1), tables.SIZES):
        yield partial(_compile, "shards/third_vertex", SIDE=side, SLOTS=slots, WARPS=warps, ONE_WARP=one_warp)
    for name in ("third_vertex:choose", "rows:measure_parts"):
        yield partial(_compile, f"shards/{name}")
    yield _pack_bits
    yield partial(cupy.arange, 5, dtype="uint32")
    yield partial(_compile, "filter:remove_edges", cooperative=True)
    for name in ("filter:survey", "changes:mark"):
        yield partial(_compile, name)


def _own_kernels() -> Iterator[Operation]:
    yield partial(_compile, "peel", cooperative=True)
    for side, (_, slots, warps, one_warp) in product((0, 1), tables.SIZES):
        yield partial(_compile, "intersect", SIDE=side, SLOTS=slots, WARPS=warps, ONE_WARP=one_warp)
    for name in ("intersect:group", "rows:fill_rows", "nest:unite", "delta:check", "arrays/total:total_bool"):
        yield partial(_compile, name)
    for name in ("count:count_int32", "scatter:scatter_sum"):
        yield partial(_compile, f"arrays/{name}")


def _compile(name: str, **options: Any) -> None:
    source.kernel(name, **options).compile()


def _ones(kind: str, length: int = LENGTH) -> Any:
    return cupy.ones(length, np.dtype(kind))


def _forms(text: str) -> list[list[str]]:
    return [form.split(",") for form in text.split()]


def _scans() -> Iterator[Operation]:
    for length in (_FEW, _SHORT, LENGTH):
        yield partial(_find, length)
        for kind in ("int32", "int64"):
            yield partial(_select, kind, length)
        for kind in ("bool", "int32"):
            yield partial(_sum_up, kind, length)
    yield _sort


def _find(length: int) -> None:
    cupy.flatnonzero(_ones("bool", length))


def _select(kind: str, length: int) -> None:
    _ones(kind, length)[_ones("bool", length)]


def _sum_up(kind: str, length: int) -> None:
    cupy.cumsum(_ones(kind, length), dtype=np.int32)


def _sort() -> None:
    cupy.sort(_ones("int64"))
    cupy.argsort(_ones("int64"))


def _on_indices(taken: str, stored: str) -> Iterator[Operation]:
    for index, kind in _forms(taken):
        yield partial(_take, index, kind)
    for index, kind in _forms(stored):
        yield partial(_store, index, kind)


def _take(index: str, kind: str) -> None:
    _ones(kind)[_ones(index)]


def _store(index: str, kind: str) -> None:
    array = _ones(kind)
    array[_ones(index)] = True if kind == "bool" else array.copy()


def _search(keys: str, values: str) -> None:
    cupy.searchsorted(_ones(keys), _ones(values))


def _pack_bits() -> None:
    cupy.unpackbits(cupy.packbits(_ones("bool")))


def _ufuncs(functions: Mapping[str, str]) -> Iterator[Operation]:
    for name, forms in functions.items():
        for kinds in _forms(forms):
            yield partial(_call, name, kinds)


def _call(name: str, kinds: list[str]) -> None:
    getattr(cupy, name)(*map(_operand, kinds))


def _operand(kind: str) -> Any:
    return _SCALARS[kind] if kind in _SCALARS else _ones(kind)


def _converted(conversions: str) -> Iterator[Operation]:
    for before, after in _forms(conversions):
        yield partial(_convert, before, after)


def _others() -> Iterator[Operation]:
    yield from _converted(_CONVERSIONS)
    for keys, values in _forms(_SEARCHED):
        yield partial(_search, keys, values)
    for kind in ("int64", "int32", "uint32", "int16", "bool"):
        yield partial(_assign, kind)
        yield partial(cupy.full, 5, 1, kind)
    for kind in ("int32", "int64"):
        yield partial(cupy.arange, 5, dtype=kind)


def _convert(before: str, after: str) -> None:
    _ones(before).astype(after)


def _assign(kind: str) -> None:
    array = _ones(kind)
    array[:] = _ones(kind)
    array[:] = 1
    array[::2].copy()
    array[0] = 1


_MOST = 12
"""Maximum number of processes. Each takes about two seconds to start. All operations of a run on one GPU together take
about twenty seconds to compile, and so do those of shards.
"""
_LOCK = "gpu.lock"
"""File in the cache folder that is locked by the process that compiles."""
_NUMBER = 2
"""Bytes of the number of an operation in the pipe. The system never splits these bytes between two processes."""


def start(processes: int, shards: bool) -> list[subprocess.Popen[bytes]]:
    """Start up to `processes` processes that compile the operations of a run, with `shards` or without. The caller has
    to wait for the processes.

    An operation that a process fails to compile is compiled when a run needs it.
    """
    started = []
    reader, writer = os.pipe()
    try:
        os.write(writer, b"".join(number.to_bytes(_NUMBER, "little") for number in range(len(operations(shards)))))
        os.close(writer)
        with suppress(OSError):  # no further process may be allowed
            for _ in range(min(processes, _MOST)):
                command = [sys.executable, "-m", __spec__.name]
                started.append(subprocess.Popen(command, stdin=reader, stdout=DEVNULL, stderr=DEVNULL))
    finally:
        os.close(reader)
    return started


@contextmanager
def preparing(what: str) -> Iterator[None]:
    """Within the context the caller compiles all kernels for `what`, or loads them from CuPy's cache.

    At the first run on a machine one process compiles, and the others wait for this process. If it ends before all is
    compiled, the next process goes on.
    """
    with ExitStack() as lock:
        if not is_prepared(what):
            with suppress(OSError, RuntimeError):  # without a folder for the cache each process compiles
                _folder().mkdir(parents=True, exist_ok=True)
                file = lock.enter_context(Path(_folder(), _LOCK).open("w"))
                fcntl.flock(file, fcntl.LOCK_EX)
            if is_prepared(what):
                lock.close()
        yield
        if not is_prepared(what):
            mark_prepared(what)


def is_prepared(what: str) -> bool:
    """Whether `mark_prepared` was called with `what` on this machine, and CuPy's cache has not lost kernels since."""
    with suppress(OSError, RuntimeError, ValueError):
        if _cached() >= int(_mark(what).read_text()):
            with suppress(OSError):
                os.utime(_folder())  # folders that are unused for long are removed
            return True
    return False


def mark_prepared(what: str) -> None:
    """Record that all kernels for `what` are in CuPy's cache. Does nothing if the cache folder cannot be written."""
    with suppress(OSError, RuntimeError):
        _mark(what).parent.mkdir(parents=True, exist_ok=True)
        _mark(what).write_text(str(_cached()))


def _mark(what: str) -> Path:
    """The file that marks `what` as prepared. Its name depends on everything that compiled kernels depend on."""
    parts = (what, cupy.__version__, cupy.cuda.nvrtc.getVersion(), _device(), _cupy_folder(), _sources())
    return _folder() / f"gpu-{hashlib.sha256(repr(parts).encode()).hexdigest()[:32]}"


def _folder() -> Path:
    """The folder of the marks and the lock. Does not depend on Numba, which takes long to import."""
    return cache_folder.home() / cache_folder.sources()


def _device() -> str:
    return str(cupy.cuda.Device().compute_capability)


def _sources() -> str:
    """The hash of our CUDA sources."""
    whole = hashlib.sha256()
    for path in sorted((cache_folder.KERNELS / "cuda").rglob("*.cu*")):
        whole.update(path.name.encode() + path.read_bytes())
    return whole.hexdigest()


def _cupy_folder() -> Path:
    """CuPy's cache folder, as its documentation has it."""
    return Path(os.environ.get("CUPY_CACHE_DIR") or Path.home() / ".cupy" / "kernel_cache").absolute()


def _cached() -> int:
    """The number of kernels in CuPy's cache."""
    return sum(name.endswith(".cubin") for name in os.listdir(_cupy_folder()))


def _main() -> None:
    all_of_them = operations(shards=True)
    while number := os.read(sys.stdin.fileno(), _NUMBER):
        with suppress(Exception):  # the run that needs this operation reports the error
            all_of_them[int.from_bytes(number, "little")]()
    cupy.cuda.get_current_stream().synchronize()


if __name__ == "__main__":
    _main()
