"""What a user starts; the only layer that knows Dask. Its public names are those of `edgemill`, too."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..tasks.errors import (
        ClusterLost,
        EdgemillError,
        InputError,
        InputIncomplete,
        InternalError,
        NotConverged,
        OutOfRoom,
        OutputLocked,
        StoreLost,
        UsageError,
    )
    from .asking import (
        edges_of,
        find_dn_graph,
        find_group,
        find_vertex,
        group_at,
        groups_of,
        member_ids,
        top,
    )
    from .calls.mine import mine
    from .comparing import Diff, diff
    from .config import load_settings
    from .frames.group_edges import GroupEdges
    from .frames.table import ResultTable
    from .groups.attributes import attributes_of, labels_of
    from .groups.members import members_of
    from .groups.trusses import ktruss, ktruss_groups
    from .nights.finding import find_track
    from .planning import make_plan
    from .result import Result
    from .rows import Group, Vertex
    from .settings import Settings

    __version__: str

__all__ = [
    "ClusterLost",
    "Diff",
    "EdgemillError",
    "Group",
    "GroupEdges",
    "InputError",
    "InputIncomplete",
    "InternalError",
    "NotConverged",
    "OutOfRoom",
    "OutputLocked",
    "Result",
    "ResultTable",
    "Settings",
    "StoreLost",
    "UsageError",
    "Vertex",
    "__version__",
    "attributes_of",
    "diff",
    "edges_of",
    "find_dn_graph",
    "find_group",
    "find_track",
    "find_vertex",
    "group_at",
    "groups_of",
    "ktruss",
    "ktruss_groups",
    "labels_of",
    "load_settings",
    "make_plan",
    "member_ids",
    "members_of",
    "mine",
    "top",
]

_HOME = dict.fromkeys(__all__, "..tasks.errors") | {
    "Diff": ".comparing",
    "Group": ".rows",
    "GroupEdges": ".frames.group_edges",
    "Result": ".result",
    "ResultTable": ".frames.table",
    "Settings": ".settings",
    "Vertex": ".rows",
    "attributes_of": ".groups.attributes",
    "diff": ".comparing",
    "edges_of": ".asking",
    "find_dn_graph": ".asking",
    "find_group": ".asking",
    "find_track": ".nights.finding",
    "find_vertex": ".asking",
    "group_at": ".asking",
    "groups_of": ".asking",
    "ktruss": ".groups.trusses",
    "ktruss_groups": ".groups.trusses",
    "labels_of": ".groups.attributes",
    "load_settings": ".config",
    "make_plan": ".planning",
    "member_ids": ".asking",
    "members_of": ".groups.members",
    "mine": ".calls.mine",
    "top": ".asking",
}

if not TYPE_CHECKING:  # type checkers would take any name for one that is found here

    def __getattr__(name: str) -> object:
        # Imported at first use: `import edgemill.pipeline` and `edgemill --help` stay fast.
        if name == "__version__":
            from importlib.metadata import version

            return version("edgemill")
        if name not in _HOME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(_HOME[name], __name__), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
