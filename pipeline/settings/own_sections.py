"""The model of settings with sections for programs of the user, made from the fields of their dataclasses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import PlainValidator, create_model, field_validator
from pydantic.errors import PydanticUserError

from ...tasks.errors import ProgramError, UsageError
from ..programs.catalogue import CATALOGUE, LAMBDA
from ..programs.own import OwnProgram, find_own, installed_names
from .models import SECTIONS, Settings
from .section import Section
from .vertex_ids import id_or_none


def model_for(tree: Mapping[str, Any]) -> type[Settings]:
    """The model of the settings in `tree`, which names programs of the user or none.

    Raises UsageError and ProgramError as `find_own` does, and for parameters of types that settings do not have.
    """
    programs = tree.get("programs")
    given = programs if isinstance(programs, Mapping) else {}
    own, run = (_names(given.get(name)) for name in ("own", "run"))
    unknown = set(run) - {LAMBDA, *CATALOGUE}
    installed = [name for name in installed_names() if name in unknown] if unknown else []  # reads all packages' files
    found = find_own(own, installed)
    if not found:
        return Settings
    sections: dict[str, Any] = {}
    for name, program in found.items():
        if name in SECTIONS:
            raise UsageError(f"programs.own: {name!r} is a section of settings: name it, as in other={program.place}")
        if program.parameters:
            sections[name] = (_section(program), ...)
    model = create_model("Settings", __base__=Settings, __module__=__name__, **sections)
    model.own_programs = found
    return model


def _names(given: object) -> tuple[str, ...]:
    """The names in a setting that is not validated yet; of a wrong value none."""
    if isinstance(given, str):
        return tuple(name.strip() for name in given.split(","))
    return tuple(one for one in given if isinstance(one, str)) if isinstance(given, list | tuple) else ()


def _section(program: OwnProgram) -> type[Section]:
    fields: dict[str, Any] = {}
    for name, (kind, default) in program.parameters.items():
        is_vertex = name in program.vertices
        if is_vertex and default is ...:
            default = None
        fields[name] = (Annotated[int | str | None, PlainValidator(id_or_none)] if is_vertex else kind, default)
    as_tuple = field_validator("*", mode="before")(lambda value: tuple(value) if isinstance(value, list) else value)
    try:
        return create_model(
            f"{program.kind.__name__}Settings",
            __base__=Section,
            __module__=__name__,
            __doc__=f"The program {program.name}, {program.place}.",
            __validators__={"as_tuple": as_tuple},
            **fields,
        )
    except (PydanticUserError, TypeError) as error:
        kinds = ", ".join(f"{name}: {kind}" for name, (kind, _) in program.parameters.items())
        raise ProgramError(
            f"program {program.place}: its fields are settings and must be numbers, texts, bools or tuples of these, "
            f"but are {kinds}"
        ) from error
