"""The Python function `mine`. It connects all parts of a call, so it imports more modules than others."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, Unpack

from ...tasks.errors import UsageError
from ..cluster.client import Client, client_for, refuse_unseen
from ..cluster.connecting.guard import guarded_call
from ..frames.frame_input import VERTICES, vertices_as_file
from ..frames.input_object import InputObject
from ..messages.setting_names import naming_keywords
from ..monitor.events import Events, Listener
from ..results.notebook.kernel import shows_html
from ..results.result import Result
from ..run.input import accepted_input
from ..run.mining import mine_settings
from ..settings.models import Settings
from ..settings.sources import by_name, settings_of
from .keywords import Keywords
from .temporary import TemporaryFolder, new_folder


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
        from ..results.notebook.progress import NotebookDisplay

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
