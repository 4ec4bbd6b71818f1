"""Programs of the user: classes that the setting `programs.own` or an installed entry point names.

A name in `programs.own` is `module:Class` or `name=module:Class`. Its module is imported as Python does it; the current
folder comes last. Nothing else from settings or files is imported.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from ...tasks.errors import ProgramError, UsageError
from ..messages.escaping import shown
from ..messages.suggesting import did_you_mean
from .catalogue import CATALOGUE, LAMBDA, Column, Entry

if TYPE_CHECKING:
    from ...tasks.programs import EdgeProgram, Program

GROUP = "edgemill.programs"
"""Group of entry points of installed programs."""

_PLACE = re.compile(r"(?:([a-z][a-z0-9_]*)=)?([A-Za-z_][\w.]*):([A-Za-z_]\w*)")
_KINDS = {"float64": "double", "float32": "float"}
"""Type of a state's array → alias of the Arrow type, if it has another name."""


@dataclass(frozen=True)
class OwnProgram:
    """A program of the user."""

    name: str
    """Name in `programs.run`, and of the section with its parameters."""
    place: str
    """`module:Class`"""
    kind: type[Program] | type[EdgeProgram]
    sha256: str | None
    """Of the source of its module; None if there is none."""

    @property
    def parameters(self) -> dict[str, tuple[Any, Any]]:
        """Name → type and default of each parameter, `...` without a default: the fields of the dataclass."""
        return _fields(self.kind)

    @property
    def vertices(self) -> tuple[str, ...]:
        """The parameters that are ids of vertices."""
        return vertex_parameters(self.kind)

    def make(self, parameters: Mapping[str, Any]) -> Program | EdgeProgram:
        """The program with its parameters; vertices have numbers. Raises UsageError for parameters that it refuses, and
        ProgramError for attributes that cannot be combined.
        """
        from ...tasks.programs.orders.calls import check_declaration

        try:
            program = self.kind(**parameters)
        except (ValueError, TypeError) as error:
            raise UsageError(f"{self.name}: {error}") from error
        check_declaration(program)
        return program

    def entry(self) -> Entry:
        """Its title and columns. `state` and `edges` are the same for all parameters."""
        lines = (inspect.getdoc(self.kind) or self.place).splitlines()
        state, edges = (self._columns(getattr(self.kind, which, {})) for which in ("state", "edges"))
        return Entry(lines[0], state, self.name if self.parameters else None, self.vertices, edges=edges)

    def _columns(self, arrays: Mapping[str, str]) -> tuple[Column, ...]:
        return tuple(
            Column(
                self.name if len(arrays) == 1 else f"{self.name}_{array}",
                array,
                _KINDS.get(kind, kind),
                f"`{array}` of {self.place}.",
                -1 if kind == "id" else None,
            )
            for array, kind in arrays.items()
        )


def vertex_parameters(kind: type[Any]) -> tuple[str, ...]:
    """The parameters of a class that are ids of vertices."""
    return tuple(name for name, (hint, _) in _fields(kind).items() if "vertex" in getattr(hint, "__metadata__", ()))


def _fields(kind: type[Any]) -> dict[str, tuple[Any, Any]]:
    """Name → type and default of the fields of a dataclass; none of another class."""
    known: Any = kind
    fields = dataclasses.fields(known) if dataclasses.is_dataclass(known) else ()
    types = get_type_hints(kind, include_extras=True) if fields else {}
    return {field.name: (types[field.name], _default(field)) for field in fields if field.init}


def names_of(own: Sequence[str]) -> tuple[str, ...]:
    """The names of the programs in `programs.own`, without importing them. Raises UsageError as `find_own` does."""
    return tuple(_parsed(place)[0] for place in own)


def installed_names() -> tuple[str, ...]:
    """The names of installed programs: the entry points of GROUP."""
    return tuple(_entry_points())


def find_own(own: Sequence[str], installed: Sequence[str] = ()) -> dict[str, OwnProgram]:
    """Name → program, for those in `programs.own` and those `installed` with these names.

    Raises UsageError for a name, module or class that is wrong, and ProgramError for a module that fails to be imported
    and a class that is no complete program.
    """
    named = [_parsed(place) for place in own]
    if installed:
        points = _entry_points()
        named += [(name, *_parsed(points[name])[1:]) for name in installed]
    found: dict[str, OwnProgram] = {}
    for name, module, kind in named:
        if name in found or name in CATALOGUE or name == LAMBDA:
            other = f"other={module}:{kind}"
            raise UsageError(f"programs.own: there are two programs {name!r}: name one of them, as in {other}")
        found[name] = _load(name, module, kind)
    return found


def check_importable(programs: Sequence[tuple[str, str, str | None]]) -> str | None:
    """Task: why this process cannot run programs, given by name, place, and SHA-256 of the source; None if it can."""
    for name, place, digest in programs:
        _, module, kind = _parsed(place)
        try:
            here = _load(name, module, kind)
        except (UsageError, ProgramError) as error:
            return str(error)
        if here.sha256 != digest:
            return f"the module {module} of the program {name} is another version there: install the same one"
    return None


def _parsed(place: str) -> tuple[str, str, str]:
    """Name, module and class."""
    match = _PLACE.fullmatch(place)
    if match is None:
        raise UsageError(
            f"programs.own: must be module:Class or name=module:Class, such as my_programs:Reach, got {shown(place)}"
        )
    name, module, kind = match.groups()
    return name or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", kind).lower(), module, kind


def _entry_points() -> Mapping[str, str]:
    from importlib.metadata import entry_points

    return {point.name: point.value for point in entry_points(group=GROUP)}


def _load(name: str, module_name: str, kind_name: str) -> OwnProgram:
    place = f"{module_name}:{kind_name}"
    if (here := str(Path.cwd())) not in sys.path and "" not in sys.path:
        sys.path.append(here)  # also for worker processes that are started here
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise ProgramError(f"program {place}: its module needs {error.name}, which is not installed") from error
        raise UsageError(
            f"programs.own: there is no module {error.name} for the program {place}: it must be in the current folder, "
            "on PYTHONPATH, or installed"
        ) from error
    except (Exception, SystemExit) as error:
        raise ProgramError(f"program {place}: importing its module failed: {_told(error)}") from error
    kind = getattr(module, kind_name, None)
    if kind is None:
        known = [(one, one) for one in vars(module)]
        where = getattr(module, "__file__", None) or "built in"
        raise UsageError(
            f"programs.own: the module {module_name} ({where}) has no class {kind_name}{did_you_mean(kind_name, known)}"
        )
    _check_class(place, kind)
    return OwnProgram(name, place, kind, _source_digest(module))


def _check_class(place: str, kind: Any) -> None:
    from ...tasks.programs import EdgeProgram, Program

    if not isinstance(kind, type) or not issubclass(kind, Program | EdgeProgram):
        raise UsageError(f"programs.own: {place} is not a subclass of edgemill.Program or edgemill.EdgeProgram")
    missing = sorted(getattr(kind, "__abstractmethods__", ()))
    if missing:
        raise ProgramError(f"program {place}: it does not define {', '.join(missing)}")
    if issubclass(kind, EdgeProgram):
        if not isinstance(getattr(kind, "edges", None), Mapping):
            example = 'edges = {"likeness": "float64"}'
            raise ProgramError(f"program {place}: `edges` is not set: give the columns and types, such as {example}")
    elif not isinstance(getattr(kind, "state", None), Mapping):
        example = 'state = {"rank": "float64"}'
        raise ProgramError(f"program {place}: `state` is not set: give the arrays and their types, such as {example}")


def _source_digest(module: Any) -> str | None:
    path = getattr(module, "__file__", None)
    if path is None or not path.endswith(".py"):
        return None
    return sha256(Path(path).read_bytes()).hexdigest()


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default is not dataclasses.MISSING:
        return field.default
    factory: Callable[[], Any] | Any = field.default_factory
    return ... if factory is dataclasses.MISSING else factory()


def _told(error: BaseException) -> str:
    """The error with the file and line of the innermost call."""
    what = f"{type(error).__name__}: {error}"
    if isinstance(error, SyntaxError) or error.__traceback__ is None:
        return what
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{what} ({Path(frame.filename).name}, line {frame.lineno}: {frame.line})"
