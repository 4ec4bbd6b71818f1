"""Everything that a user starts: the command line, the Python API, runs on a cluster, results and monitoring.

It may import `tasks` and `kernels`; only `pipeline.cluster` imports Dask. Start reading with `run.mining`, which
carries out a run, and `cli.running`, which calls it. The public names below are those of `edgemill`, each loaded at its
first use. Each program of edgemill is a function, too, by its name (`python_api.functions.function_of`).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from .settings.declared_programs import shipped_names

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
        ProgramError,
        StoreLost,
        UsageError,
    )
    from ..tasks.programs.program import (
        Best,
        Column,
        Cost,
        EdgeFacts,
        EdgeProgram,
        Program,
        Top,
        Totals,
        VertexId,
        VertexIds,
        Vertices,
    )
    from .compare.diff import Diff, diff
    from .estimates.figures import GraphFigures
    from .plan.choice import make_plan
    from .programs.trying import try_program
    from .python_api.functions import ProgramFunction, estimate, mine, update
    from .queries.attributes import attributes_of, labels_of
    from .queries.group_edges import GroupEdges
    from .queries.groups import (
        edges_of,
        find_dn_graph,
        find_group,
        find_track,
        find_vertex,
        group_at,
        groups_of,
        member_ids,
        members_of,
        top,
    )
    from .queries.plots import plot_group, plot_lambda
    from .queries.trusses import ktruss, ktruss_groups
    from .results.lookup import Group, Vertex
    from .results.result import Result, open
    from .results.table import ResultTable
    from .settings.models import Settings
    from .settings.sources import load_settings

    __version__: str

    def __getattr__(name: str) -> ProgramFunction: ...


__all__ = [
    "Best",
    "ClusterLost",
    "Column",
    "Cost",
    "Diff",
    "EdgeFacts",
    "EdgeProgram",
    "EdgemillError",
    "GraphFigures",
    "Group",
    "GroupEdges",
    "InputError",
    "InputIncomplete",
    "InternalError",
    "NotConverged",
    "OutOfRoom",
    "OutputLocked",
    "Program",
    "ProgramError",
    "Result",
    "ResultTable",
    "Settings",
    "StoreLost",
    "Top",
    "Totals",
    "UsageError",
    "Vertex",
    "VertexId",
    "VertexIds",
    "Vertices",
    "__version__",
    "attributes_of",
    "diff",
    "edges_of",
    "estimate",
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
    "open",
    "plot_group",
    "plot_lambda",
    "top",
    "try_program",
    "update",
]

_MODULES = dict.fromkeys(__all__, "..tasks.errors") | {
    "Best": "..tasks.programs.program",
    "Column": "..tasks.programs.program",
    "Cost": "..tasks.programs.program",
    "EdgeFacts": "..tasks.programs.program",
    "EdgeProgram": "..tasks.programs.program",
    "Diff": ".compare.diff",
    "Group": ".results.lookup",
    "GraphFigures": ".estimates.figures",
    "GroupEdges": ".queries.group_edges",
    "Program": "..tasks.programs.program",
    "Result": ".results.result",
    "ResultTable": ".results.table",
    "Settings": ".settings.models",
    "Top": "..tasks.programs.program",
    "Totals": "..tasks.programs.program",
    "Vertex": ".results.lookup",
    "VertexId": "..tasks.programs.program",
    "VertexIds": "..tasks.programs.program",
    "Vertices": "..tasks.programs.program",
    "attributes_of": ".queries.attributes",
    "diff": ".compare.diff",
    "edges_of": ".queries.groups",
    "estimate": ".python_api.functions",
    "find_dn_graph": ".queries.groups",
    "find_group": ".queries.groups",
    "find_track": ".queries.groups",
    "find_vertex": ".queries.groups",
    "group_at": ".queries.groups",
    "groups_of": ".queries.groups",
    "ktruss": ".queries.trusses",
    "ktruss_groups": ".queries.trusses",
    "labels_of": ".queries.attributes",
    "load_settings": ".settings.sources",
    "make_plan": ".plan.choice",
    "member_ids": ".queries.groups",
    "members_of": ".queries.groups",
    "mine": ".python_api.functions",
    "open": ".results.result",
    "plot_group": ".queries.plots",
    "plot_lambda": ".queries.plots",
    "top": ".queries.groups",
    "try_program": ".programs.trying",
    "update": ".python_api.functions",
}

if not TYPE_CHECKING:  # hidden from type checkers, for which any other name is a program
    __all__ = sorted([*__all__, *shipped_names()])

    def __getattr__(name: str) -> object:
        # Imports at first use keep `import edgemill.pipeline` and `edgemill --help` fast.
        if name == "__version__":
            from importlib.metadata import version

            return version("edgemill")
        if name in shipped_names():
            from .python_api.functions import function_of

            return function_of(name)
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(_MODULES[name], __name__), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
