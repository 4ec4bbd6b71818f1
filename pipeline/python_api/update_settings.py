"""Settings and batch of an update. Loads no Dask and no kernels."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ...tasks.errors import UsageError
from ..inputs.frame_input import VERTICES
from ..inputs.input_object import InputObject, PathList
from ..opening.input import accepted_input
from ..results.result import Result
from ..settings.declared_programs import LAMBDA, names_of, shipped_names
from ..settings.models import SECTIONS
from ..updating.beginning import refuse_unclear

_FROM_BASE = ("partitioning", "bounding", "programs")
"""Sections of settings that are those of the result, unless they are given."""
_MAY_BE_GIVEN = ("nulls", "repeats", "vertices", "vertex_id", "vertex_columns", "vertex_label", "storage_options")
"""Settings of the input that an update may have: of a batch's rows, of attributes, and of the object store."""
_OF_INPUT = ("directed", "weight_column", *_MAY_BE_GIVEN[:-1])
_OF_OUTPUT = ("compression", "row_group_rows", "report")


def batch_part(given: Any) -> InputObject | None:
    """Edges to insert or to delete, from what `mine` takes as input; None without any. Raises UsageError."""
    if given is None or (isinstance(given, list | tuple) and not given):
        return None
    found = accepted_input(given)
    return PathList([found]) if isinstance(found, str) else found


def update_settings(base: Result, given: Mapping[str, object], assigned: Collection[str] = ()) -> dict[str, object]:
    """The settings of an update of `base` by dotted names: `given`, and those of the result, without those in
    `assigned`, which `--set` gives.

    No module is imported because a result names it: programs of the user must be in `given` again. Their parameters are
    taken from the result. Raises UsageError.
    """
    _refuse_other_input({*given, *assigned})
    refuse_unclear(base)
    inherited = _settings_of_result(base, _sections_of_programs(base, given, assigned))
    if os.path.basename(str(inherited.get("input.vertices") or "")) == VERTICES and "input.vertices" not in given:
        raise UsageError(
            f"the attributes of {base.place} came from a frame, which is not kept: give a frame or a path again as "
            "input.vertices"
        )
    replaced = {name for name in inherited if any(f"{name}.".startswith(f"{one}.") for one in assigned)}
    return {name: value for name, value in inherited.items() if name not in replaced} | dict(given)


def _refuse_other_input(names: Collection[str]) -> None:
    """Raises UsageError for a setting of the input that an update takes from its result."""
    may = {f"input.{name}" for name in _MAY_BE_GIVEN}
    if refused := sorted(name for name in names if name.startswith("input.") and name not in may):
        raise UsageError(f"{refused[0]} is for a whole input, and an update has the input of its result: leave it out")


def _settings_of_result(base: Result, programs: Sequence[str]) -> dict[str, object]:
    """The settings of the result that an update has as well, by dotted names, with those of these programs."""
    then, record = base.manifest.settings, base.manifest.input
    inherited: dict[str, object] = {
        f"{section}.{name}": value
        for section in (*_FROM_BASE, *programs)
        for name, value in then.get(section, {}).items()
        if section not in SECTIONS or name in SECTIONS[section].model_fields  # an earlier release may have more
    }
    for section, names in (("input", _OF_INPUT), ("output", _OF_OUTPUT)):
        inherited |= {f"{section}.{name}": then[section][name] for name in names if name in then.get(section, {})}
    inherited |= {
        "input.path": base.place.url,
        "input.source_column": record.source_column,
        "input.target_column": record.target_column,
    }
    return {name: tuple(value) if isinstance(value, list) else value for name, value in inherited.items()}


def _sections_of_programs(base: Result, given: Mapping[str, object], assigned: Collection[str]) -> list[str]:
    """The programs that made `base` and may run again. Raises UsageError if one of the user is not named again."""
    programs = base.manifest.settings.get("programs", {})
    own, run = (tuple(programs.get(name, ())) for name in ("own", "run"))
    if own and "programs.own" not in given and "programs.own" not in assigned:
        raise UsageError(
            f"{base.place} was made with programs of your own ({', '.join(own)}), and no module is imported because a "
            "result names it: name them again by programs.own"
        )
    again = given.get("programs.own", ())
    same = [place for place in own if place in ((again,) if isinstance(again, str) else again)]  # type: ignore[operator]
    others = set(run) - {LAMBDA, *names_of(own)}
    if "programs.run" in given or "programs.run" in assigned:
        others &= set(shipped_names())
    return [*names_of(same), *sorted(others)]
