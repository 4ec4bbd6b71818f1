"""Groups of cores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ....kernels.runtime.device import module_of
from ...verify.program_checks import CheckByEdges, CheckGroups, check_core_groups, check_cores
from ..program import Array, Column, Groups, State, Vertices
from .coreness import Coreness


@dataclass(frozen=True)
class CoreGroups(Coreness):
    """Connected k-cores for every k, and the innermost one of each vertex: a hierarchy of groups by cores.

    *Source.* Coreness as in `coreness`; the k-cores of all k as a tree: Batagelj and Zaversnik, "An O(m) algorithm for
    cores decomposition of networks", 2003; Matula and Beck, "Smallest-last ordering and clustering and graph coloring
    algorithms", JACM 30(3), 1983.

    *Semantics.* `core`, int32: the core number. `group`, int64: the id of the innermost group, which is the connected
    k-core of the vertex with k = `core`; null without edges. The table `core_groups` has all groups. Directions,
    repeated edges and loops are ignored.

    *Ties.* None. *Precision.* Exact; if a limit stops the program, groups by upper bounds of core numbers.
    *Convergence.* As `coreness`. *Cost.* That of `coreness`, one exchange of core numbers, and one pass over the edges.
    """

    state: ClassVar = {"core": "int32", "group": "int64"}
    constant = ("group",)
    columns: ClassVar = {
        "core": Column("The largest k for which the vertex is in the k-core.", "core"),
        "group": Column(
            "The id of the innermost connected k-core that contains the vertex.",
            "core_group",
            -1,
        ),
    }
    check = CheckByEdges(check_cores)
    groups = Groups("group", check=CheckGroups(check_core_groups))

    def start(self, v: Vertices) -> tuple[State, Array]:
        """The degree is the first bound; groups are found in the end."""
        state, sends = super().start(v)
        return {**state, "group": v.full(-1, "int64")}, sends

    def levels(self, low: Vertices, high: Vertices) -> Array:
        """The smaller core number of both ends."""
        found: Array = module_of(low.core).minimum(low.core, high.core)
        return found
