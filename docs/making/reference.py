"""Makes the tables of the reference from the code: settings, programs, formats, commands, exit codes, the manifest.

python docs/making/reference.py

A table stands between `<!-- made: NAME -->` and `<!-- end -->`, in the pages themselves, so that who reads them in the
repository has it too; a test says when one is not what the code says.
"""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from inspect import cleandoc
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import click
import yaml
from annotated_types import Ge, Gt
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from edgemill.pipeline import cli
from edgemill.pipeline.messages import exits
from edgemill.pipeline.output import manifest
from edgemill.pipeline.settings.declared_programs import every_shipped, field_docstrings
from edgemill.pipeline.settings.models import SECTIONS
from edgemill.pipeline.settings.sources import SHORT_NAMES, section_of
from edgemill.tasks import errors
from edgemill.tasks.inputs.formats.input_format import every_format
from edgemill.tasks.publish.result_columns import EDGES, VERTICES, ResultColumn

DOCS = Path(__file__).resolve().parents[1]
MADE = re.compile(r"(<!-- made: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
PAGE = re.compile(r"docs/([\w-]+)\.md")
KINDS: Mapping[object, str] = {
    bool: "`true`/`false`",
    int: "whole number",
    float: "number",
    str: "text",
    dict: "mapping",
    types.NoneType: "null",
}


Row = tuple[str, str]
LIKE_RUN = 5
"""A command that has so many options of `edgemill run` refers to it."""


def settings() -> str:
    """A section for each of the settings file's."""
    flags = {
        SHORT_NAMES[str(one.name)]: one.opts[0]
        for one in cli.edgemill.commands["run"].params
        if one.name in SHORT_NAMES
    }
    parts = []
    for section, model in SECTIONS.items():
        about = field_docstrings(model)
        rows = [
            (
                f"`{section}.{name}`" + (f"<br>`{flags[full]}`" if (full := f"{section}.{name}") in flags else ""),
                _kind(field),
                _default(field),
                PAGE.sub(r"[\1](\1.md)", about[name]),
            )
            for name, field in model.model_fields.items()
        ]
        table = _table(("setting, flag", "type", "default", "meaning"), rows)
        parts.append(f"## `{section}`\n\n{model.__doc__}\n\n{table}")
    return "\n\n".join(parts)


def programs() -> str:
    """The columns of all programs of edgemill, and then their settings."""
    columns, parameters = [], []
    for name, program in every_shipped().items():
        for column in (*program.columns, *program.edge_columns):
            where = "In `edges`. " if column in program.edge_columns else ""
            columns.append((f"`{name}`", f"`{column.name}`", column.kind, where + column.meaning))
        fields = section_of(program).model_fields if program.parameters else {}
        for key, field in fields.items():
            meaning = PAGE.sub(r"[\1](\1.md)", program.parameters[key].meaning)
            parameters.append((f"`{name}.{key}`", _kind(field), _default(field), meaning))
    return "\n\n".join(
        (
            _table(("program", "column", "type", "content"), columns),
            _table(("setting", "type", "default", "meaning"), parameters),
        )
    )


def formats() -> str:
    """A row for each format of input files."""
    rows = [
        (
            f"`{name}`",
            own.title,
            ", ".join(f"`{suffix}`" for suffix in (*own.suffixes, *own.other_suffixes)),
            own.reading,
        )
        for name, own in every_format().items()
    ]
    return _table(("`input.format`", "format", "names of files", "how a file is read"), rows)


def result_columns(columns: Sequence[ResultColumn], *when: str) -> str:
    """A row for each column of a table of results, after those of ids for a table of edges."""
    ends = (
        ("the input's source column", "id", "The smaller end."),
        ("the input's target column", "id", "The larger end."),
    )
    rows = [(f"`{own.name}`", own.type, own.meaning) for own in columns if own.when in when]
    return _table(("column", "type", "meaning"), [*(ends if columns is EDGES and "always" in when else ()), *rows])


def _kind(field: FieldInfo) -> str:
    """The types that a setting takes; that its default is null says that it takes null."""
    by_default = field.get_default(call_default_factory=True)
    kinds = dict.fromkeys(_kinds(field.annotation))
    kind = " or ".join(own for own in kinds if own != KINDS[types.NoneType] or by_default is not None)
    for limit in field.metadata:
        match limit:
            case Ge(ge=least):
                kind += f", ≥ {least}"
            case Gt(gt=least):
                kind += f", > {least}"
    return kind


def _kinds(annotation: Any) -> Iterator[str]:
    origin = get_origin(annotation)
    if origin is Literal:
        yield ", ".join(f"`{choice}`" for choice in get_args(annotation))
    elif origin is dict or annotation in KINDS:
        yield KINDS[origin or annotation]
    else:
        for one in get_args(annotation):
            yield from _kinds(one)


def _default(field: FieldInfo) -> str:
    default = field.get_default(call_default_factory=True)
    if default is PydanticUndefined:
        return "required"
    if default is None:
        return "null"
    return "`" + yaml.safe_dump(default, default_flow_style=True).removesuffix("...\n").strip() + "`"


def commands() -> str:
    """All commands with their arguments and options."""
    return "\n\n".join(_command(one, name) for name, one in _named(cli.edgemill, "edgemill"))


def _named(group: click.Group, name: str) -> Iterator[tuple[str, click.Command]]:
    yield name, group
    for own in sorted(group.commands):
        yield f"{name} {own}", group.commands[own]


def _command(command: click.Command, name: str) -> str:
    """A section for a command. Commands of a group have a line each."""
    context = click.Context(command, info_name=name)
    usage = " ".join([name, *command.collect_usage_pieces(context)])
    about = cleandoc(command.help or "")
    parts = [f"## `{name}`", f"`{usage}`", _plain(about.partition("\n\n")[0] if command is cli.edgemill else about)]
    rows = _options(command)
    if name == "edgemill run":
        flags = [names for names, _ in _options(command, SHORT_NAMES)]
        parts.append(f"Flags of [settings](settings.md), explained there: {', '.join(flags)}.")
        rows = [row for row in rows if row[0] not in flags]
    of_run = [] if name == "edgemill run" else _options(cli.edgemill.commands["run"])
    same = [row for row in rows if row in of_run]
    if len(same) >= LIKE_RUN:
        lacking = " and ".join(names for names, _ in of_run if names not in {own for own, _ in rows})
        which = ", ".join(names for names, _ in same)
        which = f"without {lacking}" if len(lacking) < len(which) else f"these: {which}"
        parts.append(f"Its options are those of [`edgemill run`](#edgemill-run), {which}.")
        rows = [row for row in rows if row not in same]
    if rows:
        parts.append(_list(rows))
    if isinstance(command, click.Group) and command is not cli.edgemill:
        options = [_options(one) for one in command.commands.values()]
        of_each = [row for row in options[0] if all(row in own for own in options)]
        own = [
            (f"`{_line(one, f'{name} {key}', of_each)}`", one.help or "")
            for key, one in sorted(command.commands.items())
        ]
        parts += [_list(own), f"Options of each:\n\n{_list(of_each)}"]
    return "\n\n".join(parts)


def _line(command: click.Command, name: str, known: Collection[Row]) -> str:
    """A command with its options but the `known` ones; those in brackets may be left out."""
    words = [name]
    for one in command.params:
        if isinstance(one, click.Option) and one.name != "debug" and _option(one) not in known:
            word = one.opts[0] + _value(one)
            words.append(word if one.required else f"[{word}{f'={one.default}' if one.show_default else ''}]")
    return " ".join(words)


def _options(command: click.Command, names: Collection[str] | None = None) -> list[Row]:
    """A row for each option, or for those of `names`."""
    options = [one for one in command.params if isinstance(one, click.Option) and one.name != "debug"]
    return [_option(one) for one in options if names is None or one.name in names]


def _option(option: click.Option) -> Row:
    names = ", ".join(f"`{one}{_value(option)}`" for one in option.opts)
    default = "required" if option.required else f"default `{option.default}`" if option.show_default else ""
    return f"{names} ({default})" if default else names, _plain(option.help or "")


def _value(option: click.Option) -> str:
    match option.type:
        case _ if option.is_flag:
            return ""
        case click.Choice(choices=choices):
            return " " + "|".join(map(str, choices))
        case kind:
            name = kind.name.removesuffix(" range")
            return " " + (option.metavar or {"integer": "N", "float": "X"}.get(name, "TEXT"))


def _list(rows: Iterable[Row]) -> str:
    return "\n".join(f"- {name}: {' '.join(meaning.split())}" if meaning else f"- {name}" for name, meaning in rows)


def _plain(text: str) -> str:
    return text.replace("<", "&lt;").replace("{", "&#123;")


def exit_codes() -> str:
    """A row for each code."""
    raised = [one for one in _with_code_of_its_own(errors.EdgemillError) if one.exit_code != 1]
    rows = [("0", "", "Done, or nothing to do; `diff`, whether or not anything changed.")]
    rows.append(("1", "any other", "Anything else, and a `verify` that found a mistake. `--debug` shows a traceback."))
    rows += [
        (str(one.exit_code), f"`{one.__name__}`", " ".join(str(one.__doc__).split()))
        for one in sorted(raised, key=attrgetter("exit_code"))
    ]
    rows.append((str(exits.exit_code(KeyboardInterrupt())), "`KeyboardInterrupt`", "Interrupted: Ctrl-C, SIGINT."))
    rows.append((str(exits.BROKEN_PIPE), "", "The reader of its output closed the pipe, such as `head`. No message."))
    rows.append((str(exits.exit_code(exits.Terminated())), "`KeyboardInterrupt`", "Terminated: SIGTERM."))
    return _table(("code", "in Python", "meaning"), rows)


def _with_code_of_its_own(kind: type[errors.EdgemillError]) -> Iterator[type[errors.EdgemillError]]:
    for one in kind.__subclasses__():
        if "exit_code" in vars(one):
            yield one
        yield from _with_code_of_its_own(one)


@cache
def record() -> str:
    """The keys of manifest.json. Keys of one object that need no explanation share a line.

    Kept, since each page of docs/ is compared with it, and Python parses a whole module for each class of it.
    """
    schema = manifest.Manifest.model_json_schema(by_alias=True)
    rows: list[Row] = []
    for prefix, name, about in _keys(schema, manifest.Manifest, schema["$defs"], "", {}):
        before, earlier = rows[-1] if rows else ("", "")
        if not about and not earlier and before.startswith(f"`{prefix}") and "." not in name.removeprefix(f"`{prefix}"):
            rows[-1] = f"{before}, {name}", ""
        else:
            rows.append((name, about))
    return _list(rows)


def _keys(
    schema: Mapping[str, Any], model: Any, inner: Mapping[str, Any], prefix: str, listed: dict[str, str]
) -> Iterator[tuple[str, str, str]]:
    """Prefix, name with type, and meaning of each key. An object `listed` under another key refers to it."""
    known = field_docstrings(model)
    fields = {field.alias: name for name, field in getattr(model, "model_fields", {}).items() if field.alias}
    for name, field in schema["properties"].items():
        shapes = [one for one in field.get("anyOf", [field]) if one.get("type") != "null"]
        shape = shapes[0]
        many = shape.get("type") == "array"
        reference = (shape["items"] if many else shape).get("$ref", "").rpartition("/")[2]
        named = inner.get(reference, {})
        kind = "object" if reference else shape["items"].get("type", "") if many else shape.get("type", "")
        about = known.get(fields.get(name, name)) or named.get("description", "").replace("\n", " ")
        if reference in listed:
            about += f" Its keys are those of `{listed[reference]}`."
        inside = reference and reference not in listed
        yield prefix, f"`{prefix}{name}`" + ("" if inside else f" ({f'list of {kind}s' if many else kind})"), about
        if inside:
            listed[reference] = f"{prefix}{name}"
            below = f"{prefix}{name}{'[]' if many else ''}."
            yield from _keys(named, getattr(manifest, reference), inner, below, listed)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [
        [" ".join(cell.split()).replace("|", "\\|") for cell in line] for line in (head, ["---"] * len(head), *rows)
    ]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


TABLES: Mapping[str, Callable[[], str]] = {
    "settings": settings,
    "programs": programs,
    "formats": formats,
    "edges": lambda: result_columns(EDGES, "always", "exact"),
    "intervals": lambda: result_columns(EDGES, "interval"),
    "vertices": lambda: result_columns(VERTICES, "always", "exact"),
    "commands": commands,
    "exit_codes": exit_codes,
    "manifest": record,
}


def renewed(page: str) -> str:
    """The page with each table as the code says now."""
    return MADE.sub(lambda found: f"{found[1]}\n{TABLES[found[2]]()}\n\n{found[3]}", page)


def main() -> None:
    """Write the pages that are not what the code says, and name them."""
    for path in sorted(DOCS.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        if (new := renewed(text)) != text:
            path.write_text(new, encoding="utf-8")
            print(path.relative_to(DOCS.parent))


if __name__ == "__main__":
    main()
