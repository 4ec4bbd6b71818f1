"""The Python function `estimate`."""

from __future__ import annotations

from typing import Any, Unpack

from ...tasks.errors import UsageError
from ..cluster.client import Client, client_for, refuse_unseen
from ..cluster.connecting.guard import guarded_call
from ..estimates.estimating import estimate_graph
from ..estimates.figures import GraphFigures
from ..messages.setting_names import naming_keywords
from ..monitor.events import Events
from ..run.input import accepted_input
from ..settings.sources import by_name, settings_of
from .keywords import Keywords
from .temporary import TemporaryFolder


def estimate(input: Any = None, /, *, client: Client | None = None, **settings: Unpack[Keywords]) -> GraphFigures:
    """Estimate triangles, clustering and the largest λ of `input`, and the duration of a run; see `edgemill estimate`.

    `input`, `client` and `settings` are those of `mine`; an output is not used. `samples` and `seed` choose the sample
    of wedges: the same seed gives the same figures for any cluster. Raises the errors of `mine`.
    """
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
