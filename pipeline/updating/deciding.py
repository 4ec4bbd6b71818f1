"""Whether λ is found from what changed, or from nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ...kernels.runtime.threads import kernel_threads
from ...tasks.update.merging import Change
from ...tasks.update.order import Order
from ..plan.seconds import MEASURED_THREADS, START_SECONDS, predicted_seconds
from ..results.result import Result

BUDGET = 0.25
"""Share of the predicted time of a run from nothing, without its start, that an update may take before it gives up."""
WORK_SECONDS = 2e-8
"""Time of an update for a work of 1, with MEASURED_THREADS. It is 12 to 25 ns on cnr-2000 and uk-2007-05_100000, 40 ns
on actor-collaboration, whose peeling takes longer for each triangle too.
"""
CACHED_EDGES = 3e6
"""With more edges, work takes longer, as the square root of their number: 55 ns on R-MAT 20, 15.7 M edges."""
MOST_CHANGED = 0.2
"""Share of the edges that may be changed for an update to be tried."""

SAMPLED_FROM = 0.05
"""If more than this share of the edges has changed, a run first replays samples of the changed edges. For fewer changes
the samples cost more than an update that is given up.
"""

MOST_LISTED = 2
"""Most triangles of changed edges, for each edge, that are listed to find supports: 24 bytes an edge."""
FEW_OF_ALL = 0.25
"""Most triangles of changed edges, as a share of all triangles. If there are more, it is faster to count all anew."""

Way = Literal["changes", "whole"]


@dataclass(frozen=True)
class Decision:
    """How λ is found, and why."""

    way: Way
    reason: str
    most_work: int | None = None
    """Work that an update may take, as in `Updated`; None for no limit."""
    expected: int | None = None
    """Work that the update is expected to take, by samples; None without samples."""


def decide(change: Change, base: Result, support: NDArray[np.int32], always: bool) -> Decision:
    """Whether to find λ from the changes. `support` [edges of the earlier result] are their triangles.

    Both ways are assumed to gain equally from more threads. An update looks at least at the triangles of all changed
    edges.
    """
    if always:
        return Decision("changes", "nightly.incremental is always")
    edges, triangles = max(len(support), 1), base.manifest.counts.triangles or 0
    if change.size > MOST_CHANGED * edges:
        return Decision("whole", f"{_changed(change)}, more than {MOST_CHANGED:.0%} of these")
    whole = predicted_seconds(edges, triangles, MEASURED_THREADS) - START_SECONDS
    most = round(BUDGET * whole / (WORK_SECONDS * max(1.0, edges / CACHED_EDGES) ** 0.5))
    least = triangles_of_changes(change, support, triangles)
    if least > most:
        return Decision("whole", f"the changed edges are in about {least:,} triangles, over the budget of {most:,}")
    return Decision("changes", f"{_changed(change)}, in about {least:,} triangles; the budget is {most:,}", most)


def triangles_of_changes(change: Change, support: NDArray[np.int32], triangles: int) -> int:
    """The expected number of triangles of all changed edges; a triangle counts once for each of its changed edges.

    Those of removed edges are known. An added edge is expected to have as many as the mean removed edge or, if no edge
    is removed, as the mean edge of the earlier result, which has `triangles` triangles.
    """
    lost = int(support[change.removed].sum(dtype=np.int64))
    mean = lost / change.lost if change.lost else 3 * triangles / max(len(support), 1)
    return round(lost + mean * change.added.edges)


def supports_follow(change: Change, base: Result, support: NDArray[np.int32]) -> bool:
    """Whether supports are found from the earlier ones if λ is found from nothing: changed edges are in few enough
    triangles.
    """
    triangles = base.manifest.counts.triangles or 0
    return triangles_of_changes(change, support, triangles) <= min(MOST_LISTED * len(support), FEW_OF_ALL * triangles)


def is_large(change: Change) -> bool:
    """Whether so much has changed that a run replays samples before it decides."""
    from ...tasks.update.updating import FEWEST  # loads the kernels

    return change.size > max(FEWEST, SAMPLED_FROM * change.before.edges)


def with_samples(decision: Decision, change: Change, order: Order | None, threads: int) -> Decision:
    """The decision after samples of the changed edges were replayed alone; the same if λ is not found from changes."""
    most = decision.most_work
    if most is None or order is None or not change.size:
        return decision
    from ...tasks.update.updating import estimate_work
    from ...tasks.update.warm import warm_updates

    warm_updates(threads)
    with kernel_threads(threads):
        found = estimate_work(change.before, order, change.removed, change.added, most)
    told = f"{found.sampled:,} of {change.size:,} changed edges, replayed alone,"
    if found.is_over:
        return Decision("whole", f"{told} tell of a work of over {found.work:,} triangles; the budget is {most:,}")
    about = f"{told} tell of a work of about {found.work:,} triangles"
    if found.work > most:
        return Decision("whole", f"{about}, over the budget of {most:,}", expected=found.work)
    reason = f"{_changed(change)}, and {about}; the budget is {most:,}"
    return replace(decision, reason=reason, expected=found.work)


def _changed(change: Change) -> str:
    """How much changed. A part in per cent would be 0.00 for few edges, and over 100 where a small graph has grown."""
    return f"{change.size:,} edges came or went, and the earlier result has {change.before.edges:,}"
