"""The programs that a run can name. A program is a class, which declares everything that is known of it.

Programs of edgemill are the modules in `tasks/programs/shipped`, found by their names. Those of the user are classes
that the setting `programs.own` names, as `module:Class` or `name=module:Class`, or installed entry points. All are read
in the same way, when a run needs them: this module loads no program, and no kernels, itself.

The module of a class of the user is imported as Python does it; the current folder comes last. Nothing else from
settings or files is imported.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import re
import sys
import textwrap
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, TypeAlias, get_type_hints

from ...tasks.errors import ProgramError, UsageError
from ..messages.wording import did_you_mean, shown

if TYPE_CHECKING:
    import pyarrow as pa

    from ...tasks.programs import EdgeProgram, Program, SourceProgram
    from ...tasks.programs.program import Groups

    AnyKind: TypeAlias = type[Program] | type[SourceProgram] | type[EdgeProgram]

LAMBDA = "lambda"
"""The name of λ, which is no program of this kind."""

GROUP = "edgemill.programs"
"""Group of entry points of installed programs."""

_SHIPPED = Path(__file__).resolve().parents[2] / "tasks" / "programs" / "shipped"
_PLACE = re.compile(r"(?:([a-z][a-z0-9_]*)=)?([A-Za-z_][\w.]*):([A-Za-z_]\w*)")
_KINDS = {"float64": "double", "float32": "float"}
"""Type of a state's array → alias of the Arrow type, if it has another name."""


@dataclass(frozen=True)
class ProgramColumn:
    """A column that a program adds to the table of vertices, or to that of edges."""

    name: str
    state: str
    """Name of the array in the program's `state`, or in its `edges`."""
    kind: str
    """Alias of the Arrow type; `id` for ids of vertices."""
    meaning: str
    missing: float | None = None
    """The value in the array that is null in the table; None if none is."""

    def type(self, id_type: pa.DataType) -> pa.DataType:
        """The Arrow type, in a graph with ids of `id_type`."""
        import pyarrow as pa

        return id_type if self.kind == "id" else pa.type_for_alias(self.kind)


@dataclass(frozen=True)
class Parameter:
    """A parameter of a program: a setting in the section with its name, and a field of its class."""

    type: Any
    """With what `Annotated` says of it."""
    default: Any
    """`...` without a default."""
    meaning: str
    """The docstring of the field; empty without one."""

    @property
    def is_vertex(self) -> bool:
        """Whether it is the id of a vertex; the program gets its dense number."""
        return "vertex" in getattr(self.type, "__metadata__", ())

    @property
    def is_vertices(self) -> bool:
        """Whether it is ids of any number of vertices."""
        return "vertices" in getattr(self.type, "__metadata__", ())


@dataclass(frozen=True)
class DeclaredProgram:
    """A program that a run can name, as its class declares it."""

    name: str
    """Name in `programs.run`, and of the section with its parameters."""
    place: str
    """`module:Class`"""
    kind: AnyKind
    has_own_name: bool = True
    """Whether this is the name by which the class is declared, so that its columns have the declared names."""
    is_own: bool = False
    """Whether the user named or installed it."""
    sha256: str | None = None
    """Of the source of its module, if it is one of the user; None if there is none."""

    @property
    def title(self) -> str:
        """The first line of its docstring."""
        return (inspect.getdoc(self.kind) or self.place).splitlines()[0]

    @property
    def parameters(self) -> dict[str, Parameter]:
        """By name: the fields of the dataclass."""
        return parameters_of_kind(self.kind)

    @property
    def vertices(self) -> tuple[str, ...]:
        """The parameters that are ids of vertices."""
        return tuple(name for name, own in self.parameters.items() if own.is_vertex or own.is_vertices)

    @property
    def columns(self) -> tuple[ProgramColumn, ...]:
        """The columns of the table of vertices. They are the same for all parameters."""
        state = getattr(self.kind, "state", {})
        named = [array for array in self.kind.columns if array in state]
        return self._columns({array: state[array] for array in named} if named else state)

    @property
    def edge_columns(self) -> tuple[ProgramColumn, ...]:
        """The columns of the table of edges."""
        return self._columns(self.kind.edges)

    @property
    def needs_lambda(self) -> bool:
        """Whether it runs in runs with λ only."""
        return bool(self.kind.edges) or self.kind.by_support

    @property
    def groups(self) -> Groups | None:
        """The groups that it finds; None if it finds none."""
        return getattr(self.kind, "groups", None)

    @property
    def group_column(self) -> str | None:
        """The column of the table of vertices with the ids of innermost groups; None if it finds no groups."""
        groups = self.groups
        return None if groups is None else next(own.name for own in self.columns if own.state == groups.column)

    @property
    def finds_similar(self) -> bool:
        """Whether it fills the table of similar pairs."""
        return bool(getattr(self.kind, "finds_similar", False))

    @property
    def runs_in_updates(self) -> bool:
        """Whether an update runs it in its own process, on one block, for columns and groups of vertices alone."""
        from ...tasks.programs import Program

        return issubclass(self.kind, Program) and not self.needs_lambda and not self.finds_similar

    def make(self, parameters: Mapping[str, Any]) -> Program | SourceProgram | EdgeProgram:
        """The program with its parameters. Vertices are dense numbers; those that are left out are 0, or none. Raises
        UsageError for parameters that it refuses, and ProgramError for attributes that cannot be combined.
        """
        from ...tasks.programs import SourceProgram
        from ...tasks.programs.orders.calls import check_declaration

        known = self.parameters
        numbers = {name: () if known[name].is_vertices else 0 for name in self.vertices}
        try:
            program = self.kind(**(numbers | dict(parameters)))
        except (ValueError, TypeError) as error:
            raise UsageError(f"{self.name}: {error}") from error
        if not isinstance(program, SourceProgram):
            check_declaration(program)
        return program

    def _columns(self, arrays: Mapping[str, str]) -> tuple[ProgramColumn, ...]:
        found = []
        for array, kind in arrays.items():
            own = self.kind.columns.get(array)
            name = self.name if len(arrays) == 1 else f"{self.name}_{array}"
            missing: float | None = -1 if kind == "id" else None
            meaning = f"`{array}` of {self.place}."
            if own is not None:
                name = own.name if own.name and self.has_own_name else name
                missing, meaning = missing if own.missing is None else own.missing, own.meaning
            found.append(ProgramColumn(name, array, _KINDS.get(kind, kind), meaning, missing))
        return tuple(found)


@cache
def parameters_of_kind(kind: type[Any]) -> dict[str, Parameter]:
    """Name → parameter, for the fields of a dataclass; none of another class."""
    known: Any = kind
    fields = [field for field in dataclasses.fields(known) if field.init] if dataclasses.is_dataclass(known) else []
    types = get_type_hints(kind, include_extras=True) if fields else {}
    meanings = field_docstrings(kind, everywhere=True) if fields else {}
    return {
        field.name: Parameter(types[field.name], _default(field), " ".join(meanings.get(field.name, "").split()))
        for field in fields
    }


@cache
def shipped_names() -> tuple[str, ...]:
    """The names of the programs of edgemill."""
    return tuple(sorted(module.name for module in iter_modules([str(_SHIPPED)])))


@cache
def shipped(name: str) -> DeclaredProgram:
    """A program of edgemill by its name."""
    from ...tasks.programs.shipped import shipped_class

    kind = shipped_class(name)
    assert kind is not None
    return DeclaredProgram(name, f"{kind.__module__}:{kind.__qualname__}", kind)


def every_shipped() -> dict[str, DeclaredProgram]:
    """Name → program of edgemill, of all of them."""
    return {name: shipped(name) for name in shipped_names()}


def names_of(own: Sequence[str]) -> tuple[str, ...]:
    """The names of the programs in `programs.own`, without importing them. Raises UsageError as `find_own` does."""
    return tuple(_parsed(place)[0] for place in own)


def installed_names() -> tuple[str, ...]:
    """The names of installed programs: the entry points of GROUP."""
    return tuple(_entry_points())


def find_programs(own: Sequence[str], names: Iterable[str] = ()) -> dict[str, DeclaredProgram]:
    """Name → program, for those in `programs.own`, and those of edgemill or installed ones with these `names`. Names
    that no program has are left out.

    Raises UsageError for a name, module or class that is wrong, and ProgramError for a module that fails to be imported
    and a class that is no complete program.
    """
    found: dict[str, DeclaredProgram] = {}
    for place in own:
        name, module, kind = _parsed(place)
        if name in found or name in shipped_names() or name == LAMBDA:
            other = f"other={module}:{kind}"
            raise UsageError(f"programs.own: there are two programs {name!r}: name one of them, as in {other}")
        found[name] = _load(name, module, kind)
    others = [name for name in names if name not in found and name != LAMBDA]
    unknown = [name for name in others if name not in shipped_names()]
    points = _entry_points() if unknown else {}  # reads files of all packages
    for name in others:
        if name in shipped_names():
            found[name] = shipped(name)
        elif name in points:
            found[name] = _load(name, *_parsed(points[name])[1:])
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
    return name or _name_of(kind), module, kind


def _name_of(kind: str) -> str:
    """The name of a program whose class has this name, if it is not given another one."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", kind).lower()


def _entry_points() -> Mapping[str, str]:
    from importlib.metadata import entry_points

    return {point.name: point.value for point in entry_points(group=GROUP)}


def _load(name: str, module_name: str, kind_name: str) -> DeclaredProgram:
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
    return DeclaredProgram(name, place, kind, name == _name_of(kind_name), True, _source_digest(module))


def _check_class(place: str, kind: Any) -> None:
    from ...tasks.programs import EdgeProgram

    if not _is_program(kind):
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


def _is_program(kind: Any) -> bool:
    from ...tasks.programs import EdgeProgram, Program, SourceProgram

    return isinstance(kind, type) and issubclass(kind, Program | SourceProgram | EdgeProgram)


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


def field_docstrings(model: type[Any], everywhere: bool = False) -> dict[str, str]:
    """Field → docstring, for fields that have one, with the fields of base classes of this package, or `everywhere`, as
    far as there is source.
    """
    package = __name__.partition(".")[0]
    docstrings: dict[str, str] = {}
    for kind in reversed(model.__mro__[:-1]):
        if everywhere or kind.__module__.partition(".")[0] == package:
            docstrings |= _own_docstrings(kind)
    return docstrings


def _own_docstrings(model: type[Any]) -> dict[str, str]:
    try:
        (definition,) = ast.parse(textwrap.dedent(inspect.getsource(model))).body
    except (OSError, TypeError, SyntaxError):  # a class that was made at a prompt, or within other code
        return {}
    docstrings: dict[str, str] = {}
    if not isinstance(definition, ast.ClassDef):
        return docstrings
    for field, text in pairwise(definition.body):
        match field, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str() as docstring)):
                docstrings[name] = inspect.cleandoc(docstring)
    return docstrings
