"""Where settings come from: a YAML file, flags, `--set`, keywords; and the message for each mistake in them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails, PydanticUndefined

from ..tasks.errors import UsageError
from .settings import SECTIONS, Settings

__all__ = ["SHORT_NAMES", "Settings", "as_yaml", "load_settings", "make_settings", "settings_table"]

SHORT_NAMES: Mapping[str, str] = {
    "input": "input.path",
    "output": "output.path",
    "source_column": "input.source_column",
    "target_column": "input.target_column",
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
    "metrics_port": "monitoring.metrics_port",
    "performance_report": "monitoring.performance_report",
}
"""The settings that have a flag of their own: short name (also a keyword of `mine`) → setting."""

_REQUIRED_FLAG = {"input.path": "--input", "output.path": "--output"}


def load_settings(
    config: str | os.PathLike[str] | None = None,
    overrides: Mapping[str, object] | None = None,
    assignments: Sequence[str] = (),
) -> Settings:
    """Settings from a YAML file, `overrides` (dotted setting → value) and `a.b=c` assignments; the last one wins.

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
    return _validated(tree, "" if config is None else f" (settings file {config})")


def make_settings(input: str | os.PathLike[str], output: str | os.PathLike[str], **settings: object) -> Settings:
    """Settings from keywords: short names (`partitions=4`) or whole sections (`bounding={"method": "band"}`).

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
    return _validated(tree, "")


def as_yaml(settings: Settings) -> str:
    """The settings as a YAML document that `load_settings` reads; storage options and passwords left out."""
    return yaml.safe_dump(settings.model_dump(), sort_keys=False, allow_unicode=True)


def settings_table() -> str:
    """All settings as a Markdown table, for the README."""
    lines = ["| setting | default | meaning |", "|---|---|---|"]
    for section, holder in SECTIONS.items():
        for name, field in holder.model_fields.items():
            default = field.get_default(call_default_factory=True)
            lines.append(f"| `{section}.{name}` | {_shown(default)} | {field.description} |")
    return "\n".join(lines)


def _shown(default: object) -> str:
    if default is PydanticUndefined:
        return "required"
    if default is None:
        return "none"
    return "`" + yaml.safe_dump(default, default_flow_style=True).removesuffix("...\n").strip() + "`"


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


if __name__ == "__main__":
    print(settings_table())
