"""Digests of input files on a disk."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import file_digest

from ..errors import InputError
from .sources import SourceFile


def file_digests(files: Sequence[SourceFile]) -> list[str] | None:
    """SHA-256 of the content of each file, in as many threads as there are cores; None if a store has one of them.

    Reading from a store costs as much as the rest of a night. Raises InputError for a file that cannot be read.
    """
    if any("://" in file.path for file in files):
        return None
    with ThreadPoolExecutor(os.cpu_count()) as readers:
        return list(readers.map(_digest, (file.path for file in files)))


def _digest(path: str) -> str:
    try:
        with open(path, "rb", buffering=0) as file:
            return file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
