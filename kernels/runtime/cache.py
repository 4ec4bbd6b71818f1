"""The cache of compiled kernels: machine code on disk that outlives a virtual environment and a checkout.

`cached_njit` is Numba's `njit` with this cache instead of Numba's own. Numba keeps the machine code of
``njit(cache=True)`` beside the source file and checks that file alone: a new checkout compiles everything again, and an
edit of a kernel that another file calls is not noticed. This cache keeps the code in the user's cache folder, under a
hash of all Python sources of the kernels: the same sources hit at any path, and any edit misses.

The folder is ``EDGEMILL_CACHE_DIR``, else ``XDG_CACHE_HOME/edgemill``, else ``~/.cache/edgemill``. If the user sets
``NUMBA_CACHE_DIR`` or ``NUMBA_CACHE_LOCATOR_CLASSES``, or if the folder cannot be written, Numba chooses the folder as
it does for any function. An environment may contain kernels that were compiled ahead, as the container images and
wheels for one version of Python do: ``sys.prefix/share/edgemill`` is read first and never written, so root can own it.
Numba stores the processor and its features with each signature, so code for another processor is not used. Kernels
compiled ahead run on all processors with the instructions of `PORTABLE`. Other processors compile their own code, and
so does every processor if the user sets ``NUMBA_CPU_NAME`` or ``NUMBA_CPU_FEATURES``.

Why this subclasses Numba's private cache classes: Numba has no public interface for a cache. ``NUMBA_CACHE_DIR`` still
names files by the path and the time of the source and applies to the whole process. A locator class in
``NUMBA_CACHE_LOCATOR_CLASSES`` applies to the whole process, cannot read two folders, and loads only after Numba has
prepared its compiler, which takes longer than loading every kernel of a run. Nothing of Numba is replaced:
`cached_njit` sets two attributes of the kernels it defines, and functions of other packages keep Numba's own cache.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import platform
import re
import shutil
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import lru_cache, partial
from pathlib import Path
from types import FunctionType
from typing import Any

import llvmlite
import llvmlite.binding
import numba
import numpy
from numba.core import caching, codegen
from numba.core.runtime import rtsys

from .cache_folder import KERNELS, environment, home, sources
from .threads import numba_is_loaded

_written: set[Path] = set()
"""Cache folders that this process has found to be writable."""
PORTABLE: Mapping[str, tuple[str, frozenset[str]]] = {
    "x86_64": (
        "x86-64-v3",
        frozenset(("cx16", "sahf", "popcnt", "sse3", "ssse3", "sse4.1", "sse4.2"))
        | frozenset(("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave")),
    ),
    "aarch64": ("generic", frozenset()),
}
"""By machine, the processor for which kernels are compiled ahead, and the features that a processor needs to run them.
Names are LLVM's. Most Intel processors since 2013 and AMD's since 2015 are x86-64-v3 (System V ABI for x86-64, 3.1.1).
"""
UNUSED_SECONDS = 30 * 24 * 3600
"""Age at which an unused hash folder is removed. Each process that starts marks its own folder as used."""

numba_is_loaded()


def cached_njit(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Numba's `njit` with ``nogil=True`` and this cache. `options` are those of `njit`.

    Used as ``@cached_njit`` or ``@cached_njit(parallel=True)``. A kernel that another one calls with a constant is
    compiled for the type of the constant, where Numba would compile it anew for each value.
    """
    if function is None:
        return partial(cached_njit, **options)
    dispatcher = numba.njit(nogil=True, **options)(function)
    dispatcher._cache = KernelCache(function)
    dispatcher.get_call_template = partial(_call_by_type, dispatcher.get_call_template)
    return dispatcher


def _call_by_type(template: Callable[..., Any], args: Sequence[Any], kws: Mapping[str, Any]) -> Any:
    """The `template` of a call with the types of constants in place of the constants."""
    unliteral = numba.types.unliteral
    return template(tuple(map(unliteral, args)), {name: unliteral(one) for name, one in kws.items()})


def folder() -> Path:
    """The folder for code compiled from the present sources. It may not exist yet.

    Raises RuntimeError if neither the environment nor the system names a home folder.
    """
    return home() / _fingerprint()


def environment_folder() -> Path:
    """The folder for code compiled into this environment from the present sources. It may not exist."""
    return environment() / _fingerprint()


def is_kept() -> bool:
    """Whether compiled kernels are kept in this project's folder."""
    if numba.config.CACHE_DIR:
        return False
    try:
        return folder() in _written
    except RuntimeError:
        return False


def is_marked(part: str) -> bool:
    """Whether `part` is marked for the present sources and processor, in the folder of the user or the environment."""
    marks = [Path(place, _mark(part, _processor())) for place in (environment_folder(), folder())]
    if (portable := _portable()) is not None:
        marks.append(environment_folder() / _mark(part, portable))
    return any(mark.exists() for mark in marks)


@contextmanager
def compiling(part: str, wait: bool = True) -> Iterator[bool]:
    """Within the context the caller calls all kernels of `part`, which compiles or loads them. Then marks the part.

    One process at a time compiles a part for a folder; processes that waited load the kept code. Without `wait`, yields
    False if another process compiles the part, and the caller must not call its kernels. The system releases the lock
    of a process that is killed, and the next process goes on.
    """
    with ExitStack() as lock:
        path = None
        if is_kept() and not is_marked(part):
            path = Path(folder(), f"{part}.lock")
            try:
                file = lock.enter_context(path.open("w"))
                fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            except OSError:
                pass  # a file system without locks: each process compiles
            if is_marked(part):
                lock.close()
        yield True
        mark(part)
        if path is not None:
            path.unlink(missing_ok=True)  # processes that wait for the lock find the mark


def mark(part: str) -> None:
    """Mark that all kernels of `part` are kept. Does nothing if they are not, or if this is marked already."""
    if is_kept() and not is_marked(part):
        with contextlib.suppress(OSError):
            Path(folder(), _mark(part, _processor())).touch()


def _mark(part: str, processor: str) -> str:
    """The name of the file that marks a part, for one processor: code for another is not used."""
    return f"{part}-{processor}.compiled"


def _processor() -> str:
    """The processor that kernels are compiled for: this one, unless the user names another."""
    return str(numba.config.CPU_NAME or llvmlite.binding.get_host_cpu_name())


def _portable() -> str | None:
    """The processor of `PORTABLE`, if this one runs its code. None if the user has chosen a processor or features."""
    name, needed = PORTABLE.get(platform.machine(), (None, frozenset()))
    if numba.config.CPU_NAME is not None or numba.config.CPU_FEATURES is not None:
        return None
    return name if needed <= _features() else None


@lru_cache(maxsize=1)
def _features() -> frozenset[str]:
    """The features of this processor that Numba uses."""
    return frozenset(word[1:] for word in codegen.get_host_cpu_features().split(",") if word.startswith("+"))


def remove_unused() -> None:
    """Mark the hash folder of the present sources as used, and remove folders that were unused for 30 days.

    Does nothing if the cache folder cannot be read or written.
    """
    with contextlib.suppress(OSError, RuntimeError):
        _remove_unused(folder())


class ContentLocator(caching._CacheLocator):  # type: ignore[misc]
    """The location of one kernel in the cache: by the content of all sources, not by path and time."""

    def __init__(self, py_func: FunctionType, py_file: str) -> None:
        self._py_file = py_file
        self._name = _module(py_file)
        self._line = py_func.__code__.co_firstlineno
        self._path = self._choose_path()

    def _choose_path(self) -> Path:
        return folder()

    def get_cache_path(self) -> str:
        """The cache folder. It is the same for all kernels."""
        return str(self._path)

    def ensure_cache_path(self) -> None:
        """Create the cache folder. Raises OSError if it cannot be written, which is tried once for all kernels."""
        if self._path not in _written:
            super().ensure_cache_path()
            _written.add(self._path)

    def get_source_stamp(self) -> str:
        """The hash of all sources. The path contains it too, so versions do not overwrite each other."""
        return _fingerprint()

    def get_disambiguator(self) -> str:
        """File and line, which distinguish kernels of the same name."""
        return f"{self._name}-{self._line}"

    @classmethod
    def from_function(cls, py_func: FunctionType, py_file: str) -> ContentLocator | None:
        """A locator. None if the user has chosen a folder for Numba, the function is not in the kernels folder, or the
        cache folder cannot be written: Numba then tries the next locator class.
        """
        if numba.config.CACHE_DIR or _module(py_file) is None:
            return None
        try:
            locator = cls(py_func, py_file)
            locator.ensure_cache_path()
        except (OSError, RuntimeError):
            return None
        return locator


class TemporaryLocator(ContentLocator):
    """The last choice, a temporary folder: Numba refuses to define a cached kernel without a writable folder."""

    def _choose_path(self) -> Path:
        return Path(_temporary_folder().name)


class KernelFiles(caching.IndexDataCacheFile):  # type: ignore[misc]
    """The index and the data files of one kernel. Reads the environment's files first, then those in the user's folder.

    New files go to the user's folder, under a unique name for each signature. Numba numbers its files from 1, so two
    processes that save different signatures at the same time may both write file 1, and the index then maps one
    signature to the code of the other. With unique names a race costs at most one compilation.
    """

    def load(self, key: object) -> object:
        """The code of one compiled signature; None if the cache does not contain it."""
        stem = Path(self._index_name).stem
        environment = caching.IndexDataCacheFile(str(environment_folder()), stem, self._source_stamp)
        for kept in (key, _portable_key(key)):
            if kept is not None and (found := environment.load(kept)) is not None:
                return found
        return super().load(key)

    def save(self, key: object, entry: object) -> None:
        """Write one compiled signature and add it to the index."""
        self._data_name_pattern = f"{Path(self._index_name).stem}.{uuid.uuid4().hex[:12]}.{{number:d}}.nbc"
        super().save(key, entry)


def _portable_key(key: object) -> object | None:
    """The same key for the processor `_portable`; None if there is no such processor."""
    match key, _portable():
        case (signature, (triple, _, _), code), str(processor):
            return signature, (triple, processor, ""), code
    return None


class KernelCacheImpl(caching.CompileResultCacheImpl):  # type: ignore[misc]
    """Numba's serialisation of kernels. Tries this project's locator, then Numba's, then a temporary folder."""

    _locator_classes = (ContentLocator, *caching.CacheImpl._locator_classes, TemporaryLocator)


class KernelCache(caching.FunctionCache):  # type: ignore[misc]
    """The cache of one kernel. Loads a compiled kernel without initialising Numba's compiler.

    Numba initialises its compiler before it reads its cache, which takes longer than loading every kernel of a run.
    Running machine code needs only Numba's runtime.
    """

    _impl_class = KernelCacheImpl

    def __init__(self, py_func: Callable[..., Any]) -> None:
        super().__init__(py_func)
        self._own_files = isinstance(self._impl.locator, ContentLocator)
        if self._own_files:
            self._cache_file = KernelFiles(self._cache_path, self._impl.filename_base, _fingerprint())

    def load_overload(self, sig: object, target_context: Any) -> object:
        """The code of one compiled signature. If the cache has none: None, and the compiler is initialised."""
        if self._own_files:
            rtsys.initialize(target_context)
            if (found := self._load_overload(sig, target_context)) is not None:
                return found
        return super().load_overload(sig, target_context)


@lru_cache(maxsize=1)
def _temporary_folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="edgemill-kernels-")


@lru_cache(maxsize=256)
def _module(file: str) -> str | None:
    """The name of the module of a source file in the kernels folder; None for other files."""
    path = Path(file).resolve()
    return ".".join(path.relative_to(KERNELS).with_suffix("").parts) if path.is_relative_to(KERNELS) else None


@lru_cache(maxsize=1)
def _fingerprint() -> str:
    """Hash of the sources, versions and switches that determine the machine code. Numba adds processor and signature.

    Of Python and NumPy only the minor version counts: its releases have the same bytecode and interfaces, so kernels
    compiled ahead serve all of them.
    """
    whole = hashlib.sha256()
    for part in (sys.implementation.cache_tag, *_compiler()):
        whole.update(f"{part}\n".encode())
    whole.update(sources().encode())
    return whole.hexdigest()[:32]


def _compiler() -> tuple[object, ...]:
    switches = numba.config.OPT, numba.config.BOUNDSCHECK
    numpy_minor = numpy.__version__.split(".")[:2]
    return numba.__version__, llvmlite.__version__, numpy_minor, *switches


def _remove_unused(current: Path) -> None:
    if current.exists():
        os.utime(current)
    oldest = time.time() - UNUSED_SECONDS
    for other in current.parent.iterdir():
        if other != current and re.fullmatch("[0-9a-f]{32}", other.name) and other.stat().st_mtime < oldest:
            shutil.rmtree(other, ignore_errors=True)
