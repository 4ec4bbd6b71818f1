"""Vertices that settings name by their ids: their dense numbers in the graph of a run. Loads no program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TypeAlias

import numpy as np

from ...tasks.errors import InputError, UsageError
from ...tasks.ids.display import type_name
from ...tasks.ids.id_types import parse_ids
from ...tasks.ingest.numbering import numbers_of
from ...tasks.inputs.sources import Source
from ..settings.models import Settings
from ..stages.ingesting import Buckets
from ..stages.task_engine import TaskEngine

Numbers: TypeAlias = Mapping[str, int]
"""Id as text in the settings → dense number."""

_MOST_NAMED = 3


def find_vertices(engine: TaskEngine, settings: Settings, source: Source, buckets: Buckets) -> Numbers:
    """The dense numbers of all vertices that the settings of the requested programs name.

    Raises UsageError for a text that is no id of the input's type, and InputError for ids that are not in the graph.
    """
    named = dict(_named(settings))
    texts = list(dict.fromkeys(text for ids in named.values() for text in ids))
    if not texts:
        return {}
    for setting, ids in named.items():
        for text in ids:
            _check(setting, text, source)
    wanted = parse_ids(texts, source.id_type)
    found = engine.peek(buckets.ids, partial(numbers_of, wanted, buckets.starts))
    numbers = dict(zip(texts, np.max(found, axis=0).tolist(), strict=True))
    for setting, ids in named.items():
        absent = [text for text in ids if numbers[text] < 0]
        if absent:
            shown = ", ".join(map(repr, absent[:_MOST_NAMED]))
            more = f" and {len(absent) - _MOST_NAMED:,} more" if len(absent) > _MOST_NAMED else ""
            raise InputError(
                f"{setting}: no vertex has the id {shown}{more}; ids of this input are {type_name(source.id_type)}, "
                "and vertices are the ids of its edges"
            )
    return numbers


def _named(settings: Settings) -> Iterator[tuple[str, tuple[str, ...]]]:
    """(setting, ids) of each setting of a requested program that names vertices."""
    for name, program in settings.requested_programs.items():
        for parameter in program.vertices:
            given = getattr(getattr(settings, name), parameter)
            yield f"{name}.{parameter}", given if isinstance(given, tuple) else (given,)


def _check(setting: str, text: str, source: Source) -> None:
    try:
        parse_ids([text], source.id_type)
    except ValueError as error:
        raise UsageError(f"{setting}: {error}, and the ids of the input are {type_name(source.id_type)}") from error
