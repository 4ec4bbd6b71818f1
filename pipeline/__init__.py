"""Everything that a user starts: the command line, the Python API, runs on a cluster, results and monitoring.

It may import `tasks` and `kernels`; only `pipeline.cluster` imports Dask. Start reading with `run.mining`, which
carries out a run, and `cli.running`, which calls it.

The public names of `edgemill` are listed here, once, for type checkers, which read imports alone. At run time the same
lines are read as text, and a name is imported at its first use: `import edgemill` and `edgemill --help` are fast. After
a change run docs/making/keywords.py, which copies the names to package/__init__.py. Each program of edgemill is a
function, too, by its name (`python_api.functions.function_of`).
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from .settings.declared_programs import shipped_names

if TYPE_CHECKING:
    from ..tasks.errors import ClusterLost as ClusterLost
    from ..tasks.errors import EdgemillError as EdgemillError
    from ..tasks.errors import InputError as InputError
    from ..tasks.errors import InputIncomplete as InputIncomplete
    from ..tasks.errors import InternalError as InternalError
    from ..tasks.errors import NotConverged as NotConverged
    from ..tasks.errors import OutOfRoom as OutOfRoom
    from ..tasks.errors import OutputLocked as OutputLocked
    from ..tasks.errors import ProgramError as ProgramError
    from ..tasks.errors import StoreLost as StoreLost
    from ..tasks.errors import UsageError as UsageError
    from ..tasks.programs.program import Best as Best
    from ..tasks.programs.program import Column as Column
    from ..tasks.programs.program import Cost as Cost
    from ..tasks.programs.program import EdgeFacts as EdgeFacts
    from ..tasks.programs.program import EdgeProgram as EdgeProgram
    from ..tasks.programs.program import Program as Program
    from ..tasks.programs.program import Top as Top
    from ..tasks.programs.program import Totals as Totals
    from ..tasks.programs.program import VertexId as VertexId
    from ..tasks.programs.program import VertexIds as VertexIds
    from ..tasks.programs.program import Vertices as Vertices
    from .compare.diff import Diff as Diff
    from .compare.diff import diff as diff
    from .estimates.figures import GraphFigures as GraphFigures
    from .plan.choice import make_plan as make_plan
    from .programs.trying import try_program as try_program
    from .python_api.functions import ProgramFunction
    from .python_api.functions import estimate as estimate
    from .python_api.functions import mine as mine
    from .python_api.functions import update as update
    from .queries.attributes import attributes_of as attributes_of
    from .queries.attributes import labels_of as labels_of
    from .queries.group_edges import GroupEdges as GroupEdges
    from .queries.groups import edges_of as edges_of
    from .queries.groups import find_dn_graph as find_dn_graph
    from .queries.groups import find_group as find_group
    from .queries.groups import find_track as find_track
    from .queries.groups import find_vertex as find_vertex
    from .queries.groups import group_at as group_at
    from .queries.groups import groups_of as groups_of
    from .queries.groups import member_ids as member_ids
    from .queries.groups import members_of as members_of
    from .queries.groups import top as top
    from .queries.plots import plot_group as plot_group
    from .queries.plots import plot_lambda as plot_lambda
    from .queries.trusses import ktruss as ktruss
    from .queries.trusses import ktruss_groups as ktruss_groups
    from .results.lookup import Group as Group
    from .results.lookup import Vertex as Vertex
    from .results.result import Result as Result
    from .results.result import open as open
    from .results.table import ResultTable as ResultTable
    from .settings.models import Settings as Settings
    from .settings.sources import load_settings as load_settings

    __version__: str

    def __getattr__(name: str) -> ProgramFunction: ...
else:  # hidden from type checkers, for which any other name is a program
    _LINE = re.compile(r"^    from (\.\S+) import (\w+) as \2$", re.MULTILINE)
    _MODULES = {name: module for module, name in _LINE.findall(Path(__file__).read_text(encoding="utf-8"))}
    __all__ = sorted([*_MODULES, *shipped_names(), "__version__"])

    def __getattr__(name: str) -> object:
        if name == "__version__":
            from importlib.metadata import version

            return version("edgemill")
        if name in shipped_names():
            from .python_api.functions import function_of

            return function_of(name)
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(_MODULES[name], __name__), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
