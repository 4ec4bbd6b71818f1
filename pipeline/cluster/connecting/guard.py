"""Processes in which `mine` cannot run, and what a call does about each.

- A script without `if __name__ == "__main__":` that starts worker processes. Python starts a worker process with an
  import of the main script. Without that line the import calls `mine` again, in every worker. The run then ends with
  one error, in the script's own process.
- A process that was forked from one in which edgemill's threads were at work, or in which OpenMP's threads had run
  kernels. Threads do not survive a fork: the call would wait for them for ever, or Numba would end the process.
- A daemonic process, as of `multiprocessing.Pool`, that would start worker processes.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing import current_process
from pathlib import Path

from ....tasks.errors import ClusterLost, UsageError

_MARKER = "EDGEMILL_UNGUARDED"
"""Environment variable of starting worker processes: path of the file that they make if the script has no guard."""
_ADVICE = (
    "worker processes (cluster.workers) import the script that starts them: "
    'call mine below `if __name__ == "__main__":` in it, or leave workers out'
)
_OTHER_START = (
    'start processes by another method, as by multiprocessing.get_context("spawn") or "forkserver", or fork before the '
    "first call"
)


class _Calls:
    """The calls of this process that are running, and whether a fork cut them off."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.running = 0
        self.forked = False
        self.cut_off = False

    def after_fork(self) -> None:
        """In a child process: the threads of the parent's calls are not there, and locks that they held stay locked."""
        self.lock, self.forked = threading.Lock(), True
        self.cut_off = self.cut_off or self.running > 0
        self.running = 0


_calls = _Calls()
os.register_at_fork(after_in_child=_calls.after_fork)


@contextmanager
def guarded_call() -> Iterator[None]:
    """A call of `mine` within the block. Raises UsageError in a process in which it cannot run.

    `mine` cannot run in a process that is still starting and imports a main script that calls `mine`. A worker process
    of a run ends here without output instead: the run that starts the process reports the error.
    """
    _refuse_import()
    _refuse_fork()
    with _calls.lock:
        _calls.running += 1
    try:
        yield
    finally:
        with _calls.lock:
            _calls.running -= 1


def _refuse_import() -> None:
    if not getattr(current_process(), "_inheriting", False):  # multiprocessing detects this mistake in the same way
        return
    marker = os.environ.get(_MARKER)
    if marker is None:
        raise UsageError(_ADVICE)
    with suppress(OSError):
        Path(marker).touch()
    os._exit(UsageError.exit_code)


def _refuse_fork() -> None:
    if not _calls.forked:
        return
    if _calls.cut_off:
        raise UsageError(f"this process was forked while edgemill ran in another thread: {_OTHER_START}")
    from ....kernels.runtime.threads import lost_by_fork  # loads the kernels

    if lost_by_fork():
        raise UsageError(
            "this process was forked from one that had called edgemill, and the threads of OpenMP, which run its "
            f"kernels, do not survive a fork: {_OTHER_START}"
        )


def refuse_daemon() -> None:
    """Raises UsageError if this process may not start others, as a worker of Dask or of `multiprocessing.Pool`."""
    if current_process().daemon:
        raise UsageError(
            "cluster.workers starts processes, and this process may not, as it is daemonic (a worker of Dask or of "
            "multiprocessing.Pool): leave workers out, or use concurrent.futures.ProcessPoolExecutor"
        )


@contextmanager
def guarded_start(folder: str | None) -> Iterator[None]:
    """Worker processes start within the block, and in no other thread at the same time. Their marker file lies in
    `folder`, None for that of temporary files.

    Raises UsageError if they found the script without its guard, ClusterLost if they fail to start for another reason.
    """
    with tempfile.TemporaryDirectory(prefix="edgemill-", dir=folder) as own:
        marker = Path(own) / "unguarded"
        os.environ[_MARKER] = str(marker)
        try:
            yield
        except RuntimeError as error:
            if marker.exists():
                raise UsageError(_ADVICE) from None
            raise ClusterLost(
                f"the workers could not be started ({error}); stderr may have the reason. "
                f"If the script does more than call mine: {_ADVICE}"
            ) from error
        finally:
            os.environ.pop(_MARKER, None)
