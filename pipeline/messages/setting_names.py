"""Settings in messages, named as the user sets them: by a flag, a keyword of `mine`, or a path in the settings file.

Code that raises an error names a setting by its path, `partitioning.count`. It advises on a value by
`cluster.device=cpu`, or by `checkpoint.path=…` if the value is the user's choice. At the interface the message is
translated: to `--device cpu` by the command, to `device="cpu"` by `mine`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

from ...tasks.errors import EdgemillError

ANY = "…"
"""The value in advice on a setting whose value the user chooses."""


@dataclass(frozen=True)
class SettingOrigin:
    """How the settings of a command line were given."""

    file: bool = False
    """Whether a settings file was given."""
    flags: frozenset[str] = frozenset()
    """Paths of the settings that were given by flags or `--set`."""


def with_flags(text: str, origin: SettingOrigin | None = None) -> str:
    """A message with flags in place of setting paths.

    With a settings file, a setting that was not given by a flag keeps its path, by which the file sets it. Advice on a
    value is always a flag, since flags win over the file.
    """
    source = origin or SettingOrigin()

    def flag(name: str, value: str | None) -> str:
        if value is None and source.file and name not in source.flags:
            return name
        short = _flags().get(name)
        if short is None:
            return f"--set {name}" + ("" if value is None else f"={value}")
        return short if value in (None, "true") else f"{short} {value}"

    return _replace_names(text, flag)


def with_keywords(text: str) -> str:
    """A message with keywords of `mine` in place of setting paths."""

    def keyword(name: str, value: str | None) -> str:
        if value is None:
            return _short_names().get(name, name)  # `keep` or `latest` alone would be unclear in a sentence
        short = _keywords().get(name)
        section, _, last = name.partition(".")
        literal = _literal(value)
        return f'{section}={{"{last}": {literal}}}' if short is None else f"{short}={literal}"

    return _replace_names(text.replace("--set ", ""), keyword)


@contextmanager
def naming_keywords() -> Iterator[None]:
    """Translate errors that leave the block, and their notes, with `with_keywords`."""
    try:
        yield
    except EdgemillError as error:
        error.args = (with_keywords(str(error)), *error.args[1:])
        if notes := getattr(error, "__notes__", None):
            notes[:] = map(with_keywords, notes)
        raise


def _replace_names(text: str, rename: Callable[[str, str | None], str]) -> str:
    def replace(found: re.Match[str]) -> str:
        set_, name, value = found["set"] or "", found["name"], found["value"]
        new = rename(name, value)
        if set_ and (new.startswith("--") or value is not None):  # avoid "set --set …"
            set_ = "give " if set_[0] == "s" else "Give "
        return set_ + new

    return _settings().sub(replace, text)


@cache
def _settings() -> re.Pattern[str]:
    """Matches a setting path and its value, but not within another path, in quotes, or after `--set`."""
    from ..settings.models import SECTIONS

    names = sorted((f"{s}.{n}" for s, model in SECTIONS.items() for n in model.model_fields), key=len, reverse=True)
    return re.compile(
        r"(?<![\w./'\"-])(?<!--set )(?P<set>[Ss]et )?"
        rf"(?P<name>{'|'.join(map(re.escape, names))})(?:=(?P<value>{ANY}|[\w-]+|'[^']*'|\"\"))?(?![\w/'\"]|\.\w)"
    )


@cache
def _flags() -> dict[str, str]:
    return {name: f"--{short.replace('_', '-')}" for name, short in _short_names().items()}


@cache
def _short_names() -> dict[str, str]:
    from ..settings.sources import SHORT_NAMES

    return {name: short for short, name in SHORT_NAMES.items()}


@cache
def _keywords() -> dict[str, str]:
    from ..settings.sources import KEYWORDS

    return {name: short for short, name in KEYWORDS.items()}


def _literal(value: str) -> str:
    if value == ANY or value.isdecimal() or value[0] in "'\"":
        return value
    return {"true": "True", "false": "False"}.get(value, f'"{value}"')
