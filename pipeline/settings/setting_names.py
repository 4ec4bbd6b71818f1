"""Settings in messages, named as the user sets them: by a flag, a keyword of `mine`, or a path in the settings file.

Code that raises an error names a setting by its path, `partitioning.count`, or by its flag, `--partitions`. It advises
on a value by `cluster.device=cpu`, or by `checkpoint.path=…` if the value is the user's choice. At the interface the
message is translated: to `--device cpu` by the command, to `device="cpu"` by the functions of Python. There, names of
commands become those of functions, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import Literal

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


def with_keywords(text: str, section: str = "") -> str:
    """A message with keywords of `mine` in place of setting paths and flags, and functions in place of commands.

    The function of a single program takes the settings of its `section` by their own names.
    """

    def keyword(name: str, value: str | None) -> str:
        own, _, last = name.partition(".")
        if value is None:
            return last if own == section else _short_names().get(name, name)  # `keep` alone would be unclear
        short = last if own == section else _keywords().get(name)
        literal = _literal(name, value)
        return f'{own}={{"{last}": {literal}}}' if short is None else f"{short}={literal}"

    def of_flag(found: re.Match[str]) -> str:
        name, value = SHORT_NAMES[found["flag"].replace("-", "_")], found["value"]
        if value is None and name in _SWITCHES:
            value = "true"
        text = keyword(name, value)
        return (found["set"] or "") + text

    from .sources import SHORT_NAMES

    for command, function in _FUNCTIONS:
        text = re.sub(command, function, text)
    return _flag_pattern().sub(of_flag, _replace_names(text.replace("--set ", ""), keyword))


_FUNCTIONS = (
    (r"\bedgemill ktruss \S+ -k \d+ --list\b", "edgemill.ktruss_groups"),
    (r"\bedgemill subgraph --component \d+", "edgemill.edges_of"),
    (r"\bedgemill of\b", "edgemill.groups_of"),
    (r"\bedgemill members\b", "edgemill.members_of"),
    (r"\bedgemill (top|diff|estimate|update)\b", r"edgemill.\1"),
    (r" \(--component\)", " (edgemill.find_group)"),
)
"""Commands in messages, as patterns, and the functions that do the same."""
_SWITCHES = ("output.overwrite", "input.directed", "checkpoint.fresh")
"""Settings whose flags take no value."""

_names: ContextVar[Literal["keywords", "flags"] | None] = ContextVar("names", default=None)
"""What the interface that was entered first names settings by; None outside of any."""


@contextmanager
def naming_keywords(section: str = "") -> Iterator[None]:
    """Translate errors that leave the block, and their notes, with `with_keywords`: for a public function, also as its
    decorator. Functions that it calls, and those that a command calls, leave the translation to the outermost.
    """
    if _names.get() is not None:
        yield
        return
    token = _names.set("keywords")
    try:
        yield
    except EdgemillError as error:
        error.args = (with_keywords(str(error), section), *error.args[1:])
        if notes := getattr(error, "__notes__", None):
            notes[:] = [with_keywords(note, section) for note in notes]
        raise
    finally:
        _names.reset(token)


@contextmanager
def naming_flags() -> Iterator[None]:
    """A command, which translates errors with `with_flags` when it prints them."""
    token = _names.set("flags")
    try:
        yield
    finally:
        _names.reset(token)


def _replace_names(text: str, rename: Callable[[str, str | None], str]) -> str:
    def replace(found: re.Match[str]) -> str:
        set_, name, value = found["set"] or "", found["name"], found["value"]
        new = rename(name, value)
        if set_ and (new.startswith("--") or value is not None):  # avoid "set --set …"
            set_ = "give " if set_[0] == "s" else "Give "
        return set_ + new

    def is_setting(name: str) -> bool:
        section, _, last = name.partition(".")
        return section not in shipped_names() or last in shipped(section).parameters

    from .declared_programs import shipped, shipped_names

    return _settings().sub(lambda found: replace(found) if is_setting(found["name"]) else found[0], text)


@cache
def _settings() -> re.Pattern[str]:
    """Matches a setting path and its value, but not within another path, in quotes, or after `--set`. Of programs it
    matches any name in their sections, so that none is loaded for a message without one.
    """
    from .declared_programs import shipped_names
    from .models import SECTIONS

    names = sorted((f"{s}.{n}" for s, model in SECTIONS.items() for n in model.model_fields), key=len, reverse=True)
    return re.compile(
        r"(?<![\w./'\"-])(?<!--set )(?P<set>[Ss]et )?"
        rf"(?P<name>{'|'.join(map(re.escape, names))}|(?:{'|'.join(shipped_names())})\.[a-z_]+)"
        rf"(?:=(?P<value>{ANY}|[\w-]+(?:,[\w-]+)*|'[^']*'|\"\"))?(?![\w/'\"]|\.\w)"
    )


@cache
def _flag_pattern() -> re.Pattern[str]:
    """Matches a flag, with its value if what follows can be no word of the sentence."""
    from .sources import SHORT_NAMES

    flags = sorted((short.replace("_", "-") for short in SHORT_NAMES), key=len, reverse=True)
    value = r"[A-Z]{2,}(?![\w-])|prefix|lambda[\w,]*|[^\s;'\"]*[/:=][^\s;,'\"]*"
    return re.compile(rf"(?P<set>[Ss]et )?(?<![\w-])--(?P<flag>{'|'.join(flags)})(?![\w-])(?:[ =](?P<value>{value}))?")


@cache
def _flags() -> dict[str, str]:
    return {name: f"--{short.replace('_', '-')}" for name, short in _short_names().items()}


@cache
def _short_names() -> dict[str, str]:
    from .sources import SHORT_NAMES

    return {name: short for short, name in SHORT_NAMES.items()}


@cache
def _keywords() -> dict[str, str]:
    from .sources import KEYWORDS

    return {name: short for short, name in KEYWORDS.items()}


def _literal(name: str, value: str) -> str:
    if value == ANY or value.isdecimal() or value[0] in "'\"":
        return value
    if value.isupper():  # ID, FILE or COLUMN
        return ANY
    if name == "programs.run":
        return str(value.split(",")).replace("'", '"')
    return {"true": "True", "false": "False", "null": "None"}.get(value, f'"{value}"')
