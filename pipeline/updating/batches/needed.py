"""What a result must keep, so that a batch can change it."""

from __future__ import annotations

from ....tasks.errors import UsageError
from ....tasks.update.programs.arcs import Arcs
from ....tasks.update.state import State
from ....tasks.update.state_index import NoState
from ...frames.input_object import InputObject
from ...results.result import Result
from ...settings.models import Settings
from ..state import known_state
from .batch_input import BatchInput


def refuse_unclear(base: Result) -> None:
    """Raise UsageError if a result does not keep what any result after a batch needs."""
    if not base.manifest.has_lambda:
        raise UsageError(_lacks(base, "its edges, as it was made without λ"))
    if base.manifest.input.bipartite == "refuse":
        raise UsageError(_lacks(base, "the columns in which its ids were, which input.bipartite=refuse compares"))


def state_for_programs(settings: Settings, base: Result) -> State | None:
    """The state of a result with the directions and weights of its edges; None if the programs read neither.

    Raises UsageError if there is no such state.
    """
    programs, own = settings.programs.vertex_programs, settings.input
    if not programs or not (own.directed or own.weight_column is not None):
        return None
    needs = {"directions": own.directed, "weights": own.weight_column is not None}
    try:
        state = known_state(settings, base)
        has = state.arcs or Arcs(None, None)
        if base.manifest.input.bipartite is None and needs == {
            "directions": has.ways is not None,
            "weights": has.weight is not None,
        }:
            return state
        why = "its state does not have them"
    except NoState as error:
        why = str(error)
    what = " and ".join(name for name, is_needed in needs.items() if is_needed)
    raise UsageError(_lacks(base, f"the {what} of its edges, which {', '.join(programs)} may need", f" ({why})"))


def batch_for(settings: Settings, base: Result, insert: InputObject | None, delete: InputObject | None) -> BatchInput:
    """A batch of changes of `base` as the input of a run with these settings. Raises UsageError as above."""
    state = state_for_programs(settings, base)
    if state is None or settings.input.weight_column is None:
        return BatchInput(base, insert, delete, state)
    from ...programs.making import refuses_negative_weights  # imports programs and their kernels

    return BatchInput(base, insert, delete, state, refuses_negative_weights(settings))


def _lacks(base: Result, what: str, why: str = "") -> str:
    return f"{base.place} does not keep {what}: run the whole new input instead, with --previous {base.place}{why}"
