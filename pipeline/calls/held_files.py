"""Arrow's view of a temporary folder: whatever can still read a file of it keeps the folder.

`mine("edges.parquet").edges.to_batches()` reads while nobody holds the result any more. Arrow's datasets, their
fragments and scanners hold their file system, and so what that holds.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyarrow.fs import FileSystemHandler, LocalFileSystem, PyFileSystem

from .temporary import TemporaryFolder

__all__ = ["held_files"]


def held_files(folder: TemporaryFolder) -> PyFileSystem:
    """The files of this machine, to read, by their paths; `folder` stays as long as this."""
    return PyFileSystem(_Held(folder))


class _Held(FileSystemHandler):  # type: ignore[misc]
    """Files are Arrow's own, so they are read without Python. Pickled for another process, it holds nothing."""

    def __init__(self, folder: TemporaryFolder | None) -> None:
        self._folder = folder
        self._files = LocalFileSystem()

    def __reduce__(self) -> tuple[Any, ...]:
        return _Held, (None,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Held) and other._folder is self._folder

    def __hash__(self) -> int:
        return hash(id(self._folder))

    def get_type_name(self) -> str:
        return "edgemill-temporary"

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
        raise pa.ArrowInvalid("a temporary result is not written to")

    create_dir = delete_dir = delete_dir_contents = delete_root_dir_contents = delete_file = _refuse
    move = copy_file = open_output_stream = open_append_stream = _refuse
