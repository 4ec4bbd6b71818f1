"""The Python functions `mine`, `run`, `estimate` and `update`, and a function for each program of edgemill.

What `mine` does not need, the others import inside.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Mapping
from functools import cache
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Unpack

from ...tasks.errors import KeywordError, UsageError
from ..cluster.client import Client, client_for, refuse_unseen
from ..cluster.connecting.guard import guarded_call
from ..events import Events, Listener
from ..inputs.frame_input import VERTICES, vertices_as_file
from ..inputs.input_object import InputObject
from ..messages.html import shows_html
from ..messages.wording import did_you_mean
from ..opening.input import accepted_input
from ..results.result import Result
from ..results.table import ResultTable
from ..results.temporary import TemporaryFolder, new_folder
from ..run.mining import mine_settings
from ..settings.declared_programs import LAMBDA, DeclaredProgram, shipped
from ..settings.models import Settings
from ..settings.setting_names import naming_keywords
from ..settings.sources import by_name, settings_of
from .keywords import Keywords, RunKeywords

if TYPE_CHECKING:
    from ..estimates.figures import GraphFigures


def mine(
    input: Any = None,
    output: str | os.PathLike[str] | None = None,
    /,
    *,
    client: Client | None = None,
    progress: bool | None = None,
    **settings: Unpack[Keywords],
) -> Result:
    """Compute λ of every edge of `input`, publish the result in the folder or at the fsspec URL `output`, and return
    it. A result that is up to date is returned without computation.

    `input` is a path of edges, a list of paths, a table (pandas, polars, Arrow, DuckDB, Dask, cudf) or a graph
    (NetworkX, igraph, SciPy). `vertices` is a path or a table, too, with a row of attributes for each vertex.

    Without an `output` the result is temporary. Its folder, below `TMPDIR`, is removed once nothing refers to the
    Result or its tables, when Python exits, or at the end of a `with` block; `Result.save` copies it. It has no report,
    unless `report=True`.

    `settings` are the settings of the settings file: sections (`bounding={"method": "band"}`), or single settings by
    the name of their flag (`partitions=4`, `overwrite=True`) or by their own name if only one section has it
    (`nulls="drop"`). `input` and `output` can be keywords, too; beside positional paths they are sections:
    `mine("edges.parquet", "out", output={"report": False})`.

    The cluster of `client` computes; without a client, the cluster of the `cluster` settings; without these, the
    cluster of the active Dask client; without that, one worker in this process.

    `progress=True` shows the progress of the run, in a notebook in the output of the cell, else on stderr. By default
    only notebooks show it; False shows nothing.

    A run that a limit ended returns a Result that is not `converged`. Raises EdgemillError: UsageError for settings,
    InputError for the edges, ClusterLost, OutOfRoom, OutputLocked.
    """
    with naming_keywords(), guarded_call(), Events(listener(progress)) as events:
        named = by_name(input, output, **settings)
        if named.get("input.path") is None:
            raise UsageError('mine needs an input: give a path or a frame first, as in mine("edges.parquet", "out")')
        edges = accepted_input(named["input.path"])
        path, given = (edges, None) if isinstance(edges, str) else (edges.name, edges)
        named["input.path"] = path
        with vertices_as_file(named, new_folder):
            if "output.path" not in named:
                return _mine_temporarily(named, given, client, events)
            own = settings_of(named)
            client = client_for(own.cluster, client)
            refuse_unseen_vertices(own, client)
            return mine_settings(own, client=client, events=events, given=given)


def listener(progress: bool | None) -> Listener | None:
    """The listener that shows the progress of a call, as the keyword `progress` says."""
    if progress is False:
        return None
    if shows_html():
        from ..notebook.progress import NotebookDisplay

        return NotebookDisplay()
    if not progress:
        return None
    from ..monitor.display import display_for

    return display_for(sys.stderr, verbose=True)


def refuse_unseen_vertices(settings: Settings, client: Client | None) -> None:
    """Raises UsageError if workers do not see the file to which a frame of attributes of vertices was written."""
    file = settings.input.vertices
    if file is not None and os.path.basename(file) == VERTICES:
        refuse_unseen(
            Path(file).parent,
            settings.cluster,
            client,
            "the file of the frame input.vertices",
            "write the frame to a file that all workers see, and give its path",
        )


def _mine_temporarily(
    named: dict[str, object], given: InputObject | None, client: Client | None, events: Events
) -> Result:
    folder = TemporaryFolder()
    try:
        settings = settings_of({"output.report": False} | named | {"output.path": folder.result})
        if settings.checkpoint.path is not None:
            raise UsageError("checkpoint.path needs an output, with which a later run resumes: name an output")
        if settings.output.format == "delta" and settings.output.delta_path is None:
            raise UsageError("output.format delta needs a permanent result: name an output, or output.delta_path")
        client = client_for(settings.cluster, client)
        refuse_unseen(folder.result.parent, settings.cluster, client)
        refuse_unseen_vertices(settings, client)
        mine_settings(settings, client=client, events=events, given=given)
        return Result.in_temporary(folder)
    except BaseException as error:
        folder.remove()
        notes = getattr(error, "__notes__", [])
        notes[:] = [note for note in notes if str(folder.result) not in note]  # they name the removed folder
        raise


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
    with λ, if the columns of the program are of edges, or that of similar pairs.
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
    if program.finds_similar:
        first = "The result is the table of pairs: `source`, `rank`, `target`, `similarity`. Columns of vertices"
    columns = program.edge_columns or program.columns
    named = ", ".join(f"`{column.name}`" for column in columns)
    meanings = " ".join(f"`{column.name}`: {column.meaning}" for column in columns)
    lines = [program.title, f"{first}, {named}. {meanings}"]
    return "\n\n".join([*lines, *(f"`{name}`: {own.meaning}" for name, own in program.parameters.items())])


def _columns_of(
    name: str, edges: Any, client: Client | None, progress: bool | None, settings: Mapping[str, Any]
) -> ResultTable:
    """The table of vertices of a run of one program, or that of edges, with λ, if its columns are of edges, or that of
    similar pairs.

    Raises KeywordError for a keyword that the function of the program does not have.
    """
    program = shipped(name)
    for keyword in settings:
        _refuse_unknown(name, keyword, program.parameters)
    with naming_keywords(name):
        given = {f"{name}.{key}" if key in program.parameters else key: value for key, value in settings.items()}
        programs = (LAMBDA, name) if program.needs_lambda else (name,)
        result = mine(edges, client=client, progress=progress, **{"programs": programs, **given})
        if program.finds_similar:
            return result.similar_pairs
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


def estimate(input: Any = None, /, *, client: Client | None = None, **settings: Unpack[Keywords]) -> GraphFigures:
    """Estimate triangles, clustering and the largest λ of `input`, and the duration of a run; see `edgemill estimate`.

    `input`, `client` and `settings` are those of `mine`; an output is not used. `samples` and `seed` choose the sample
    of wedges: the same seed gives the same figures for any cluster. Raises the errors of `mine`.
    """
    from ..estimates.estimating import estimate_graph

    with naming_keywords(), guarded_call(), Events(None) as events:
        named = by_name(input, None, **settings)
        if named.get("input.path") is None:
            raise UsageError('estimate needs an input: give a path or a frame first, as in estimate("edges.parquet")')
        edges = accepted_input(named["input.path"])
        path, given = (edges, None) if isinstance(edges, str) else (edges.name, edges)
        folder = TemporaryFolder()
        try:
            own = settings_of({"output.path": folder.result} | named | {"input.path": path})
            client = client_for(own.cluster, client)
            if given is not None:
                refuse_unseen(
                    folder.result.parent,
                    own.cluster,
                    client,
                    "the files of the input",
                    "write the input to files that all workers see, and give their path",
                )
            return estimate_graph(own, client=client, events=events, given=given)
        finally:
            folder.remove()


def update(
    result: Result | str | os.PathLike[str],
    output: str | os.PathLike[str],
    /,
    *,
    insert: Any = None,
    delete: Any = None,
    client: Client | None = None,
    progress: bool | None = None,
    **settings: Any,
) -> Result:
    """Bring `result` up to date with edges to `insert` and to `delete`, publish the new result at `output`, and return
    it. `result` stays as it is. The new result is the one that `mine` would compute from all its edges.

    `insert` and `delete` are what `mine` takes as input: paths, tables or graphs, with the columns and the type of ids
    that the result has. Deletions come first, so an edge that is in both is in the new result. An edge to insert that
    the result has, and an edge to delete that it lacks, change nothing and are counted (`manifest.update`). A vertex
    that an insertion names is in the new result. A vertex that a deletion names is not, if no edge of it is left.

    `settings` are those of `mine`, of the input only `nulls`, `repeats`, `storage_options` and attributes of vertices.
    Those of algorithms, programs and attributes are taken from `result` unless they are given; programs of the user run
    only if `program` names them again. Raises as `mine` does, and UsageError where the result does not have what the
    new one needs, such as λ, or the directions of edges for a program where it has no state.
    """
    from ..updating.beginning import batch_for
    from .update_settings import batch_part, update_settings

    with naming_keywords(), guarded_call(), Events(listener(progress)) as events:
        base = result if isinstance(result, Result) else Result(result, settings.get("storage_options"))
        named = by_name(None, output, **settings)
        with vertices_as_file(named, new_folder):
            own = settings_of(update_settings(base, named))
            given = batch_for(own, base, batch_part(insert), batch_part(delete))
            client = client_for(own.cluster, client)
            refuse_unseen_vertices(own, client)
            return mine_settings(own, client=client, events=events, given=given)
