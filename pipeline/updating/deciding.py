"""Whether λ is found from what changed, or from nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ...tasks.update.merging import Change
from ..results.result import Result

BUDGET = 0.2
"""Share of the triangles of the earlier result that an update may look at before it gives up."""
MOST_CHANGED = 0.2
"""Share of the edges that may be changed for an update to be tried."""

Way = Literal["changes", "whole"]


@dataclass(frozen=True)
class Decision:
    """How λ is found, and why."""

    way: Way
    reason: str
    most_triangles: int | None = None
    """Triangles that an update may look at; None for no limit."""


def decide(change: Change, base: Result, support: NDArray[np.int32], always: bool) -> Decision:
    """Whether to find λ from the changes. `support` [edges of the earlier result] are their triangles.

    An update looks at least at the triangles of all changed edges. Those of removed edges are known. Added edges are
    expected to have as many each as the removed ones, or as the mean edge if none is removed.
    """
    if always:
        return Decision("changes", "nightly.incremental is always")
    edges, triangles = max(len(support), 1), base.manifest.counts.triangles or 0
    share = change.size / edges
    if share > MOST_CHANGED:
        return Decision("whole", f"{share:.0%} of the edges changed, over {MOST_CHANGED:.0%}")
    most = int(BUDGET * triangles)
    lost = int(support[change.removed].sum(dtype=np.int64))
    mean = lost / change.lost if change.lost else 3 * triangles / edges
    least = round(lost + mean * change.added.edges)
    if least > most:
        return Decision("whole", f"the changed edges are in about {least:,} triangles, over the budget of {most:,}")
    return Decision(
        "changes", f"{share:.2%} of the edges changed, in about {least:,} triangles; the budget is {most:,}", most
    )
