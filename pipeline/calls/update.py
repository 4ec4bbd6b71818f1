"""The Python function `update`."""

from __future__ import annotations

import os
from typing import Any

from ..cluster.client import Client, client_for
from ..cluster.connecting.guard import guarded_call
from ..frames.frame_input import vertices_as_file
from ..messages.setting_names import naming_keywords
from ..monitor.events import Events
from ..results.result import Result
from ..run.mining import mine_settings
from ..settings.sources import by_name, settings_of
from ..updating.beginning import batch_for
from .mine import listener, refuse_unseen_vertices
from .temporary import new_folder
from .update_settings import batch_part, update_settings


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
    with naming_keywords(), guarded_call(), Events(listener(progress)) as events:
        base = result if isinstance(result, Result) else Result(result, settings.get("storage_options"))
        named = by_name(None, output, **settings)
        with vertices_as_file(named, new_folder):
            own = settings_of(update_settings(base, named))
            given = batch_for(own, base, batch_part(insert), batch_part(delete))
            client = client_for(own.cluster, client)
            refuse_unseen_vertices(own, client)
            return mine_settings(own, client=client, events=events, given=given)
