"""A folder for a temporary result, removed once nothing refers to it.

`mine("edges.parquet").edges.to_batches()` reads after the last reference to the result. Datasets, their fragments and
scanners refer to their Arrow file system, and `folder_files` makes one that refers to the folder.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import weakref
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
from pyarrow.fs import FileSystemHandler, LocalFileSystem, PyFileSystem

from ...tasks.errors import UsageError
from .table import TEMPORARY


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


def folder_files(folder: TemporaryFolder) -> PyFileSystem:
    """A read-only file system of this machine that refers to `folder`."""
    return PyFileSystem(_FolderFiles(folder))


class _FolderFiles(FileSystemHandler):  # type: ignore[misc]
    """Opens files as Arrow does, so that reads do not run Python code. A pickled copy does not refer to the folder."""

    def __init__(self, folder: TemporaryFolder | None) -> None:
        self._folder = folder
        self._files = LocalFileSystem()

    def __reduce__(self) -> tuple[Any, ...]:
        return _FolderFiles, (None,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _FolderFiles) and other._folder is self._folder

    def __hash__(self) -> int:
        return hash(id(self._folder))

    def get_type_name(self) -> str:
        return TEMPORARY

    def normalize_path(self, path: str) -> str:
        return str(self._files.normalize_path(path))

    def get_file_info(self, paths: list[str]) -> Any:
        return self._files.get_file_info(paths)

    def get_file_info_selector(self, selector: Any) -> Any:
        return self._files.get_file_info(selector)

    def open_input_stream(self, path: str) -> Any:
        return self._files.open_input_stream(path, compression=None)

    def open_input_file(self, path: str) -> Any:
        return self._files.open_input_file(path)

    def _refuse(self, *_: object, **__: object) -> Any:
        raise pa.ArrowInvalid("a temporary result is read-only")

    create_dir = delete_dir = delete_dir_contents = delete_root_dir_contents = delete_file = _refuse
    move = copy_file = open_output_stream = open_append_stream = _refuse
