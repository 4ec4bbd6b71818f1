"""Compilation of kernels in parts, by several processes at the same time.

Numba compiles in one thread of a process at a time, so threads would not help.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from subprocess import DEVNULL, PIPE
from typing import Any

from .. import cpu
from . import cache

_calling = threading.Lock()
"""One thread at a time calls parts, so that it can count the kernels that it compiles."""


@dataclass(frozen=True)
class WarmUp:
    """The cost of compiling or loading kernels."""

    compiled: int
    """Kernels that were compiled. The others came from the cache or had been loaded before."""
    seconds: float


@dataclass(frozen=True)
class Parts:
    """Parts of kernels. A process can compile each part alone."""

    module: str
    """The module that calls `compile_named` if it is run."""
    calls: Mapping[str, Callable[[], None]]
    """Functions that call all kernels of a part on small inputs, by the part's name."""
    seconds: Mapping[str, float]
    """Approximate seconds that each part takes to compile."""
    _called: set[str] = field(default_factory=set, init=False, repr=False, compare=False)
    """Parts that this process has called. Further calls would take a tenth of the time of a small run."""

    def load(self, names: Sequence[str], processes: int = 1, here: bool = True) -> WarmUp:
        """Call the kernels of some parts. Up to `processes` processes compile the parts that no cache has yet, this
        process among them if `here`.
        """
        start, compiled = time.perf_counter(), 0
        names = [name for name in names if name not in self._called]
        missing = [name for name in names if not cache.is_marked(name)] if processes > 1 and cache.is_kept() else []
        if len(missing) > here:
            compiled = self._compile(missing, processes, here)
        compiled += self._call(names)  # loads the parts that other processes have compiled
        return WarmUp(compiled, time.perf_counter() - start)

    def compile_named(self) -> None:
        """Compile the parts that the command line names, and print the number of kernels that this compiled."""
        print(self._call(sys.argv[1:]))

    def _compile(self, names: Sequence[str], processes: int, here: bool) -> int:
        """Compile parts in other processes, and in this one if `here`. Returns the number of compiled kernels.

        This process takes the longest share, since others take time to start. Parts that another process fails to
        compile are compiled here later.
        """
        shares: list[list[str]] = [[] for _ in range(min(processes, len(names)))]
        for name in sorted(names, key=self.seconds.__getitem__, reverse=True):
            min(shares, key=self._seconds_of).append(name)
        shares.sort(key=self._seconds_of)
        own = shares.pop() if here else []
        command = [sys.executable, "-m", self.module]
        started: list[subprocess.Popen[str]] = []
        with suppress(OSError):  # no further process may be allowed
            for share in shares:
                words = [*command, *share]
                started.append(subprocess.Popen(words, stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL, text=True))
        compiled = self._call(own)
        told = [process.communicate()[0].strip() for process in started]
        return compiled + sum(int(count) for count in told if count.isdecimal())

    def _seconds_of(self, names: Sequence[str]) -> float:
        return sum(self.seconds[name] for name in names)

    def _call(self, names: Sequence[str]) -> int:
        """Call the kernels of some parts. Returns the number of kernels that this process compiled.

        Parts that another process is compiling come last, so that processes share the work.
        """
        if not names:
            return 0
        with _calling:
            before = _compiled()
            left = [name for name in names if not self._is_called(name, wait=False)]
            for name in left:
                self._is_called(name, wait=True)
            return _compiled() - before

    def _is_called(self, name: str, wait: bool) -> bool:
        with cache.compiling(name, wait) as now:
            if now:
                self.calls[name]()
                self._called.add(name)
            return now


def _compiled() -> int:
    """Number of kernels that this process has compiled."""
    modules = [module for name, module in list(sys.modules.items()) if name.startswith(f"{cpu.__name__}.")]
    # By identity, as some modules import kernels of others.
    found: dict[int, Any] = {id(k): k for module in modules for k in vars(module).values() if hasattr(k, "stats")}
    return sum(sum(k.stats.cache_misses.values()) for k in found.values())
