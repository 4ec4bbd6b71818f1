"""A folder for a temporary result, removed once nothing refers to it."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import weakref
from pathlib import Path
from typing import Self

from ...tasks.errors import UsageError


def new_folder() -> Path:
    """A new folder below `TMPDIR`. Raises UsageError if it cannot be created."""
    try:
        return Path(tempfile.mkdtemp(prefix="edgemill-"))
    except OSError as error:
        raise UsageError(
            f"cannot make a folder for a temporary result in {tempfile.gettempdir()}: {error.strerror}; "
            "name an output, or another folder in the environment variable TMPDIR"
        ) from error


class TemporaryFolder:
    """A new folder below `TMPDIR`. It is removed with this object and when Python exits.

    Raises UsageError if it cannot be created.
    """

    def __init__(self) -> None:
        self._path = str(new_folder())
        self._finalizer = weakref.finalize(self, _remove, self._path, os.getpid())
        self._holders, self._lock = 1, threading.Lock()

    @property
    def result(self) -> Path:
        """The folder of the result, which a run creates."""
        return Path(self._path, "result")

    @property
    def is_removed(self) -> bool:
        """Whether the folder was removed."""
        return not self._finalizer.alive

    def held(self) -> Self:
        """Hold the folder for another object, which will `release` it or drop its reference."""
        with self._lock:
            self._holders += 1
        return self

    def release(self) -> None:
        """Remove the folder if no other object holds it."""
        with self._lock:
            self._holders -= 1
            is_last = not self._holders
        if is_last:
            self.remove()

    def remove(self) -> None:
        """Remove the folder and its contents. Idempotent."""
        self._finalizer()


def _remove(path: str, owner: int) -> None:
    if os.getpid() == owner:  # not in a forked process
        shutil.rmtree(path, ignore_errors=True)
