"""The formats of input files that edgemill reads, the modules in `shipped`: by name, suffix and first bytes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path, PurePosixPath
from pkgutil import iter_modules
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .input_format import InputFormat

COMPRESSIONS: Mapping[str, str] = {".gz": "gzip", ".zst": "zstd", ".zstd": "zstd", ".bz2": "bz2"}
"""Suffix of compressed text → Arrow's name of the compression."""

_SHIPPED = "shipped"


@cache
def format_names() -> tuple[str, ...]:
    """The names of all formats, as `input.format` takes them. Loads no format."""
    return tuple(sorted(module.name for module in iter_modules([str(Path(__file__).with_name(_SHIPPED))])))


@cache
def format_called(name: str) -> InputFormat:
    """The format with a name."""
    module = import_module(f".{_SHIPPED}.{name}", __package__)
    (kind,) = (
        one
        for key, one in vars(module).items()
        if isinstance(one, type) and one.__module__ == module.__name__ and hasattr(one, "suffixes") and key[0] != "_"
    )
    found: InputFormat = kind()
    return found


def every_format() -> dict[str, InputFormat]:
    """Name → format."""
    return {name: format_called(name) for name in format_names()}


def suffix_of(name: str) -> str:
    """The suffix of the format, in lower case, without the suffix of a compression: `.csv` for `A.CSV.gz`."""
    path = PurePosixPath(name.lower())
    if path.suffix in COMPRESSIONS:
        path = path.with_suffix("")
    return path.suffix


def compression_of(name: str) -> str | None:
    """Arrow's name of the compression that the suffix means; None without such a suffix."""
    return COMPRESSIONS.get(PurePosixPath(name.lower()).suffix)


def format_named_by(name: str, of_data_alone: bool = False) -> str | None:
    """The format that the suffix means, `of_data_alone` if only data files have it; None for other suffixes."""
    suffix = suffix_of(name)
    for format, own in every_format().items():
        if suffix in own.suffixes or (suffix in own.other_suffixes and not of_data_alone):
            return format
    return None


def format_of_bytes(head: bytes) -> str | None:
    """The format that the first bytes of a file mean, uncompressed; None for other text and unsupported formats."""
    return next((format for format, own in every_format().items() if own.begins(head)), None)


def is_text(format: str) -> bool:
    """Whether files of a format are lines of text whose columns and types are detected."""
    return format_called(format).is_text
