"""Load settings from a YAML file, flags, `--set` and keywords, and word the message for each mistake in them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from ...tasks.errors import KeywordError, UsageError
from ..messages.escaping import has_controls, shown
from ..messages.suggesting import did_you_mean
from .dates import escape_braces, has_date, parse_day, replace_date
from .models import SECTIONS, Settings
from .own_sections import model_for, vertices_of_own
from .vertex_ids import AS_TEXT

SHORT_NAMES: Mapping[str, str] = {
    "input": "input.path",
    "output": "output.path",
    "source_column": "input.source_column",
    "target_column": "input.target_column",
    "table_version": "input.table_version",
    "input_format": "input.format",
    "where": "input.where",
    "bipartite": "input.bipartite",
    "directed": "input.directed",
    "weight_column": "input.weight_column",
    "vertices": "input.vertices",
    "vertex_id": "input.vertex_id",
    "programs": "programs.run",
    "program": "programs.own",
    "overwrite": "output.overwrite",
    "output_format": "output.format",
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
    "previous": "nightly.previous",
    "metrics_port": "monitoring.metrics_port",
    "performance_report": "monitoring.performance_report",
}
"""Short name → setting. A short name is a flag of the command and a keyword of `mine`."""

_SECTIONS_WITH: Mapping[str, list[str]] = {
    name: [section for section, model in SECTIONS.items() if name in model.model_fields]
    for model in SECTIONS.values()
    for name in model.model_fields
}
"""Name of a setting without its section → the sections that have it."""

KEYWORDS: Mapping[str, str] = {
    **SHORT_NAMES,
    **{
        name: setting
        for name, sections in _SECTIONS_WITH.items()
        if len(sections) == 1 and (setting := f"{sections[0]}.{name}") not in SHORT_NAMES.values()
    },
}
"""Keyword of `mine` → setting: the short names, and each name that only one section has."""

_DATED = ("input.path", "input.complete_marker", "input.vertices", "output.path")
"""Settings in which `{date}` is replaced."""


def load_settings(
    config: str | os.PathLike[str] | None = None,
    overrides: Mapping[str, object] | None = None,
    assignments: Sequence[str] = (),
) -> Settings:
    """Settings from a YAML file, then `overrides` (dotted name → value), then `a.b=c` assignments; later ones win.
    `{date}` is replaced.

    Raises UsageError for unknown, missing and contradictory settings and for values of a wrong type or out of range.
    The message names the file and every such setting.
    """
    tree = {} if config is None else _read_yaml(Path(config))
    for name, value in (overrides or {}).items():
        _assign(tree, name, value)
    of_own: dict[str, str] = {}
    for assignment in assignments:
        name, equals, text = (part.strip() for part in assignment.partition("="))
        if not equals or not name:
            raise UsageError(f"--set takes a.b=c, got {assignment!r}")
        if name.partition(".")[0] in SECTIONS:
            _assign(tree, name, text if name in AS_TEXT else _parse(text, f"--set {name}"))
        else:
            of_own[name] = text
    as_text = vertices_of_own(tree) if of_own else ()
    for name, text in of_own.items():
        _assign(tree, name, text if name in as_text else _parse(text, f"--set {name}"))
    _replace_dates(tree, required="nightly.date" in (overrides or {}))
    return _validated(tree, "" if config is None else f" (settings file {config})")


def make_settings(
    input: str | os.PathLike[str] | None = None, output: str | os.PathLike[str] | None = None, /, **settings: object
) -> Settings:
    """`settings_of(by_name(…))`."""
    return settings_of(by_name(input, output, **settings))


def by_name(input: object = None, output: object = None, /, **settings: object) -> dict[str, object]:
    """Dotted name → value, from keywords: sections (`bounding={"method": "band"}`) and single settings by the names
    in KEYWORDS (`partitions=4`). `input` and `output` are paths or sections.

    Raises UsageError for an unknown keyword and for a setting that is given twice.
    """
    found: dict[str, object] = {}
    for keyword, given in (("input", input), ("output", output), *settings.items()):
        for name, value in _named(keyword, given):
            if name in found:
                raise UsageError(f"{name} is set twice: leave one out")
            found[name] = value
    return found


def settings_of(given: Mapping[str, object]) -> Settings:
    """Settings from dotted name → value. `{date}` in paths is replaced only if `nightly.date` is given.

    Raises UsageError as `load_settings` does.
    """
    tree: dict[str, Any] = {}
    for name, value in given.items():
        _assign(tree, name, os.fspath(value) if isinstance(value, os.PathLike) else value)
    if _value(tree, "nightly.date") is not None:
        _replace_dates(tree, required=True)
    return _validated(tree, "")


def _named(keyword: str, value: object) -> list[tuple[str, object]]:
    """Pairs of dotted name and value for one keyword of `mine`. Raises UsageError for an unknown keyword."""
    if keyword in SECTIONS and isinstance(value, Mapping):
        return [(f"{keyword}.{name}", inner) for name, inner in value.items()]
    if keyword in ("input", "output") and value is None:
        return []
    if keyword in KEYWORDS or "." in keyword:
        return [(KEYWORDS.get(keyword, keyword), value)]
    if keyword in SECTIONS:
        raise UsageError(f"{keyword} takes a mapping of settings, got {type(value).__name__}")
    sections = _SECTIONS_WITH.get(keyword, [])
    if len(sections) > 1:
        raise UsageError(
            f"{keyword} is a setting of {', '.join(sections[:-1])} and {sections[-1]}: "
            f"name the section, such as {sections[0]}={{{keyword!r}: …}}"
        )
    known = dict.fromkeys([*SECTIONS, *KEYWORDS])
    suggestion = did_you_mean(
        keyword,
        [*zip(known, known, strict=True), *((name.partition(".")[2], short) for short, name in KEYWORDS.items())],
    )
    raise KeywordError(f"unknown setting {keyword!r}{suggestion or '; known: ' + ', '.join(known)}")


def as_yaml(settings: Settings) -> str:
    """The settings as YAML that `load_settings` reads, without storage options and passwords."""
    import yaml  # many runs have no settings file

    tree = settings.model_dump()
    for name in _DATED:
        if (value := _value(tree, name)) is not None:
            _assign(tree, name, escape_braces(value))
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
    import yaml

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
    """The value of the dotted `name` in `tree`, or None."""
    section, _, last = name.partition(".")
    inner = tree.get(section)
    return inner.get(last) if isinstance(inner, dict) else None


def _replace_dates(tree: dict[str, Any], required: bool) -> None:
    """Replace `{date}` in the tree's paths, and set `nightly.date` and `nightly.series`, in place.

    Raises UsageError for other placeholders, and if a day is `required` to be used and no path has `{date}`.
    """
    texts = {name: text for name in _DATED if isinstance(text := _value(tree, name), str)}
    dated = [name for name, text in texts.items() if has_date(text, name)]
    day = _value(tree, "nightly.date")
    if dated or day is not None:
        day = parse_day("today" if day is None else day)
        _assign(tree, "nightly.date", day)
    if required and not dated:
        raise UsageError(f"nightly.date is {day}, but neither input.path nor output.path has {{date}}")
    if "output.path" in dated and _value(tree, "nightly.series") is None:
        _assign(tree, "nightly.series", texts["output.path"])
    for name, text in texts.items():
        _assign(tree, name, replace_date(text, day or "", name))


def _validated(tree: dict[str, Any], origin: str) -> Settings:
    # an empty section in YAML is None and takes its defaults
    tree = {section: {} if inner is None else inner for section, inner in tree.items()}
    tree = {"input": {}, "output": {}} | tree
    model = model_for(tree)
    own: dict[str, Any] = {name: model.model_fields[name].annotation for name in model.own_sections()}
    sections: dict[str, type[BaseModel]] = {**SECTIONS, **own}
    try:
        found = model.model_validate({name: {} for name in own} | tree)
    except ValidationError as error:
        missing = [_name(problem) for problem in error.errors() if problem["type"] == "missing"]
        messages = [_explain(problem, sections) for problem in error.errors() if problem["type"] != "missing"]
        if missing:
            them, are = ("it", "is") if len(missing) == 1 else ("them", "are")
            messages.append(f"{' and '.join(missing)} {are} required: give {them}, or set {them} in the settings file")
        raise UsageError("; ".join(messages) + origin) from error
    for name, program in found.own_programs.items():
        given = getattr(found, name).model_dump() if name in own else {}
        made = program.make(given | dict.fromkeys(program.vertices, 0))
        along, weighs = getattr(made, "along", ""), getattr(made, "weighs", False)  # an EdgeProgram has neither
        if found.input.weight_column is None and (along or weighs):
            why = f"`along` is {along!r}" if along else "`weighs` is true"
            raise UsageError(
                f"the program {name} needs weights ({why} in {program.place}), and the edges have none: name their "
                "column with --weight-column"
            )
    return found


def _name(problem: ErrorDetails) -> str:
    return ".".join(str(part) for part in problem["loc"])


def _explain(problem: ErrorDetails, known: Mapping[str, type[BaseModel]]) -> str:
    name = _name(problem)
    match problem["type"]:
        case "extra_forbidden":
            return f"unknown setting {name}{_suggestion(name, known)}"
        case "value_error" if not problem["loc"] or name in SECTIONS:
            return str(problem["ctx"]["error"])  # rules between settings name them in full
        case "value_error":
            why = str(problem["ctx"]["error"])
        case "model_type" | "dict_type" if name in SECTIONS:
            why = "must be a section of settings"
        case _:
            why = problem["msg"].replace("Input should be", "must be")
    secret = ".storage_options" in name or name in ("input", "output", "checkpoint")
    return f"{name}: {why}" if secret else f"{name}: {why}, got {shown(problem['input'])}"


def _suggestion(name: str, known: Mapping[str, type[BaseModel]]) -> str:
    """For an unknown setting: settings with similar names, or else all settings of its section."""
    every = [(last, f"{section}.{last}") for section, model in known.items() for last in model.model_fields]
    section, _, last = name.partition(".")
    if not last:
        short = SHORT_NAMES.items()
        return did_you_mean(name, [*zip(known, known, strict=True), *short, *every]) or _all_of(Settings)
    here = [one for one in every if one[1].startswith(f"{section}.")]
    return did_you_mean(last, here) or did_you_mean(last, every) or _all_of(known[section])


def _all_of(model: type[BaseModel]) -> str:
    return f"; known: {', '.join(model.model_fields)}"
