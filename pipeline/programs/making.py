"""Programs with their parameters from the settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...tasks.programs import AnyProgram, EdgeProgram
from ...tasks.programs.orders.calls import needs_weights
from ...tasks.programs.shipped import (
    Betweenness,
    BreadthFirst,
    Components,
    Coreness,
    Distances,
    Hits,
    LabelPropagation,
    LocalClustering,
    PageRank,
    ShortestPaths,
    Similarity,
    StrongComponents,
)
from ..settings.models import Settings
from .catalogue import Entry
from .vertices import Numbers

_MAKERS: Mapping[str, Callable[..., AnyProgram | EdgeProgram]] = {
    "pagerank": PageRank,
    "components": Components,
    "labels": LabelPropagation,
    "coreness": Coreness,
    "clustering": LocalClustering,
    "bfs": BreadthFirst,
    "sssp": ShortestPaths,
    "betweenness": Betweenness,
    "distances": Distances,
    "hits": Hits,
    "strong_components": StrongComponents,
    "similarity": Similarity,
}
"""Name → class; its fields are named like the settings of its section."""


def shipped_programs() -> list[AnyProgram]:
    """All programs of edgemill over vertices with their default parameters, and weighted PageRank."""
    made = [make() for make in _MAKERS.values()]
    return [*(program for program in made if not isinstance(program, EdgeProgram)), PageRank(weighted=True)]


def requested_programs(settings: Settings) -> dict[str, Entry]:
    """The programs in the setting `programs.run`, without λ, in the order of their columns."""
    return {name: settings.entry(name) for name in settings.programs.vertex_programs}


def program_of(name: str, settings: Settings, numbers: Numbers | None = None) -> AnyProgram | EdgeProgram:
    """A program of the catalogue with its parameters. `numbers` are the dense numbers of the vertices in them; without
    these, the program has the vertices of its defaults.
    """
    entry, parameters = settings.entry(name), parameters_of(name, settings)
    for vertices in entry.vertices:
        given = parameters.pop(vertices)
        if numbers is not None:
            several = isinstance(given, list)
            found = tuple(numbers[text] for text in (given if several else (given,)))
            parameters[vertices] = found if several else found[0]
    if name in _MAKERS:
        return _MAKERS[name](**parameters)
    own = settings.own_programs[name]
    return own.make(dict.fromkeys(own.vertices, 0) | parameters)


def parameters_of(name: str, settings: Settings) -> dict[str, Any]:
    """The parameters of a program in a run, by name, as JSON values."""
    section = settings.entry(name).section
    return {} if section is None else getattr(settings, section).model_dump(mode="json")


def topology_limit(settings: Settings) -> int | None:
    """Most bytes of a GPU's memory that hold edges while programs run; None for what is free."""
    most = settings.programs.device_topology_bytes
    return settings.cluster.device_memory_limit_bytes if most is None else most


def refuses_negative_weights(settings: Settings) -> bool:
    """Whether a requested program forbids weights below 0."""
    programs = [program_of(name, settings) for name in requested_programs(settings)]
    over_vertices = [program for program in programs if not isinstance(program, EdgeProgram)]
    return any(program.nonnegative and needs_weights(program) for program in over_vertices)
