"""The model of settings with a section for each program that they name, made from the fields of its class."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any

from pydantic import PlainValidator, create_model, field_validator
from pydantic.errors import PydanticUserError

from ...tasks.errors import ProgramError, UsageError
from .declared_programs import DeclaredProgram, Parameter, find_programs, shipped_names
from .models import SECTIONS, Section, Settings
from .values import id_or_none, id_texts


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
