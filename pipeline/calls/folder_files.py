"""An Arrow file system that keeps a temporary folder alive while a dataset can read from it.

`mine("edges.parquet").edges.to_batches()` reads after the last reference to the result. Datasets, their fragments and
scanners refer to their file system, and this file system refers to the folder.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyarrow.fs import FileSystemHandler, LocalFileSystem, PyFileSystem

from ..results.frames.table import TEMPORARY
from .temporary import TemporaryFolder


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
