"""Load settings from a YAML file, flags, `--set` and keywords, and word the message for each mistake in them.

`model_for` adds a section of settings for each program that they name, made from the fields of its class.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, PlainValidator, ValidationError, create_model, field_validator
from pydantic.errors import PydanticUserError
from pydantic_core import ErrorDetails

from ...tasks.errors import KeywordError, ProgramError, UsageError
from ..messages.wording import did_you_mean, has_controls, shown
from .dates import escape_braces, has_date, parse_day, replace_date
from .declared_programs import DeclaredProgram, Parameter, find_programs, names_of, shipped_names
from .models import SECTIONS, Section, Settings
from .values import assigned, id_or_none, id_texts, read_yaml, typed

SHORT_NAMES: Mapping[str, str] = {
    "input": "input.path",
    "output": "output.path",
    "source_column": "input.source_column",
    "target_column": "input.target_column",
    "table_version": "input.table_version",
    "input_format": "input.format",
    "where": "input.where",
    "bipartite": "input.bipartite",
    "two_sided": "input.two_sided",
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

_LONGEST_NAME = 500
"""Most characters of the name of a setting."""

_DATED = ("input.path", "input.complete_marker", "input.vertices", "output.path")
"""Settings in which `{date}` is replaced."""


def load_settings(
    config: str | os.PathLike[str] | None = None,
    overrides: Mapping[str, object] | None = None,
    assignments: Sequence[str] = (),
) -> Settings:
    """Settings from a YAML file, then `overrides` (dotted name → value), which win, and `a.b=c` assignments of others.
    Text of the file and of assignments is read by the type of its setting. `{date}` is replaced.

    Raises UsageError for unknown, missing and contradictory settings, for values of a wrong type or out of range, and
    for assignments without effect: to a setting that is given already, or of a program that does not run. The message
    names the file and every such setting.
    """
    tree = {} if config is None else _read_yaml(Path(config))
    _type_sections(tree, SECTIONS)
    for name, value in (overrides or {}).items():
        _assign(tree, name, value)
    names = _assign_all(tree, assignments, list(overrides or {}))
    _replace_dates(tree, required="nightly.date" in (overrides or {}))
    found = _validated(tree, "" if config is None else f" (settings file {config})", is_written=True)
    _refuse_idle(found, names)
    return found


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
    named = _names(settings)
    for keyword, given in (("input", input), ("output", output), *settings.items()):
        for name, value in _named(keyword, given, named):
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


def _names(settings: Mapping[str, object]) -> list[str]:
    """The names of all sections: those of programs, too, as far as these keywords name them."""
    given = settings.get("programs")
    section = given if isinstance(given, Mapping) else {"run": given}
    run = listed(section.get("run", settings.get("programs.run")))
    own = listed(section.get("own", settings.get("program", settings.get("programs.own"))))
    return [*dict.fromkeys([*SECTIONS, *shipped_names(), *run, *names_of([place for place in own if ":" in place])])]


def _named(keyword: str, value: object, sections: Sequence[str]) -> list[tuple[str, object]]:
    """Pairs of dotted name and value for one keyword of `mine`, where `sections` are the names of sections. Raises
    UsageError for an unknown keyword.
    """
    if keyword in sections and isinstance(value, Mapping):
        return [(f"{keyword}.{name}", inner) for name, inner in value.items()]
    if keyword in ("input", "output") and value is None:
        return []
    if keyword in KEYWORDS or "." in keyword:
        return [(KEYWORDS.get(keyword, keyword), value)]
    if keyword in sections:
        raise UsageError(f"{keyword} takes a mapping of settings, got {type(value).__name__}")
    several = _SECTIONS_WITH.get(keyword, [])
    if len(several) > 1:
        raise UsageError(
            f"{keyword} is a setting of {', '.join(several[:-1])} and {several[-1]}: "
            f"name the section, such as {several[0]}={{{keyword!r}: …}}"
        )
    known = dict.fromkeys([*SECTIONS, *KEYWORDS, *sections])
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
    tree = read_yaml(text, f"the settings file {path}")
    if tree is None:
        return {}
    if not isinstance(tree, dict):
        kind = "list" if isinstance(tree, list) else "single value"
        raise UsageError(f"the settings file {path} must hold sections such as `input:`, not a {kind}")
    return tree


def _assign_all(tree: dict[str, Any], assignments: Sequence[str], given: list[str]) -> list[str]:
    """Assign the values of `a.b=c`, in place, and return the names. Raises UsageError for one that replaces a setting
    among those that are `given`, or an earlier one.
    """
    names: list[str] = []
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        name = name.strip()
        if not equals or not name or len(name) > _LONGEST_NAME:
            raise UsageError(f"--set takes a.b=c, got {shown(assignment)}")
        for other in (*given, *names):
            if other == name or other.startswith(f"{name}."):
                twice = (
                    "is given twice" if other == name and other in names else f"replaces {other}, which is given, too"
                )
                raise UsageError(f"--set {name} {twice}: leave one out")
        _assign(tree, name, assigned(text))
        if (section := name.partition(".")[0]) in SECTIONS:
            _type_sections(tree, {section: SECTIONS[section]})  # now: a later one may set a part of a mapping
        names.append(name)
    return names


def _type_sections(tree: dict[str, Any], models: Mapping[str, type[BaseModel]]) -> None:
    """Read the text in sections by the types of their settings, in place."""
    tree |= {name: typed(tree[name], name, model) for name, model in models.items() if name in tree}


def _refuse_idle(settings: Settings, names: Sequence[str]) -> None:
    """Raise UsageError if one of the names, which `--set` gives, is of a program that does not run."""
    for name in names:
        program = name.partition(".")[0]
        if program in shipped_names() and program not in settings.programs.vertex_programs:
            together = ",".join((*settings.programs.run, program))
            raise UsageError(
                f"--set {name} has no effect, since the program {program} does not run: leave it out, or give "
                f"programs.run={together}"
            )


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


def _validated(tree: dict[str, Any], origin: str, is_written: bool = False) -> Settings:
    """The settings of a tree. Sections of programs in it may have text to be read, if it `is_written`."""
    # an empty section in YAML is None and takes its defaults
    tree = {section: {} if inner is None else inner for section, inner in tree.items()}
    tree = {"input": {}, "output": {}} | tree
    model = model_for(tree)
    of_programs = sections_of(model)
    if is_written:
        _type_sections(tree, of_programs)
    sections: dict[str, type[BaseModel]] = {**SECTIONS, **of_programs}
    try:
        found = model.model_validate({name: {} for name in of_programs} | tree)
    except ValidationError as error:
        raise UsageError("; ".join(_problems(error, sections)) + origin) from error
    for name, program in found.requested_programs.items():
        given = getattr(found, name).model_dump() if name in of_programs else {}
        _refuse_without_weights(found, name, program, given)
    return found


def _problems(error: ValidationError, known: Mapping[str, type[BaseModel]]) -> list[str]:
    """What is wrong with the settings, and which are missing."""
    missing = [_name(problem) for problem in error.errors() if problem["type"] == "missing"]
    messages = [_explain(problem, known) for problem in error.errors() if problem["type"] != "missing"]
    if missing:
        them, are = ("it", "is") if len(missing) == 1 else ("them", "are")
        messages.append(f"{' and '.join(missing)} {are} required: give {them}, or set {them} in the settings file")
    return messages


def _refuse_without_weights(settings: Settings, name: str, program: DeclaredProgram, given: Mapping[str, Any]) -> None:
    """Raise UsageError if a program with the parameters `given` needs weights, and the edges have none."""
    made = program.make({key: value for key, value in given.items() if key not in program.vertices})
    along, weighs = getattr(made, "along", ""), getattr(made, "weighs", False)  # an EdgeProgram has neither
    if settings.input.weight_column is not None or not (along or weighs) or made.by_support:
        return
    switched = [f"{name}.{key}" for key, value in given.items() if value is True]
    why = f" ({' and '.join(switched)} {'is' if len(switched) == 1 else 'are'} true)" if switched else ""
    if program.is_own:
        why = f" (`along` is {along!r} in {program.place})" if along else f" (`weighs` is true in {program.place})"
    raise UsageError(
        f"the program {name} needs weights{why}, and the edges have none: name their column with --weight-column"
    )


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
        names = [*dict.fromkeys([*known, *shipped_names()])]
        return did_you_mean(name, [*zip(names, names, strict=True), *SHORT_NAMES.items(), *every]) or _all_of(Settings)
    here = [one for one in every if one[1].startswith(f"{section}.")]
    return did_you_mean(last, here) or did_you_mean(last, every) or _all_of(known[section])


def _all_of(model: type[BaseModel]) -> str:
    return f"; known: {', '.join(model.model_fields)}"


def model_for(tree: Mapping[str, Any]) -> type[Settings]:
    """The model of the settings in `tree`, with the programs that they run, or give parameters.

    Raises UsageError and ProgramError as `find_programs` does, and for parameters of types that settings do not have.
    """
    programs = tree.get("programs")
    given = programs if isinstance(programs, Mapping) else {}
    own, run = (listed(given.get(name)) for name in ("own", "run"))
    found = find_programs(own, dict.fromkeys([*run, *(name for name in shipped_names() if name in tree)]))
    if not found:
        return Settings
    sections: dict[str, Any] = {}
    for name, program in found.items():
        if name in SECTIONS:
            raise UsageError(f"programs.own: {name!r} is a section of settings: name it, as in other={program.place}")
        if program.parameters:
            sections[name] = (section_of(program), ...)
    model = create_model("Settings", __base__=Settings, __module__=__name__, **sections)
    model.declared = found
    return model


def sections_of(model: type[Settings]) -> dict[str, type[Section]]:
    """Name → section, of the programs in a model."""
    fields: Any = model.model_fields
    return {name: fields[name].annotation for name, program in model.declared.items() if program.parameters}


def listed(given: object) -> tuple[str, ...]:
    """The names in a setting that is not validated yet; of a wrong value none."""
    if isinstance(given, str):
        return tuple(name.strip() for name in given.split(","))
    return tuple(one for one in given if isinstance(one, str)) if isinstance(given, list | tuple) else ()


@cache
def section_of(program: DeclaredProgram) -> type[Section]:
    """The section with the parameters of a program. Raises ProgramError for types that settings do not have."""
    as_tuple = field_validator("*", mode="before")(lambda value: tuple(value) if isinstance(value, list) else value)
    try:
        return create_model(
            f"{program.kind.__name__}Settings",
            __base__=Section,
            __module__=__name__,
            __doc__=f"The program {program.name}" + (f", {program.place}." if program.is_own else "."),
            __validators__={"as_tuple": as_tuple},
            **{name: _field(own) for name, own in program.parameters.items()},
        )
    except (PydanticUserError, TypeError) as error:
        kinds = ", ".join(f"{name}: {own.type}" for name, own in program.parameters.items())
        raise ProgramError(
            f"program {program.place}: its fields are settings and must be numbers, texts, bools or tuples of these, "
            f"but are {kinds}"
        ) from error


def _field(parameter: Parameter) -> Any:
    """The type and default of a field. Ids of vertices are text."""
    if parameter.is_vertices:
        kind = tuple[int | str, ...] | list[int | str] | str
        return Annotated[kind, PlainValidator(id_texts)], parameter.default
    if parameter.is_vertex:
        default = None if parameter.default is ... else parameter.default
        return Annotated[int | str | None, PlainValidator(id_or_none)], default
    return parameter.type, parameter.default
