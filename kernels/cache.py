"""Compiled kernels that outlive a virtual environment and a checkout.

Numba keeps the machine code of ``njit(cache=True)`` beside the source file and checks that file alone: a fresh checkout
compiles everything again, and an edit of a kernel that another file calls is not noticed. Here the code is kept in the
user's cache folder under a hash of all that it depends on: the same sources hit wherever they lie, and any edit misses.

The folder is ``EDGEMILL_CACHE_DIR``, else ``XDG_CACHE_HOME/edgemill``, else ``~/.cache/edgemill``. A
``NUMBA_CACHE_DIR`` or ``NUMBA_CACHE_LOCATOR_CLASSES`` set by the user wins, and where the folder cannot be written
Numba chooses as it always does.

An environment may hold compiled kernels, as the images do: ``sys.prefix/share/edgemill`` is read first and not
written, so that root can own it. Numba keeps the processor and its features with each signature, so code for another
processor is not used.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import re
import shutil
import sys
import tempfile
import time
import uuid
from functools import lru_cache
from pathlib import Path
from types import FunctionType
from typing import Any

import llvmlite
import numba
import numpy
from numba.core import caching, dispatcher
from numba.core.runtime import rtsys

KERNELS = Path(__file__).resolve().parent
NumbaFiles: Any = caching.IndexDataCacheFile
Dispatching: Any = dispatcher
KEPT_SECONDS = 30 * 24 * 3600
"""A hash folder that no process opened for so long is removed."""


def folder() -> Path:
    """The folder of the code compiled from these very sources; it need not exist yet.

    Raises RuntimeError where neither the environment nor the system names a home.
    """
    return _home() / "kernels" / _fingerprint()


def environment_folder() -> Path:
    """The folder of the code that was compiled into this environment from these very sources; it need not exist."""
    return Path(sys.prefix) / "share" / "edgemill" / "kernels" / _fingerprint()


def install() -> None:
    """Make Numba keep the kernels of this folder in :func:`folder`; call it before the first of them is defined.

    Also removes what other sources left there and nobody has used for 30 days. A second call changes nothing.
    """
    locators = caching.CacheImpl._locator_classes
    if ContentLocator not in locators:
        locators.insert(0, ContentLocator)
        locators.append(PassingLocator)
        caching.IndexDataCacheFile = KernelFiles
        Dispatching.FunctionCache = KernelCache
        with contextlib.suppress(OSError, RuntimeError):
            _forget_unused(folder())


class ContentLocator(caching._CacheLocator):  # type: ignore[misc]
    """Where Numba keeps one function of the kernels folder: by content, not by path and time."""

    def __init__(self, py_func: FunctionType, py_file: str) -> None:
        self._py_file = py_file
        self._name = Path(py_file).resolve().relative_to(KERNELS).with_suffix("").as_posix().replace("/", ".")
        self._line = py_func.__code__.co_firstlineno
        self._path = self._choose_path()

    def _choose_path(self) -> Path:
        return folder()

    def get_cache_path(self) -> str:
        """The folder, the same for all functions."""
        return str(self._path)

    def get_source_stamp(self) -> str:
        """The hash of all sources; it is in the path too, which keeps two versions from overwriting each other."""
        return _fingerprint()

    def get_disambiguator(self) -> str:
        """Tells functions of one name apart by file and line."""
        return f"{self._name}-{self._line}"

    @classmethod
    def from_function(cls, py_func: FunctionType, py_file: str) -> ContentLocator | None:
        """A locator, or None, and Numba asks the next class: a foreign function, a folder that cannot be written."""
        if numba.config.CACHE_DIR or not Path(py_file).resolve().is_relative_to(KERNELS):
            return None
        try:
            locator = cls(py_func, py_file)
            locator.ensure_cache_path()
        except (OSError, RuntimeError):
            return None
        return locator


class PassingLocator(ContentLocator):
    """The last resort: with no folder to write to Numba would refuse to define the kernel, so a passing one serves."""

    def _choose_path(self) -> Path:
        return Path(_passing_folder().name)


class KernelFiles(NumbaFiles):  # type: ignore[misc]
    """Numba's files of one kernel: those of the environment first, then those of the user's folder.

    New files go to the user's folder, with a name of its own for each signature.

    Numba counts 1, 2, …, so two processes that save different signatures at once may both write file 1, and the index
    then leads one signature to the code of the other. With unique names a race costs a compilation at most.
    """

    def load(self, key: object) -> object:
        """The code of one compiled signature, or None."""
        if self._source_stamp == _fingerprint():
            stem = Path(self._index_name).stem
            kept = NumbaFiles(str(environment_folder()), stem, self._source_stamp)
            if (found := kept.load(key)) is not None:
                return found
        return super().load(key)

    def save(self, key: object, entry: object) -> None:
        """Write one compiled signature and enter it in the index."""
        if self._source_stamp == _fingerprint():
            self._data_name_pattern = f"{Path(self._index_name).stem}.{uuid.uuid4().hex[:12]}.{{number:d}}.nbc"
        super().save(key, entry)


class KernelCache(caching.FunctionCache):  # type: ignore[misc]
    """Numba's cache of one function. A compiled kernel is loaded without what only a compiler needs.

    Before it looks into its files, Numba imports and enters all that it could compile, which takes longer than to load
    every kernel of a run. Machine code needs Numba's runtime alone.
    """

    def load_overload(self, sig: object, target_context: Any) -> object:
        """The code of one compiled signature, or None; all is ready to compile it then."""
        if isinstance(self._impl.locator, ContentLocator):
            rtsys.initialize(target_context)
            if (found := self._load_overload(sig, target_context)) is not None:
                return found
        return super().load_overload(sig, target_context)


@lru_cache(maxsize=1)
def _passing_folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="edgemill-kernels-")


def _home() -> Path:
    if chosen := os.environ.get("EDGEMILL_CACHE_DIR"):
        return Path(chosen).expanduser().absolute()
    if shared := os.environ.get("XDG_CACHE_HOME"):
        return Path(shared).absolute() / "edgemill"
    return Path.home() / ".cache" / "edgemill"


@lru_cache(maxsize=1)
def _fingerprint() -> str:
    """Hash of the sources, versions and switches that shape the machine code; Numba adds processor and signature."""
    whole = hashlib.sha256()
    for part in (sys.implementation.cache_tag, platform.python_version(), *_compiler()):
        whole.update(f"{part}\n".encode())
    for source in sorted(KERNELS.rglob("*.py"), key=lambda path: path.relative_to(KERNELS).as_posix()):
        text = source.read_bytes()
        whole.update(f"{source.relative_to(KERNELS).as_posix()} {len(text)}\n".encode() + text)
    return whole.hexdigest()[:32]


def _compiler() -> tuple[object, ...]:
    switches = numba.config.OPT, numba.config.BOUNDSCHECK
    return numba.__version__, llvmlite.__version__, numpy.__version__, *switches


def _forget_unused(current: Path) -> None:
    """Mark the current hash folder as used now and remove its neighbours last marked more than 30 days ago."""
    if current.exists():
        os.utime(current)
    oldest = time.time() - KEPT_SECONDS
    for other in current.parent.iterdir():
        if other != current and re.fullmatch("[0-9a-f]{32}", other.name) and other.stat().st_mtime < oldest:
            shutil.rmtree(other, ignore_errors=True)
