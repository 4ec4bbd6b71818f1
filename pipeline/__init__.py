"""What a user starts; the only layer that knows Dask.

>>> from edgemill.pipeline import mine
>>> result = mine("edges.parquet", "out", partitions=4)
>>> result.edges.to_table().to_pandas()
"""

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
    from .comparing import Diff, diff
    from .config import load_settings
    from .groups.attributes import attributes_of, labels_of
    from .groups.members import members_of
    from .groups.trusses import ktruss, ktruss_groups
    from .mining import mine
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
    "InputError",
    "InputIncomplete",
    "InternalError",
    "NotConverged",
    "OutOfRoom",
    "OutputLocked",
    "Result",
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
    "Result": ".result",
    "Settings": ".settings",
    "Vertex": ".rows",
    "attributes_of": ".groups.attributes",
    "diff": ".comparing",
    "edges_of": ".asking",
    "find_dn_graph": ".asking",
    "find_group": ".asking",
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
    "mine": ".mining",
    "top": ".asking",
}


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
