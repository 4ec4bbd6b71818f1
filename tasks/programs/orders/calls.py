"""Calls of a program's functions, with a check of everything that they return.

Functions are called for some vertices at a time (a piece), in several threads if there are many vertices. NumPy
computes in one thread, and arrays of all vertices do not fit the caches of a core. A piece fits them, and while NumPy
works on it, other threads run. They wait for each other between NumPy's operations, so few threads are of use. The
result for a vertex depends on that vertex only, so pieces change nothing.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextvars import copy_context
from dataclasses import fields
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn, get_args

import numpy as np

from ....kernels.runtime.threads import threads_now
from ...errors import EdgemillError, ProgramError
from ..program import Array, Best, Combine, EdgeProgram, Forms, Program, Top, Totals, Vertices, View

PIECE = 2**15
"""Vertices of a piece. A call costs as much as some thousand vertices."""
LANE = 2**19
"""Fewest vertices of a thread."""
MOST_LANES = 4
"""Most threads."""


@lru_cache(maxsize=1)
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(MOST_LANES, thread_name_prefix="pieces")


os.register_at_fork(after_in_child=_pool.cache_clear)


def in_pieces(
    v: Vertices,
    compute: Callable[[Vertices, slice], Mapping[str, Array]],
    into: Mapping[str, Array] | None = None,
    rows: Array | None = None,
) -> dict[str, Array]:
    """The arrays [vertices] by name that `compute` gives for some vertices at a time, with their place among all.

    Arrays whose names are in `into` [own] are written there instead, at `rows`, or everywhere. The number of threads is
    that of kernels now. Vertices on a GPU, and few vertices, are one piece. Raises ProgramError if the type of an array
    differs between pieces.
    """
    into = {} if into is None else into
    first = slice(0, min(PIECE, len(v)) if v.on_host else len(v))
    found: dict[str, Array] = {}

    def write(part: Mapping[str, Array], piece: slice) -> None:
        for name, values in part.items():
            if name in into:
                into[name][piece if rows is None else rows[piece]] = values
            elif values.dtype != found[name].dtype:
                kinds = f"{found[name].dtype} for some vertices, and {values.dtype} for others"
                raise ProgramError(f"a function of the program gives {kinds}")
            else:
                found[name][piece] = values

    part = compute(v if first.stop == len(v) else v.part(first), first)
    if first.stop == len(v):
        found = {name: values for name, values in part.items() if name not in into}
        write({name: values for name, values in part.items() if name in into}, first)
        return found
    found = {name: np.empty(len(v), values.dtype) for name, values in part.items() if name not in into}
    write(part, first)
    pieces = [slice(start, min(start + PIECE, len(v))) for start in range(PIECE, len(v), PIECE)]
    lanes = max(1, min(threads_now(), MOST_LANES, len(v) // LANE))
    _share(pieces, lanes, lambda piece: write(compute(v.part(piece), piece), piece))
    return found


def _share(pieces: list[slice], lanes: int, work: Callable[[slice], Any]) -> None:
    """Do the work for each piece, in this thread and `lanes` - 1 others. Raises what the work raises."""

    def run(lane: int) -> None:
        for piece in pieces[lane::lanes]:
            work(piece)

    others = [_pool().submit(copy_context().run, run, lane) for lane in range(1, lanes)]
    try:
        run(0)
    finally:
        wait(others)
    for other in others:
        other.result()


KINDS: Mapping[str, str] = {
    "bool": "bool",
    "int32": "int32",
    "int64": "int64",
    "float32": "float32",
    "float64": "float64",
    "id": "int64",
}
"""Type of a state's array, as in `Program.state` → its dtype."""

EMITTED = ("bool", "int32", "int64", "float64")
"""Types of values that vertices can send."""

BY_CHANGED = ("min", "max", "argmin", "first", "mode", "hindex")
"""Combinations for senders "changed"."""
ALONG = ("sum", "min", "max", "argmin", "top")
"""Combinations of values that weights can change."""
BOUNDED = ("min", "max", "argmin")
"""Combinations of values that a vertex may compare with its own."""
IN_ANY_ORDER = ("min", "max", "hindex")
"""Combinations of monotone programs."""

_WRITES = "writes to {} that it is given: change a copy instead, such as v.number.copy()"


def name_of(program: Program | EdgeProgram) -> str:
    """The name of a program in messages."""
    kind = type(program)
    return kind.__qualname__ if is_shipped(program) else f"{kind.__module__}:{kind.__qualname__}"


def is_shipped(program: Program | EdgeProgram) -> bool:
    """Whether it is a program of edgemill, not one of the user."""
    return type(program).__module__.startswith("edgemill.")


def has_messages(program: Program) -> bool:
    """Whether the program defines `message`."""
    return type(program).message is not Program.message


def needs_weights(program: Any) -> bool:
    """Whether the program, a Program or SourceProgram, cannot run on an input without weights."""
    return bool(program.along or program.weighs) and not program.by_support


def takes_weights(program: Any, there: bool) -> bool:
    """Whether the program gets weights, if they are `there`: `message` has them as an argument."""
    return (
        needs_weights(program)
        or program.by_support
        or (there and isinstance(program, Program) and has_messages(program))
    )


def has_windows(program: Program) -> bool:
    """Whether the program defines `window`."""
    return type(program).window is not Program.window


def check_declaration(program: Program | EdgeProgram) -> None:
    """Raises ProgramError if a program lacks an attribute, or has attributes that cannot be combined."""
    _check_edges(program)
    if isinstance(program, EdgeProgram):
        return
    if program.edges and not _defines(program, "of_edges"):
        _refuse(program, "`edges` is set, and `of_edges` is not defined")
    _check_state(program)
    _check_choices(program)
    _check_weights(program)
    _check_combine(program)
    _check_where_values_go(program)
    _check_bound(program)
    _check_order(program)


def _refuse(program: Program | EdgeProgram, what: str) -> NoReturn:
    raise ProgramError(f"program {name_of(program)}: {what}")


def _check_edges(program: Program | EdgeProgram) -> None:
    """The columns of edges that the program gives."""
    edges = getattr(program, "edges", None)
    if not isinstance(edges, Mapping) or not (edges or isinstance(program, Program)):
        _refuse(
            program, '`edges` is not set: give the columns and their types, such as edges = {"likeness": "float64"}'
        )
    for name, kind in edges.items():
        if kind not in KINDS or kind == "id":
            _refuse(program, f"`edges` has {name!r} of type {kind!r}, not one of {', '.join(list(KINDS)[:-1])}")


def _check_state(program: Program) -> None:
    """The names and types of the arrays of vertices."""
    state = getattr(program, "state", None)
    if not isinstance(state, Mapping) or not state:
        _refuse(program, '`state` is not set: give the arrays and their types, such as state = {"rank": "float64"}')
    for array, kind in state.items():
        if kind not in KINDS:
            _refuse(program, f"`state` has {array!r} of type {kind!r}, not one of {', '.join(KINDS)}")
        if array.startswith("_") or array in ("number", "in_degree", "out_degree", "out_weight", "total", "step"):
            _refuse(program, f"`state` cannot have an array with the name {array!r}")
        if program.edges and array == "degree":
            _refuse(program, "`state` cannot have an array with the name 'degree', which `of_edges` has")
    if unknown := [array for array in program.constant if array not in state]:
        _refuse(program, f"`constant` has {unknown[0]!r}, which is not in `state`")


def _check_choices(program: Program) -> None:
    """The attributes that take one of a few values."""
    for attribute, value, known in (
        ("combine", getattr(program, "combine", None), get_args(Combine)),
        ("view", program.view, get_args(View)),
        ("along", program.along, ("", "add", "multiply")),
        ("senders", program.senders, ("all", "changed")),
    ):
        if value not in known:
            _refuse(program, f"`{attribute}` is {value!r}, not one of {', '.join(repr(one) for one in known)}")


def _check_weights(program: Program) -> None:
    if program.by_support and not (program.along or program.weighs or has_messages(program)):
        _refuse(program, "`by_support` is set, and no weight is used: define `message`, `along` or `weighs`")
    if program.along and program.combine not in ALONG:
        _refuse(program, f"`along` is {program.along!r}, which is not for combine {program.combine!r}")


def _check_combine(program: Program) -> None:
    """What each way to combine values needs."""
    combine = program.combine
    if program.senders == "changed" and combine not in BY_CHANGED:
        _refuse(program, f"`senders` is 'changed', but combine {combine!r} needs the values of all vertices")
    if combine == "first" and program.senders != "changed":
        _refuse(program, "`combine` is 'first', which needs senders 'changed'")
    if combine == "links" and program.view != "either":
        _refuse(program, f"`combine` is 'links', which is for view 'either', not {program.view!r}")
    if combine == "top" and program.k < 1:
        _refuse(program, f"`k` is {program.k}, not at least 1")
    if has_messages(program) and (program.along or combine in ("first", "links")):
        _refuse(program, f"`message` is defined, which is not for combine {combine!r} with along {program.along!r}")


def _check_where_values_go(program: Program) -> None:
    """What `alternates` and `spreads`, which change where a superstep takes values, need."""
    if program.alternates and (
        (program.senders, program.view, program.along) != ("all", "in", "")
        or has_messages(program)
        or program.combine == "top"
    ):
        _refuse(
            program, "`alternates` is for senders 'all' with view 'in', without `along`, `message` and combine 'top'"
        )
    if program.spreads and (program.senders, program.combine, program.view) != ("changed", "min", "both"):
        _refuse(program, "`spreads` is for senders 'changed' with combine 'min' and view 'both'")


def _check_bound(program: Program) -> None:
    if program.bound and (
        program.senders != "changed" or program.combine not in BOUNDED or program.bound not in program.state
    ):
        _refuse(
            program,
            f"`bound` is {program.bound!r}, which must name an array of `state`, for senders 'changed' with combine "
            "'min', 'max' or 'argmin'",
        )
    if program.bound and (program.spreads or has_messages(program)):
        _refuse(program, "`bound` is not for programs that spread, or define `message`")


def _check_order(program: Program) -> None:
    """What `window` and `monotone`, which change the order in which vertices send, need."""
    if has_windows(program) and (not program.monotone or type(program).priority is Program.priority):
        _refuse(program, "`window` is for `monotone` programs that define `priority`")
    if program.monotone and (
        program.senders != "changed"
        or program.combine not in IN_ANY_ORDER
        or program.steps is not None
        or type(program).totals is not Program.totals
    ):
        _refuse(
            program,
            "`monotone` is for senders 'changed' with combine 'min', 'max' or 'hindex', without `totals` and `steps`",
        )


class Calls:
    """Calls the functions of a program. Each method raises ProgramError for an error within the function, and for
    results without one value of the right type for each vertex.
    """

    def __init__(self, program: Program | EdgeProgram) -> None:
        self.program: Any = program
        state = program.state if isinstance(program, Program) else {}
        self.kinds = {array: np.dtype(KINDS[kind]) for array, kind in state.items()}
        self.edge_kinds = {name: np.dtype(KINDS[kind]) for name, kind in program.edges.items()}
        self.forms: Forms = {}
        """See `Program.forms`."""

    def start(self, v: Vertices) -> tuple[dict[str, Array], Array]:
        """See `Program.start`. The arrays are new."""
        if form := self.forms.get("start"):
            new, moved = form(v)
            return dict(new), moved

        def compute(part: Vertices, _: slice) -> dict[str, Array]:
            new, moved = self._changes("start", part, self.program.start)
            return {**{name: values.copy() for name, values in new.items()}, "": moved}

        state = in_pieces(v, compute)
        moved = state.pop("")
        return state, moved

    def emit(self, v: Vertices) -> Array:
        """See `Program.emit`."""
        if v.is_block and (form := self.forms.get("emit")):
            sent: Array = form(v)
            return sent
        return in_pieces(v, lambda part, _: {"": self._emit(part)})[""]

    def _emit(self, v: Vertices) -> Array:
        values = self._array("emit", v, self._call("emit", v, self.program.emit, v), "the emitted values")
        if self.program.combine not in ("first", "links") and values.dtype not in EMITTED:
            self.refuse("emit", v, f"emits {values.dtype}, not {', '.join(EMITTED[:-1])} or {EMITTED[-1]}")
        if self.program.along and values.dtype != np.float64:
            self.refuse("emit", v, f"emits {values.dtype}; with along {self.program.along!r} it must be float64")
        return values

    def totals(self, v: Vertices) -> dict[str, Array]:
        """See `Program.totals`. Arrays may lack zeros."""
        if form := self.forms.get("totals"):
            return dict(form(v))
        return in_pieces(v, lambda part, _: self._totals(part)) if _defines(self.program, "totals") else {}

    def _totals(self, v: Vertices) -> dict[str, Array]:
        found = self._call("totals", v, self.program.totals, v)
        if not isinstance(found, Mapping):
            self.refuse("totals", v, f"returns {_described(found)}, not a dict of arrays")
        return {name: self._array("totals", v, values, repr(name)) for name, values in found.items()}

    def receives(self, v: Vertices) -> Array | None:
        """See `Program.receives`."""
        if v.is_block and (form := self.forms.get("receives")):
            wanted: Array = form(v)
            return wanted
        if not _defines(self.program, "receives"):
            return None

        def compute(part: Vertices, _: slice) -> dict[str, Array]:
            found = self._optional("receives", part, self.program.receives, "b")
            return {} if found is None else {"": found}

        return in_pieces(v, compute).get("")

    def priority(self, v: Vertices) -> Array | None:
        """See `Program.priority`."""
        return self._optional("priority", v, self.program.priority, "biuf")

    def apply(self, v: Vertices, got: Any, totals: Totals, state: Mapping[str, Array], rows: Array | None) -> Array:
        """See `Program.apply`. Writes the new values to the arrays of the state, at `rows`, or everywhere; returns how
        much the vertices changed, or whether.
        """
        if form := self.forms.get("apply"):
            changed: Array = form(v, got, totals, state, rows)
            return changed

        def compute(part: Vertices, piece: slice) -> dict[str, Array]:
            new, moved = self._changes("apply", part, self.program.apply, _cut(got, piece), totals)
            return {**new, "": moved}

        return in_pieces(v, compute, state, rows)[""]

    def of_edges(self, low: Vertices, high: Vertices, support: Array) -> dict[str, Array]:
        """See `EdgeProgram.of_edges`. `low` and `high` have an element for each edge."""
        support = support.view()
        support.flags.writeable = False

        def compute(part: Vertices, piece: slice) -> dict[str, Array]:
            ends = part, high.part(piece), support[piece]
            found = self._call("of_edges", part, self.program.of_edges, *ends)
            if not isinstance(found, Mapping) or set(found) != set(self.program.edges):
                given = f"the arrays {_listed(found)}" if isinstance(found, Mapping) else _described(found)
                self.refuse("of_edges", part, f"returns {given}; `edges` has {_listed(self.program.edges)}")
            return {name: self._of_kind("of_edges", part, name, found[name], "edges") for name in found}

        return in_pieces(low, compute)

    def converged(self, v: Vertices, moved: float) -> bool:
        """See `Program.converged`."""
        return bool(self._call("converged", v, self.program.converged, moved))

    def message(self, source: Vertices, weight: Array | None, target: Vertices) -> Array:
        """See `Program.message`."""
        found = self._call("message", target, self.program.message, source, weight, target)
        values = self._array("message", target, found, "the messages", "edges")
        if values.dtype not in EMITTED:
            self.refuse("message", target, f"returns {values.dtype}, not {', '.join(EMITTED[:-1])} or {EMITTED[-1]}")
        return values

    def refuse(self, function: str, v: Vertices, what: str) -> NoReturn:
        """Raises ProgramError: the program, the function, the superstep, and what is wrong."""
        raise ProgramError(f"program {name_of(self.program)}, `{function}` in superstep {v.step}: {what}")

    def _call(self, function: str, v: Vertices, call: Callable[..., Any], *arguments: Any) -> Any:
        try:
            found = call(*arguments)
        except (EdgemillError, MemoryError):
            raise
        except Exception as error:
            what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            if isinstance(error, ValueError) and "read-only" in str(error):
                what = _WRITES.format("an array")
            elif function == "message" and arguments[1] is None:
                what += "; the edges have no weights, so `weight` is None"
            raise ProgramError(
                f"program {name_of(self.program)}, `{function}` in superstep {v.step}: "
                f"{what}{_place(error, self.program)}"
            ) from error
        for one in arguments:
            if isinstance(one, Vertices) and (changed := one.changed()) is not None:
                self.refuse(function, v, _WRITES.format(f"the array {changed!r}"))
        return found

    def _optional(self, function: str, v: Vertices, call: Callable[..., Any], kinds: str) -> Array | None:
        found = self._call(function, v, call, v)
        if found is None:
            return None
        values = self._array(function, v, found, "its result")
        if values.dtype.kind not in kinds:
            self.refuse(function, v, f"returns {values.dtype}, not {'bool' if kinds == 'b' else 'numbers'}")
        return values

    def _changes(
        self, function: str, v: Vertices, call: Callable[..., Any], *arguments: Any
    ) -> tuple[dict[str, Array], Array]:
        found = self._call(function, v, call, v, *arguments)
        if not isinstance(found, tuple) or len(found) != 2 or not isinstance(found[0], Mapping):
            self.refuse(function, v, f"returns {_described(found)}, not a dict of the state's arrays and an array")
        state, moved = found
        wanted = set(self.program.state).difference(self.program.constant if function == "apply" else ())
        if set(state) != wanted:
            known = "`state`" if len(wanted) == len(self.program.state) else "`state` without `constant`"
            self.refuse(function, v, f"returns the arrays {_listed(state)}; {known} has {_listed(wanted)}")
        moved = self._array(function, v, moved, "what moved")
        if moved.dtype.kind not in ("b" if self.program.senders == "changed" else "biuf"):
            numbers = "bool: whether it changed" if self.program.senders == "changed" else "numbers"
            self.refuse(function, v, f"the second array is {moved.dtype}, not {numbers}")
        return {name: self._of_kind(function, v, name, state[name]) for name in state}, moved

    def _of_kind(self, function: str, v: Vertices, name: str, given: Any, of: str = "vertices") -> Array:
        """The array with the declared type. Integers must fit, and floats must not become integers."""
        values = self._array(function, v, given, repr(name), of)
        declared, kinds = ("`edges`", self.edge_kinds) if of == "edges" else ("`state`", self.kinds)
        kind = kinds[name]
        if not np.can_cast(values.dtype, kind, "same_kind"):
            self.refuse(function, v, f"the array {name!r} is {values.dtype}, and {declared} says {kind}")
        converted = values.astype(kind, copy=False)
        if kind.itemsize < values.dtype.itemsize and kind.kind in "iu" and bool((converted != values).any()):
            self.refuse(function, v, f"the array {name!r} has a value that does not fit {kind}")
        return converted

    def _array(self, function: str, v: Vertices, values: Any, what: str, of: str = "vertices") -> Array:
        """The values, as an array that may be written to."""
        count = len(v)
        if getattr(values, "shape", None) != (count,) or not hasattr(values, "dtype"):
            given = _described(values)
            self.refuse(function, v, f"gives {given} for {what}, not an array with one value for each of {count} {of}")
        found: Array = values
        return found.copy() if isinstance(found, np.ndarray) and not found.flags.writeable else found


def _defines(program: Any, function: str) -> bool:
    return getattr(type(program), function) is not getattr(Program, function)


def _cut(got: Any, piece: slice) -> Any:
    """The combined values of some vertices."""
    if isinstance(got, Best | Top):
        return type(got)(*(getattr(got, one.name)[piece] for one in fields(got)))
    return got[piece]


def _described(value: Any) -> str:
    shape = getattr(value, "shape", None)
    return type(value).__name__ if shape is None else f"an array of shape {tuple(shape)}"


def _listed(names: Any) -> str:
    return ", ".join(sorted(map(str, names))) or "none"


def _place(error: Exception, program: Program) -> str:
    """File and line of the innermost call in the program's module, or else of the innermost call."""
    frames = list(traceback.walk_tb(error.__traceback__))[1:]
    own = [one for one in frames if one[0].f_globals.get("__name__") == type(program).__module__] or frames
    if not own:
        return ""
    (found,) = traceback.StackSummary.extract(iter(own[-1:]))
    line = f": {found.line}" if found.line else ""
    return f" ({Path(found.filename).name}, line {found.lineno}{line})"
