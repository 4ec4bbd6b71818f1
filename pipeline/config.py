"""Where settings come from: a YAML file, flags, `--set`, keywords; and the message for each mistake in them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from ..tasks.errors import UsageError
from .dates import day_of, escaped, filled_in, has_date
from .escaping import has_controls
from .settings import SECTIONS, Settings

__all__ = ["SHORT_NAMES", "Settings", "as_yaml", "load_settings", "make_settings"]

SHORT_NAMES: Mapping[str, str] = {
    "input": "input.path",
    "output": "output.path",
    "source_column": "input.source_column",
    "target_column": "input.target_column",
    "table_version": "input.table_version",
    "format": "input.format",
    "where": "input.where",
    "bipartite": "input.bipartite",
    "overwrite": "output.overwrite",
    "partitions": "partitioning.count",
    "method": "bounding.method",
    "max_exchanges": "bounding.max_exchanges",
    "max_seconds": "bounding.max_seconds",
    "fresh": "checkpoint.fresh",
    "device": "cluster.device",
    "workers": "cluster.workers",
    "scheduler": "cluster.scheduler",
    "scheduler_file": "cluster.scheduler_file",
    "date": "nightly.date",
    "metrics_port": "monitoring.metrics_port",
    "performance_report": "monitoring.performance_report",
}
"""The settings that have a flag of their own: short name (also a keyword of `mine`) → setting."""

_DATED = ("input.path", "input.complete_marker", "output.path")
"""The settings that may have `{date}`."""

_REQUIRED_FLAG = {"input.path": "--input", "output.path": "--output"}


def load_settings(
    config: str | os.PathLike[str] | None = None,
    overrides: Mapping[str, object] | None = None,
    assignments: Sequence[str] = (),
) -> Settings:
    """Settings from a YAML file, `overrides` (dotted setting → value) and `a.b=c` assignments; the last one wins.
    `{date}` in them is filled in.

    Raises UsageError that names the file and the setting: unknown, missing, of a wrong type, out of range, or at odds.
    """
    tree = {} if config is None else _read_yaml(Path(config))
    for name, value in (overrides or {}).items():
        _assign(tree, name, value)
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"--set takes a.b=c, got {assignment!r}")
        _assign(tree, name.strip(), _parse(text, f"--set {name.strip()}"))
    _fill_in_date(tree, asked="nightly.date" in (overrides or {}))
    return _validated(tree, "" if config is None else f" (settings file {config})")


def make_settings(input: str | os.PathLike[str], output: str | os.PathLike[str], **settings: object) -> Settings:
    """Settings from keywords: short names (`partitions=4`) or whole sections (`bounding={"method": "band"}`).
    Paths are taken as they are, unless a `date` is given: then `{date}` in them is that day, as in a settings file.

    Raises UsageError for a keyword that is neither, and whatever `load_settings` raises.
    """
    tree: dict[str, Any] = {}
    settings = settings | {"input.path": os.fspath(input), "output.path": os.fspath(output)}
    for name, value in settings.items():
        if name in SECTIONS and isinstance(value, Mapping):
            for key, inner in value.items():
                _assign(tree, f"{name}.{key}", inner)
        elif name in SHORT_NAMES or "." in name:
            _assign(tree, SHORT_NAMES.get(name, name), os.fspath(value) if isinstance(value, os.PathLike) else value)
        elif name in SECTIONS:
            raise UsageError(f"{name} takes a mapping of settings, got {type(value).__name__}")
        else:
            known = ", ".join([*SECTIONS, *SHORT_NAMES])
            raise UsageError(f"unknown setting {name!r}; there are: {known}")
    if _value(tree, "nightly.date") is not None:
        _fill_in_date(tree, asked=True)
    return _validated(tree, "")


def as_yaml(settings: Settings) -> str:
    """The settings as a YAML document that `load_settings` reads; storage options and passwords left out."""
    tree = settings.model_dump()
    for name in _DATED:
        if (value := _value(tree, name)) is not None:
            _assign(tree, name, escaped(value))
    text: str = yaml.safe_dump(tree, sort_keys=False, allow_unicode=True)
    return yaml.safe_dump(tree, sort_keys=False) if has_controls(text) else text


def _read_yaml(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UsageError(f"cannot read the settings file {path}: {reason}") from error
    tree = _parse(text, f"the settings file {path}")
    if tree is None:
        return {}
    if not isinstance(tree, dict):
        raise UsageError(f"the settings file {path} must hold sections such as `input:`, not a {type(tree).__name__}")
    return {str(section): dict(inner) if isinstance(inner, dict) else inner for section, inner in tree.items()}


def _parse(text: str, where: str) -> Any:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = "" if mark is None else f", line {mark.line + 1}, column {mark.column + 1}"
        raise UsageError(f"{where} is not valid YAML{place}: {getattr(error, 'problem', error)}") from error


def _assign(tree: dict[str, Any], name: str, value: object) -> None:
    """Set the dotted `name` in `tree`, in place."""
    *sections, last = name.split(".")
    for section in sections:
        inner = tree.get(section)
        if inner is None:
            inner = tree[section] = {}
        elif not isinstance(inner, dict):
            raise UsageError(f"{name}: {section} is a value, not a section")
        tree = inner
    tree[last] = value


def _value(tree: Mapping[str, Any], name: str) -> Any:
    """What the dotted `name` has in `tree`, if anything."""
    section, _, last = name.partition(".")
    inner = tree.get(section)
    return inner.get(last) if isinstance(inner, dict) else None


def _fill_in_date(tree: dict[str, Any], asked: bool) -> None:
    """Put the day in place of `{date}`, and keep it, and the output as it was given; in place.

    Raises UsageError for other placeholders, and for a day that was `asked` for and is used nowhere.
    """
    texts = {name: text for name in _DATED if isinstance(text := _value(tree, name), str)}
    dated = [name for name, text in texts.items() if has_date(text, name)]
    day = _value(tree, "nightly.date")
    if dated or day is not None:
        day = day_of("today" if day is None else day)
        _assign(tree, "nightly.date", day)
    if asked and not dated:
        raise UsageError(f"nightly.date is {day}, but neither input.path nor output.path has {{date}}")
    if "output.path" in dated and _value(tree, "nightly.series") is None:
        _assign(tree, "nightly.series", texts["output.path"])
    for name, text in texts.items():
        _assign(tree, name, filled_in(text, day or "", name))


def _validated(tree: dict[str, Any], origin: str) -> Settings:
    # An empty section in YAML is None, and means its defaults.
    tree = {section: {} if inner is None else inner for section, inner in tree.items()}
    tree = {"input": {}, "output": {}} | tree
    try:
        return Settings.model_validate(tree)
    except ValidationError as error:
        raise UsageError("; ".join(_explain(problem) for problem in error.errors()) + origin) from error


def _explain(problem: ErrorDetails) -> str:
    name = ".".join(str(part) for part in problem["loc"])
    match problem["type"]:
        case "missing":
            return f"{name} is not set: give {_REQUIRED_FLAG.get(name, 'it')} or set it in the settings file"
        case "extra_forbidden":
            section, *inner = problem["loc"]
            known = SECTIONS[str(section)] if inner else Settings
            return f"unknown setting {name}; there are: {', '.join(known.model_fields)}"
        case "value_error" if not problem["loc"] or name in SECTIONS:
            return str(problem["ctx"]["error"])  # our own rules between settings name them in full
        case "value_error":
            why = str(problem["ctx"]["error"])
        case "model_type" | "dict_type" if name in SECTIONS:
            why = "must be a section of settings"
        case _:
            why = problem["msg"].replace("Input should be", "must be")
    secret = ".storage_options" in name or name in ("input", "output", "checkpoint")
    return f"{name}: {why}" if secret else f"{name}: {why}, got {problem['input']!r}"
