"""Programs with their parameters from the settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...tasks.programs import Program
from ...tasks.programs.shipped import Components, Coreness, LabelPropagation, LocalClustering, PageRank
from ..settings.models import Settings
from .catalogue import CATALOGUE

_MAKERS: Mapping[str, Callable[..., Program]] = {
    "pagerank": PageRank,
    "components": Components,
    "labels": LabelPropagation,
    "coreness": Coreness,
    "clustering": LocalClustering,
}
"""Name → class; its fields are named like the settings of its section."""


def program_of(name: str, settings: Settings) -> Program:
    """A program of the catalogue with its parameters."""
    return _MAKERS[name](**parameters_of(name, settings))


def parameters_of(name: str, settings: Settings) -> dict[str, Any]:
    """The parameters of a program in a run, by name."""
    section = CATALOGUE[name].section
    return {} if section is None else getattr(settings, section).model_dump()
