"""What a run would do with an earlier result: which way it goes, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ...tasks.inputs.sources import Source
from ..events import Events
from ..nightly.night import Night
from ..opening.existing_result import fingerprint
from ..opening.input import open_vertices
from ..opening.reading import edge_column
from ..settings.models import Settings
from ..stages.task_engine import ThreadedEngine
from .beginning import start_from
from .deciding import decide, with_samples
from .eligibility import NotUsable, earlier_result, obstacle
from .unchanged import REASON, digests_of, is_full_run_due, is_same


@dataclass(frozen=True)
class UpdatePlan:
    """How a run would start from an earlier result."""

    base: str | None
    """The earlier result; None if there is none that can be used."""
    way: Literal["unchanged", "changes", "whole", "run"]
    """All files are taken over; λ from the changes; λ from nothing in this process; a run that computes everything."""
    reason: str
    inserted: int | None = None
    """Edges that the earlier result lacks; None if they were not counted."""
    deleted: int | None = None
    """Edges of the earlier result that are gone."""
    expected_work: int | None = None
    """Work of finding λ from the changes, in triangles, by samples; None if none was replayed."""

    def describe(self) -> str:
        """One line of text."""
        ways = {
            "unchanged": "all files are taken over",
            "changes": "λ from the changes",
            "whole": "λ from nothing, in this process",
            "run": "everything is computed",
        }
        return f"{ways[self.way]}: {self.reason}" + ("" if self.base is None else f" (since {self.base})")


def plan_update(settings: Settings, source: Source) -> UpdatePlan | None:
    """Plan how a run of `source` starts from an earlier result; None if the settings do not ask for it.

    Reads the input and the earlier result, and compares them, unless their files tell enough. Replays samples of the
    changed edges. Raises InputError and UsageError as the run does.
    """
    if not settings.nightly.may_start_from_earlier:
        return None
    try:
        base = earlier_result(settings, Night.of(settings))
    except NotUsable as error:
        return UpdatePlan(None, "run", str(error))
    if base is None:
        return UpdatePlan(None, "run", "there is no earlier result")
    place = str(base.place)
    known = fingerprint(source, open_vertices(settings, source))
    if not is_full_run_due(settings, base) and is_same(settings, base, source, known, digests_of(source)):
        return UpdatePlan(place, "unchanged", REASON, 0, 0)
    why = obstacle(settings, base, source, False)
    if why is not None:
        return UpdatePlan(place, "run", why)
    engine = ThreadedEngine("plan", settings.cluster.threads_per_worker)
    start = start_from(settings, Events(), engine, base, source, None)
    always = settings.nightly.incremental == "always"
    change = start.change
    decision = start.whole or decide(change, base, edge_column(base, "support"), always)
    decision = with_samples(decision, change, start.order, engine.threads)
    return UpdatePlan(place, decision.way, decision.reason, change.added.edges, change.lost, decision.expected)
