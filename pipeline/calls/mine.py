"""`mine`, as it is called from Python."""

from __future__ import annotations

import os
import sys
from typing import Any, Unpack

from distributed import Client

from ...tasks.errors import UsageError
from ..config import by_name, settings_of
from ..frames.given import Given
from ..frames.run_input import given_as_input
from ..guard import refuse_import
from ..mining import mine_settings
from ..notebook.kernel import shows_html
from ..result import Result
from ..telemetry import Events, Listener
from ..wording.settings_named import naming_keywords
from .clients import client_for, refuse_unseen
from .keywords import Keywords
from .temporary import TemporaryFolder

__all__ = ["mine"]


def mine(
    input: Any = None,
    output: str | os.PathLike[str] | None = None,
    /,
    *,
    client: Client | None = None,
    progress: bool | None = None,
    **settings: Unpack[Keywords],
) -> Result:
    """Find λ of every edge of `input` and publish it in the folder `output`, or at that fsspec URL.
    Where that holds this very result already, it is given back without work.

    `input` is a path of Parquet edges, a list of paths, a table (pandas, polars, Arrow, DuckDB, Dask, cudf) or a graph
    (NetworkX, igraph, SciPy).

    Without an `output` the result is temporary: its folder, below `TMPDIR`, goes when the Result and all that reads
    its tables are gone, when Python ends, or at the end of a `with` block; `Result.save` keeps a copy. It has no
    report, unless `report=True`.

    `settings` are those of the settings file: whole sections (`bounding={"method": "band"}`), or single settings by
    the names of the command's flags (`partitions=4`, `overwrite=True`) or by their own where one section alone has such
    a name (`nulls="drop"`). `input` and `output` may be named, too, and beside the positional paths these keywords are
    sections: `mine("edges.parquet", "out", output={"report": False})`.

    The cluster of `client` computes, or else what settings of `cluster` name, or else the cluster of the active Dask
    client, as for Dask's collections; without any of these, one worker in this process.

    `progress` shows how far the run is: in a notebook as an output of the cell, else on stderr. Left out, it is shown
    in notebooks alone; False shows nothing.

    A run that a limit ended gives a Result that is not `converged`. Raises EdgemillError: UsageError for settings,
    InputError for the edges, ClusterLost, OutOfRoom, OutputLocked.
    """
    refuse_import()
    with naming_keywords(), Events(_listener(progress)) as events:
        named = by_name(input, output, **settings)
        if named.get("input.path") is None:
            raise UsageError('mine needs an input: give a path or a frame first, as in mine("edges.parquet", "out")')
        edges = given_as_input(named["input.path"])
        path, given = (edges, None) if isinstance(edges, str) else (edges.name, edges)
        named["input.path"] = path
        if "output.path" not in named:
            return _mine_temporarily(named, given, client, events)
        own = settings_of(named)
        return mine_settings(own, client=client_for(own.cluster, client), events=events, given=given)


def _listener(progress: bool | None) -> Listener | None:
    if progress is False:
        return None
    if shows_html():
        from ..notebook.progress import NotebookDisplay

        return NotebookDisplay()
    if not progress:
        return None
    from ..display import display_for

    return display_for(sys.stderr, verbose=True)


def _mine_temporarily(named: dict[str, object], given: Given | None, client: Client | None, events: Events) -> Result:
    folder = TemporaryFolder()
    try:
        settings = settings_of({"output.report": False} | named | {"output.path": folder.result})
        if settings.checkpoint.path is not None:
            raise UsageError("checkpoint.path is for runs that are repeated with the same output: name an output")
        if settings.output.format == "delta" and settings.output.delta_path is None:
            raise UsageError("output.format delta is for results that stay: name an output, or output.delta_path")
        client = client_for(settings.cluster, client)
        refuse_unseen(folder, settings.cluster, client)
        mine_settings(settings, client=client, events=events, given=given)
        return Result.in_temporary(folder)
    except BaseException as error:
        folder.remove()
        notes = getattr(error, "__notes__", [])
        notes[:] = [note for note in notes if str(folder.result) not in note]  # what they name is gone
        raise
