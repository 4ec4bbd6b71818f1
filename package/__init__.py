"""Dense groups in very large graphs: λ of every edge, exactly.

>>> import edgemill
>>> result = edgemill.mine("edges.parquet", "out")
>>> result.edges.to_table()
>>> edgemill.pagerank("edges.parquet", damping=0.9).to_pandas()

The public names are those of `edgemill.pipeline`, and `run`. Each is loaded at its first use, so that `import edgemill`
is fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import pipeline

if TYPE_CHECKING:  # for type checkers, editors and the documentation; made by docs/making/keywords.py
    from .pipeline import Best as Best
    from .pipeline import ClusterLost as ClusterLost
    from .pipeline import Column as Column
    from .pipeline import Cost as Cost
    from .pipeline import Diff as Diff
    from .pipeline import EdgeFacts as EdgeFacts
    from .pipeline import EdgemillError as EdgemillError
    from .pipeline import EdgeProgram as EdgeProgram
    from .pipeline import GraphFigures as GraphFigures
    from .pipeline import Group as Group
    from .pipeline import GroupEdges as GroupEdges
    from .pipeline import InputError as InputError
    from .pipeline import InputIncomplete as InputIncomplete
    from .pipeline import InternalError as InternalError
    from .pipeline import NotConverged as NotConverged
    from .pipeline import OutOfRoom as OutOfRoom
    from .pipeline import OutputLocked as OutputLocked
    from .pipeline import Program as Program
    from .pipeline import ProgramError as ProgramError
    from .pipeline import Result as Result
    from .pipeline import ResultTable as ResultTable
    from .pipeline import Settings as Settings
    from .pipeline import StoreLost as StoreLost
    from .pipeline import Top as Top
    from .pipeline import Totals as Totals
    from .pipeline import UsageError as UsageError
    from .pipeline import Vertex as Vertex
    from .pipeline import VertexId as VertexId
    from .pipeline import VertexIds as VertexIds
    from .pipeline import Vertices as Vertices
    from .pipeline import __version__ as __version__
    from .pipeline import attributes_of as attributes_of
    from .pipeline import diff as diff
    from .pipeline import edges_of as edges_of
    from .pipeline import estimate as estimate
    from .pipeline import find_dn_graph as find_dn_graph
    from .pipeline import find_group as find_group
    from .pipeline import find_track as find_track
    from .pipeline import find_vertex as find_vertex
    from .pipeline import group_at as group_at
    from .pipeline import groups_of as groups_of
    from .pipeline import ktruss as ktruss
    from .pipeline import ktruss_groups as ktruss_groups
    from .pipeline import labels_of as labels_of
    from .pipeline import load_settings as load_settings
    from .pipeline import make_plan as make_plan
    from .pipeline import member_ids as member_ids
    from .pipeline import members_of as members_of
    from .pipeline import mine as mine
    from .pipeline import open as open
    from .pipeline import plot_group as plot_group
    from .pipeline import plot_lambda as plot_lambda
    from .pipeline import top as top
    from .pipeline import try_program as try_program
    from .pipeline import update as update
    from .pipeline.python_api.functions import ProgramFunction
    from .pipeline.python_api.functions import run as run

    def __getattr__(name: str) -> ProgramFunction: ...
else:  # hidden from type checkers, for which any other name is a program
    __all__ = sorted([*pipeline.__all__, "run"])

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        if name == "run":  # in `edgemill.pipeline` it is the name of a room
            from .pipeline.python_api.functions import run as value
        else:
            value = getattr(pipeline, name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return __all__
