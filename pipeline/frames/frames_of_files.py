"""From the files of a result to frames of cudf, decoded on the GPU.

Decoding takes an eighth of the time there that decoding in the host's memory and copying takes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import pyarrow as pa

from ...tasks.errors import InputError
from ...tasks.sources import FOOTER_READERS
from .needed import needed

__all__ = ["SealedFile", "can_decode", "cudf_of_files"]


@dataclass(frozen=True)
class SealedFile:
    """A file of a result, and what it must hold."""

    path: str
    sha256: str
    """As the manifest has it, in hexadecimal."""


def can_decode(schema: pa.Schema, names: Sequence[str]) -> bool:
    """Whether cudf has these columns of files with the same types that it takes from Arrow."""
    if not names or len(set(names)) < len(names):
        return False
    return all(schema.names.count(name) == 1 and _is_plain(schema.field(name).type) for name in names)


def cudf_of_files(files: Sequence[SealedFile], system: Any, names: Sequence[str]) -> Any | None:
    """A cudf.DataFrame of the columns `names` of Parquet files of Arrow's file system, in the order of the files; None
    if cudf does not decode them. The files are read whole into the host's memory, and only what they hold there is
    decoded: cudf compares no checksums.

    Raises InputError for a file that does not hold what it must, OSError if one cannot be read, UsageError without
    cudf.
    """
    cudf = needed("cudf", "to_cudf()")
    with ThreadPoolExecutor(FOOTER_READERS) as readers:
        contents = list(readers.map(lambda file: _checked(file, system), files))
    try:
        # Not by their paths: cudf takes "name=value" in one for a column.
        found = cudf.read_parquet(list(map(BytesIO, contents)), columns=list(names), use_pandas_metadata=False)
        return found[list(names)]
    except (MemoryError, TypeError, ValueError, KeyError, OverflowError, RuntimeError):
        return None


def _is_plain(type: pa.DataType) -> bool:
    checks = (pa.types.is_integer, pa.types.is_float32, pa.types.is_float64, pa.types.is_boolean)
    return any(check(type) for check in (*checks, pa.types.is_string, pa.types.is_large_string))


def _checked(file: SealedFile, system: Any) -> bytes:
    with system.open_input_file(file.path) as source:
        content = bytes(source.read())
    if hashlib.sha256(content).hexdigest() != file.sha256:
        raise InputError(f"the result is damaged: {file.path} is not the file that the manifest describes")
    return content
