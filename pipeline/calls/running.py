"""The Python function `run`, and a function for each program of edgemill, made from its class."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from functools import cache
from inspect import Parameter, Signature, signature
from typing import Any, Protocol, Unpack

from ...tasks.errors import KeywordError
from ..cluster.client import Client
from ..messages.setting_names import naming_keywords
from ..messages.wording import did_you_mean
from ..programs.declared import LAMBDA, DeclaredProgram, shipped
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


class ProgramFunction(Protocol):
    """A function that runs one program of edgemill alone, without λ.

    `edges` is what `edgemill.mine` takes: a path, a list of paths, a table or a graph. Keywords are the parameters of
    the program, and those of `mine`, such as `directed`, `where`, `workers` and `output`. Errors are those of `mine`.
    The result is the table of vertices, a pyarrow dataset (`to_pandas`, `to_polars`, `to_arrow`, …), or that of edges,
    with λ, if the columns of the program are of edges.
    """

    __name__: str

    def __call__(
        self, edges: Any, /, *, client: Client | None = None, progress: bool | None = None, **settings: Any
    ) -> ResultTable: ...


@cache
def function_of(name: str) -> ProgramFunction:
    """The function of a program of edgemill, with its parameters in the signature and its columns in the docstring."""

    def function(
        edges: Any, /, *, client: Client | None = None, progress: bool | None = None, **settings: Any
    ) -> ResultTable:
        return _columns_of(name, edges, client, progress, settings)

    program = shipped(name)
    plain = signature(function).parameters.values()
    own = [
        Parameter(key, Parameter.KEYWORD_ONLY, default=None if one.default is ... else one.default, annotation=one.type)
        for key, one in program.parameters.items()
    ]
    edges, *of_all, settings = plain
    function.__signature__ = Signature([edges, *own, *of_all, settings], return_annotation="ResultTable")  # type: ignore[attr-defined]
    function.__name__ = function.__qualname__ = name
    function.__doc__ = _told(program)
    return function


def _told(program: DeclaredProgram) -> str:
    """The docstring of the function of a program."""
    first = "Columns: `id`, `degree`"
    if program.edge_columns:
        first = "The result is the table of edges, of a run with λ. Columns: both ids, `support`, `lambda`"
    columns = program.edge_columns or program.columns
    named = ", ".join(f"`{column.name}`" for column in columns)
    meanings = " ".join(f"`{column.name}`: {column.meaning}" for column in columns)
    lines = [program.title, f"{first}, {named}. {meanings}"]
    return "\n\n".join([*lines, *(f"`{name}`: {own.meaning}" for name, own in program.parameters.items())])


def _columns_of(
    name: str, edges: Any, client: Client | None, progress: bool | None, settings: Mapping[str, Any]
) -> ResultTable:
    """The table of vertices of a run of one program, or that of edges, with λ, if its columns are of edges.

    Raises KeywordError for a keyword that the function of the program does not have.
    """
    program = shipped(name)
    for keyword in settings:
        _refuse_unknown(name, keyword, program.parameters)
    with naming_keywords(name):
        given = {f"{name}.{key}" if key in program.parameters else key: value for key, value in settings.items()}
        programs = (LAMBDA, name) if program.needs_lambda else (name,)
        result = mine(edges, client=client, progress=progress, **{"programs": programs, **given})
        return result.edges if program.edge_columns else result.vertices


def _refuse_unknown(name: str, keyword: str, parameters: Collection[str]) -> None:
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
