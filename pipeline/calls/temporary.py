"""A folder for a temporary result, removed once nothing refers to it."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from pathlib import Path

from ...tasks.errors import UsageError


class TemporaryFolder:
    """A new folder below `TMPDIR`. It is removed with this object and when Python exits.

    Raises UsageError if it cannot be created.
    """

    def __init__(self) -> None:
        try:
            self._path = tempfile.mkdtemp(prefix="edgemill-")
        except OSError as error:
            raise UsageError(
                f"cannot make a folder for a temporary result in {tempfile.gettempdir()}: {error.strerror}; "
                "name an output, or another folder in the environment variable TMPDIR"
            ) from error
        self._finalizer = weakref.finalize(self, _remove, self._path, os.getpid())

    @property
    def result(self) -> Path:
        """The folder of the result, which a run creates."""
        return Path(self._path, "result")

    @property
    def is_removed(self) -> bool:
        """Whether the folder was removed."""
        return not self._finalizer.alive

    def remove(self) -> None:
        """Remove the folder and its contents. Idempotent."""
        self._finalizer()


def _remove(path: str, owner: int) -> None:
    if os.getpid() == owner:  # not in a forked process
        shutil.rmtree(path, ignore_errors=True)
