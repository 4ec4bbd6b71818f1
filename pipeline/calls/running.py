"""The Python function `run`, and what the functions of single programs (`programs`) have in common."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Unpack

from ...tasks.errors import KeywordError
from ..cluster.client import Client
from ..messages.setting_names import naming_keywords
from ..messages.suggesting import did_you_mean
from ..programs.catalogue import CATALOGUE, LAMBDA
from ..results.frames.table import ResultTable
from ..results.result import Result
from .keywords import Keywords, RunKeywords
from .mine import mine


def run(
    input: Any = None,
    output: str | os.PathLike[str] | None = None,
    /,
    *,
    client: Client | None = None,
    progress: bool | None = None,
    **settings: Unpack[Keywords],
) -> Result:
    """Run the programs `programs` on the edges of `input`, publish the result, and return it.

    `programs` are names such as `["pagerank", "components"]`, with `"lambda"` among them for λ; the default is λ alone.
    The columns of programs are in `Result.vertices`. Parameters of a program are a section of settings:
    `pagerank={"damping": 0.9}`.

    The name is that of the command; arguments, settings and errors are those of `mine`. A run that a limit ended
    returns a Result that is not `converged`; its manifest says which programs were ended.
    """
    return mine(input, output, client=client, progress=progress, **settings)


def columns_of(
    name: str,
    edges: Any,
    parameters: Mapping[str, Any],
    client: Client | None,
    progress: bool | None,
    settings: Mapping[str, Any],
) -> ResultTable:
    """The table of vertices of a run of one program, or that of edges, with λ, if its columns are of edges.

    Raises KeywordError for a keyword that the function of the program does not have.
    """
    entry = CATALOGUE[name]
    for keyword in settings:
        _refuse_unknown(name, keyword, parameters)
    with naming_keywords(entry.section or ""):
        given = {f"{entry.section}.{parameter}": value for parameter, value in parameters.items()}
        named: dict[str, Any] = {"programs": (LAMBDA, name) if entry.edges else (name,), **given, **settings}
        result = mine(edges, client=client, progress=progress, **named)
        return result.edges if entry.edges else result.vertices


def _refuse_unknown(name: str, keyword: str, parameters: Mapping[str, Any]) -> None:
    known = [*parameters, *RunKeywords.__annotations__]
    if keyword in known or "." in keyword:
        return
    if keyword in ("programs", "program"):
        raise KeywordError(
            f"edgemill.{name} runs {name} alone: use edgemill.run with programs=[…] for several programs"
        )
    hint = did_you_mean(keyword, zip(known, known, strict=True))
    raise KeywordError(
        f"edgemill.{name} has no keyword {keyword!r}{hint or '; its own are ' + (', '.join(parameters) or 'none')}"
    )
