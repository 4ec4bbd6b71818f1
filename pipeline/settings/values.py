"""Values of settings that a person wrote, in a settings file or after `--set`, read by the type of their setting.

Text is taken as it stands, numbers and `true` and `false` are read where the setting wants them. So `no`, `#` and
`0123` stay what they are in a setting of text, and `1e-6` is a number in one of numbers. YAML is the syntax of a
settings file, and of lists and mappings after `--set`; the types that YAML itself would give to values are not used.
Ids of vertices are kept as text, since the type of ids is known only when the input is open.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from operator import index
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, PlainValidator

from ...tasks.errors import UsageError

if TYPE_CHECKING:
    import yaml


_DEEPEST = 50
"""Most lists and mappings within one another."""
_MOST_REPEATED = 10_000
"""Most values that the aliases of a document repeat."""
_MOST_DIGITS = 40
"""Most digits of a whole number, zeros of its exponent included; 64 bits have 20."""
_BOOLEANS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_NUMBER = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?")
_OTHER_BASE = re.compile(r"[-+]?0(x[0-9a-fA-F]{1,16}|o[0-7]{1,22})")


class Written(str):
    """A value as it was written, without quotes, whose type is not known yet."""

    __slots__ = ()


class _Assigned(Written):
    """The value of a `--set`."""

    __slots__ = ()


def assigned(text: str) -> Written:
    """The value of a `--set`, for `typed`."""
    return _Assigned(text)


@dataclass(frozen=True)
class _Kind:
    """What a setting takes."""

    types: tuple[Any, ...]
    """Alternatives, such as `int` and `NoneType`; classes, `Any`, and generic types of lists and mappings."""
    choices: tuple[Any, ...] = ()
    """Values that it can have."""
    is_id: bool = False
    """Ids of vertices, which are text in every form that they can have."""
    fields: Mapping[str, _Kind] | None = None
    """Of a section: its settings."""

    @classmethod
    def of(cls, annotation: Any, metadata: Sequence[Any] = ()) -> _Kind:
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            return cls(
                (dict, NoneType),
                fields={name: cls.of(one.annotation, one.metadata) for name, one in annotation.model_fields.items()},
            )
        types: list[Any] = []
        choices: list[Any] = []
        waiting = [annotation]
        while waiting:
            one = waiting.pop()
            match get_origin(one):
                case origin if origin is Annotated:
                    waiting.append(get_args(one)[0])
                case origin if origin is Union or origin is UnionType:
                    waiting += get_args(one)
                case origin if origin is Literal:
                    choices += get_args(one)
                case _:
                    types.append(one)
        is_id = any(isinstance(one, PlainValidator) and one.func in (id_or_none, id_texts) for one in metadata)
        return cls(tuple(types), tuple(choices), is_id)

    @property
    def takes_any(self) -> bool:
        """Whether nothing is known of the type."""
        return Any in self.types or object in self.types

    @property
    def is_list(self) -> bool:
        return any((get_origin(one) or one) in (tuple, list) for one in self.types)

    @property
    def is_mapping(self) -> bool:
        return any((get_origin(one) or one) is dict for one in self.types)

    def inner(self, name: str | None) -> _Kind:
        """What an item takes: of a list, or of the mapping for `name`."""
        if self.fields is not None and name is not None:
            return self.fields.get(name, _ANY)
        if self.is_id:
            return self
        wanted = (tuple, list) if name is None else (dict,)
        for one in self.types:
            if get_origin(one) in wanted:
                items = [item for item in get_args(one) if item is not ...]
                return _Kind.of(Union[tuple(items if name is None else items[1:])])  # noqa: UP007
        return _ANY


_ANY = _Kind((Any,))


def typed(value: Any, name: str, annotation: Any) -> Any:
    """`value` with each `Written` in it read by the type `annotation` of the setting `name`: a section's model, or the
    annotation of a field. Raises UsageError for a value of `--set` that is empty or no YAML.
    """
    return _typed(value, name, _Kind.of(annotation))


def _typed(value: Any, name: str, kind: _Kind) -> Any:
    if isinstance(value, dict):
        return {key: _typed(inner, f"{name}.{key}", kind.inner(str(key))) for key, inner in value.items()}
    if isinstance(value, list):
        return [_typed(inner, name, kind.inner(None)) for inner in value]
    if isinstance(value, _Assigned):
        return _of_assigned(str(value), name, kind)
    return _of_plain(str(value), kind) if isinstance(value, Written) else value


def _of_assigned(text: str, name: str, kind: _Kind) -> Any:
    if kind.is_id:
        return text
    quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" and text[0] not in text[1:-1]
    if quoted:
        return text[1:-1]
    bare = text.strip()
    if _is_document(bare, kind):
        return _typed(read_yaml(bare, f"--set {name}"), name, kind)
    if not bare and not kind.is_list and not kind.takes_any and str not in kind.types:
        raise UsageError(f"--set {name}= has no value" + (": null is none" if NoneType in kind.types else ""))
    takes_null = NoneType in kind.types or kind.takes_any
    if takes_null and (text if str in kind.types else bare) == "null":
        return None
    return _listed(text, kind) if kind.is_list else _scalar(text, kind)


def _is_document(text: str, kind: _Kind) -> bool:
    """Whether the value is a list or a mapping in YAML."""
    takes = {"[": kind.is_list, "{": kind.is_mapping}
    return text[:1] in takes and (takes[text[:1]] or kind.takes_any)


def _of_plain(text: str, kind: _Kind) -> Any:
    """A value without quotes in YAML."""
    return _listed(text, kind) if kind.is_list and not kind.is_id else _scalar(text, kind)


def _listed(text: str, kind: _Kind) -> list[Any]:
    """A list that is written as `a,b`."""
    return [_scalar(part.strip(), kind.inner(None)) for part in text.split(",")]


def _scalar(text: str, kind: _Kind) -> Any:
    """One value of the kind; of another kind it stays text, or a number, and validation refuses it."""
    bare = text.strip()
    if kind.is_id:
        return text
    if kind.takes_any:
        return _as_printed(text)
    for choice in kind.choices:
        if bare == str(choice):
            return choice
    if bool in kind.types and bare.lower() in _BOOLEANS:
        return _BOOLEANS[bare.lower()]
    if int in kind.types or float in kind.types:
        found = _as_printed(text) if str in kind.types else _number(bare, float in kind.types)
        if not isinstance(found, bool) and found is not None:
            return found
    return text if str in kind.types else bare


def _as_printed(text: str) -> Any:
    """A value of unknown type: `true`, `false`, or a number if it is written as it prints; else text. So a password of
    digits and letters, such as `12e4567`, is not changed.
    """
    if text in ("true", "false"):
        return text == "true"
    for found in (_number(text, False), _number(text, True)):
        if found is not None and str(found) == text:
            return found
    return text


def _number(text: str, is_float: bool) -> int | float | None:
    """A number as people write it: `1_000`, `1e-6`, `5e3` for a whole number, too; None for any other text."""
    if _OTHER_BASE.fullmatch(text):
        return int(text, 0)
    plain = re.sub(r"(?<=[0-9])_(?=[0-9])", "", text)
    if not _NUMBER.fullmatch(plain):
        return None
    if is_float:
        return float(plain)
    try:
        exact = Decimal(plain)
    except ArithmeticError:  # an exponent of many digits
        return float(plain)
    if exact and abs(exact.adjusted()) > _MOST_DIGITS:
        return float(plain)
    return int(exact) if exact == int(exact) else float(plain)


def read_yaml(text: str, where: str) -> Any:
    """The lists and mappings of a YAML document, with each value without quotes as `Written`, and None for an empty
    document. Raises UsageError, with `where` and the line, for what is no YAML, a name that is given twice, tags, lists
    within lists at great depth, and aliases that repeat very many values.
    """
    import yaml

    try:
        node = _reader(text).get_single_node()
        return None if node is None else _Tree().build(node)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = "" if mark is None else f", line {mark.line + 1}, column {mark.column + 1}"
        what = where if getattr(error, "context", None) == _REFUSED else f"{where} is not valid YAML"
        raise UsageError(f"{what}{place}: {getattr(error, 'problem', None) or error}") from error


def _reader(text: str) -> yaml.SafeLoader:
    """A reader of YAML that gives no types to values and stops at great depth."""
    import yaml

    class Reader(yaml.SafeLoader):
        depth = 0

        def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
            self.depth += 1
            if self.depth > _DEEPEST:
                here = self.peek_event()  # type: ignore[no-untyped-call]
                raise _error(f"more than {_DEEPEST} lists and mappings within one another", here)
            found: yaml.Node | None = super().compose_node(parent, index)
            self.depth -= 1
            return found

        def resolve(self, kind: type[yaml.Node], value: str, implicit: Any) -> str:
            return _PLAIN if kind is yaml.ScalarNode and implicit[0] else ""

    return Reader(text)


_PLAIN = "plain"
"""Tag of a value without quotes."""
_TEXT = "tag:yaml.org,2002:str"
_NULLS = ("", "~", "null", "Null", "NULL")
_MERGE = "<<"
_REFUSED = "refused"
"""Context of an error about valid YAML."""


def _error(problem: str, at: Any) -> yaml.MarkedYAMLError:
    import yaml

    return yaml.MarkedYAMLError(context=_REFUSED, problem=problem, problem_mark=at.start_mark)


@dataclass
class _Tree:
    """Builds lists and mappings from nodes of YAML."""

    seen: set[int] = field(default_factory=set)
    """Nodes that were built."""
    repeated: int = 0
    """Nodes that were built again, for an alias."""
    depth: int = 0

    def build(self, node: yaml.Node) -> Any:
        import yaml

        self.repeated += id(node) in self.seen
        self.seen.add(id(node))
        if self.repeated > _MOST_REPEATED or self.depth > _DEEPEST:
            raise _error(f"its aliases (*name) repeat more than {_MOST_REPEATED:,} values, or one holds itself", node)
        if node.tag not in ("", _PLAIN, _TEXT):
            raise _error(f"it has the tag {node.tag}, and a value has the type of its setting: leave the tag out", node)
        if isinstance(node, yaml.ScalarNode):
            if node.tag != _PLAIN:
                return str(node.value)
            return None if node.value in _NULLS else Written(node.value)
        self.depth += 1
        built: Any = self._mapping(node) if isinstance(node, yaml.MappingNode) else [*map(self.build, node.value)]
        self.depth -= 1
        return built

    def _mapping(self, node: yaml.MappingNode) -> dict[str, Any]:
        import yaml

        found: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise _error("the name of a value must be text", key)
            if key.tag == _PLAIN and key.value == _MERGE:
                built = self.build(value)
                for one in built if isinstance(built, list) else [built]:
                    if not isinstance(one, dict):
                        raise _error(f"{_MERGE} takes mappings", value)
                    merged = one | merged
            elif key.value in found:
                raise _error(f"{key.value!r} is given twice", key)
            else:
                found[key.value] = self.build(value)
        return merged | found


MOST_IDS = 100_000
"""Most ids in a setting. All of them are in the manifest."""


def id_text(value: object) -> str:
    """An id as text. Raises ValueError for a value that is no id."""
    plain: Any = getattr(value, "as_py", lambda: value)()
    if isinstance(plain, str):
        return plain
    if isinstance(plain, bool | float | list | tuple | dict | set) or plain is None:
        raise ValueError("must be an id: a whole number, or text")
    try:
        return str(index(plain))
    except TypeError:
        return str(plain)  # such as a UUID


def id_or_none(value: object) -> str | None:
    """An id as text, or None. Raises ValueError as `id_text` does."""
    return None if value is None else id_text(value)


def id_texts(value: Any) -> tuple[str, ...]:
    """Several ids as text: one id, ids with commas between them, `@FILE` with an id in each line, `@FILE:COLUMN` with a
    column of a Parquet file, or a list or column of ids. Raises ValueError.
    """
    if isinstance(value, str) and value.startswith("@"):
        found = _of_file(value[1:])
    elif isinstance(value, str):
        found = [text.strip() for text in value.split(",") if text.strip()]
    elif isinstance(value, Iterable):
        found = [id_text(one) for one in value]
    else:
        found = [id_text(value)]
    texts = tuple(sorted(set(found)))
    if len(texts) > MOST_IDS:
        raise ValueError(f"names {len(texts):,} ids, over the {MOST_IDS:,} allowed")
    return texts


def _of_file(name: str) -> list[str]:
    path, _, column = (name, "", "") if Path(name).is_file() else name.rpartition(":")
    try:
        content = Path(path or name).read_bytes()
    except OSError as error:
        raise ValueError(f"cannot read the file of ids {path or name!r}: {error.strerror or error}") from error
    if content.startswith((b"PAR1", b"PARE")):
        return _of_parquet(path, column)
    if column:
        raise ValueError(f"{path!r} is no Parquet file, so it has no column {column!r}: write one id in each line")
    try:
        return [line.strip() for line in content.decode().splitlines() if line.strip()]
    except UnicodeDecodeError as error:
        raise ValueError(f"{path!r} is neither Parquet nor text in UTF-8") from error


def _of_parquet(path: str, column: str) -> list[str]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from ...tasks.ids.display import display_id

    try:
        names = pq.read_schema(path).names
        chosen = column or ("id" if "id" in names else names[0] if len(names) == 1 else "")
        if chosen not in names:
            known = ", ".join(map(repr, names))
            which = f"no column {column!r}" if column else "several columns, none of them 'id'"
            raise ValueError(f"{path!r} has {which}; it has {known}: name one, as in @{path}:COLUMN")
        if (count := names.count(chosen)) > 1:
            raise ValueError(f"{path!r} has {count} columns named {chosen!r}: rename all but one")
        found = pq.read_table(path, columns=[chosen])[chosen]
    except (pa.ArrowException, OSError) as error:
        why = f"is encrypted: {error}" if "decrypt" in str(error) else f"cannot be read as Parquet: {error}"
        raise ValueError(f"{path!r} {why}") from error
    if found.null_count:
        raise ValueError(f"column {chosen!r} of {path!r} has {found.null_count:,} nulls: leave them out")
    return [id_text(display_id(value)) for value in found.to_pylist()]
