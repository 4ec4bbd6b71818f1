"""Settings in messages, by what a person would type: a flag of the command, a keyword from Python, a path in a file.

Code that raises an error names a setting by its path, `partitioning.count`. Advice on a value is `cluster.device=cpu`,
or `checkpoint.path=…` where the value is the person's choice. Where the message leaves it is put into the words of the
person: `--device cpu` for the command, `device="cpu"` for Python.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

from ...tasks.errors import EdgemillError

__all__ = ["Typed", "naming_keywords", "with_flags", "with_keywords"]

ANY = "…"
"""The value in advice on a setting whose value is the person's choice."""


@dataclass(frozen=True)
class Typed:
    """Where the settings of a command line came from."""

    file: bool = False
    """Whether a settings file was given."""
    flags: frozenset[str] = frozenset()
    """Paths of the settings that were given by flags, `--set` included."""


def with_flags(text: str, typed: Typed | None = None) -> str:
    """A message with flags in place of the settings' paths.

    Where there is a settings file, what was not given by a flag keeps its path, which is where it is in that file.
    Advice on a value is always a flag: flags win over the file.
    """
    given = typed or Typed()

    def flag(name: str, value: str | None) -> str:
        if value is None and given.file and name not in given.flags:
            return name
        short = _flags().get(name)
        if short is None:
            return f"--set {name}" + ("" if value is None else f"={value}")
        return short if value in (None, "true") else f"{short} {value}"

    return _replaced(text, flag)


def with_keywords(text: str) -> str:
    """A message with keywords of `mine` in place of the settings' paths."""

    def keyword(name: str, value: str | None) -> str:
        if value is None:
            return _short_names().get(name, name)  # in a sentence `keep` or `latest` alone would say too little
        short = _keywords().get(name)
        section, _, last = name.partition(".")
        literal = _literal(value)
        return f'{section}={{"{last}": {literal}}}' if short is None else f"{short}={literal}"

    return _replaced(text.replace("--set ", ""), keyword)


@contextmanager
def naming_keywords() -> Iterator[None]:
    """Errors that leave the block, and their notes, name settings by keywords."""
    try:
        yield
    except EdgemillError as error:
        error.args = (with_keywords(str(error)), *error.args[1:])
        if notes := getattr(error, "__notes__", None):
            notes[:] = map(with_keywords, notes)
        raise


def _replaced(text: str, named: Callable[[str, str | None], str]) -> str:
    def replace(found: re.Match[str]) -> str:
        set_, name, value = found["set"] or "", found["name"], found["value"]
        new = named(name, value)
        if set_ and (new.startswith("--") or value is not None):  # "set --set …" says it twice
            set_ = "give " if set_[0] == "s" else "Give "
        return set_ + new

    return _settings().sub(replace, text)


@cache
def _settings() -> re.Pattern[str]:
    """Paths of settings, with a value where there is one; not within other paths, names in quotes or a `--set`."""
    from ..settings import SECTIONS

    names = sorted((f"{s}.{n}" for s, model in SECTIONS.items() for n in model.model_fields), key=len, reverse=True)
    return re.compile(
        r"(?<![\w./'\"-])(?<!--set )(?P<set>[Ss]et )?"
        rf"(?P<name>{'|'.join(map(re.escape, names))})(?:=(?P<value>{ANY}|[\w-]+))?(?![\w/'\"]|\.\w)"
    )


@cache
def _flags() -> dict[str, str]:
    return {name: f"--{short.replace('_', '-')}" for name, short in _short_names().items()}


@cache
def _short_names() -> dict[str, str]:
    from ..config import SHORT_NAMES

    return {name: short for short, name in SHORT_NAMES.items()}


@cache
def _keywords() -> dict[str, str]:
    from ..config import KEYWORDS

    return {name: short for short, name in KEYWORDS.items()}


def _literal(value: str) -> str:
    if value == ANY or value.isdecimal():
        return value
    return {"true": "True", "false": "False"}.get(value, f'"{value}"')
