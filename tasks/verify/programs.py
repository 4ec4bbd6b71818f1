"""Which check the columns of each program of a result get: the one that the program's class declares."""

from __future__ import annotations

from typing import Any

from .arcs import Arcs, arcs_of
from .program_checks import CheckByArcs, CheckByEdges
from .reading import Flaw
from .tables import EdgeTable, VertexTable


def check_programs(
    manifest: dict[str, Any], edges: EdgeTable, vertices: VertexTable, arcs: Arcs | None = None
) -> tuple[str, bool]:
    """Check each program whose column can be checked. The detail lists checked and unchecked programs. Raises Flaw.

    `arcs` are the edges of the input with their directions and weights, which the result does not have. Without them,
    programs that depend on these are not checked, nor are programs that did not end by themselves.
    """
    checked: list[str] = []
    left: list[str] = []
    hidden: list[str] = []
    from ..programs.shipped import shipped_class  # loads the kernels of programs, which no check uses

    known = arcs_of(edges) if arcs is None and not manifest["input"].get("directed") else arcs
    for record in manifest["programs"]:
        name = record["name"]
        kind = shipped_class(name)
        check = None if kind is None else kind.check
        try:
            if isinstance(check, CheckByEdges) and record["converged"]:
                check.run(edges, vertices, record)
                checked.append(name)
            elif not isinstance(check, CheckByArcs) or not (record["converged"] or check.repeats_supersteps):
                left.append(name)
            elif known is None or (known.weight is None and check.needs_weights_for(record)):
                hidden.append(name)
            else:
                check.run(known, vertices, record)
                checked.append(name)
        except (LookupError, TypeError, ValueError, OverflowError) as error:  # of what the manifest says of it
            raise Flaw(f"the manifest's record of {name} is damaged: {type(error).__name__} {error}") from error
    others = f"; not checked: {', '.join(left)}" if left else ""
    if hidden:
        others += f"; not checked without the input, which has directions and weights: {', '.join(hidden)}"
    return f"as the edges say: {', '.join(checked) or 'none'}{others}", True
