"""The base model of a settings section, and the validation of paths that several sections share."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from ...tasks.errors import UsageError
from ...tasks.storage.locations import normalized, tidy_path


class Section(BaseModel):
    """Frozen and strict: an unknown key is an error, and no value is converted to another type."""

    model_config = ConfigDict(
        extra="forbid",
        defer_build=True,  # most sections are checked as parts of all settings, which are built once
        frozen=True,
        strict=True,
        allow_inf_nan=False,
        hide_input_in_errors=True,
    )


def input_location(path: str) -> str:
    """The path in its normal form. Raises ValueError if it is not a path or an fsspec URL."""
    _check_location(path)
    return tidy_path(path)


def output_location(path: str) -> str:
    """The path, unchanged, since results of other nights are found by its text.

    Raises ValueError if it is not a path or an fsspec URL, or if it is a chained URL, which cannot be written to.
    """
    if "::" in path:
        raise ValueError("cannot write through a cache or an archive (`::`): name the location behind it")
    _check_location(path)
    return path


def _check_location(path: str) -> None:
    try:
        normalized(path)
    except UsageError as error:
        raise ValueError(str(error)) from error
