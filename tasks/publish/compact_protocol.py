"""Structs of Thrift's compact protocol, in which Parquet stores its footers, without a description of their fields.

A struct that is read and written again has the same bytes. Source: "Thrift Compact protocol encoding",
https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, TypeAlias

Struct: TypeAlias = "dict[int, Value]"
"""Fields by their ids."""

_STOP, _TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(13)
_INTEGERS = (_I16, _I32, _I64)
_LONG_LIST = 15
"""In the first byte of a list: the number of its values follows."""


class Value(NamedTuple):
    """A field of a struct."""

    kind: int
    """Its type in the protocol; also the value of a boolean."""
    value: Any
    """An int, bytes (of a byte, a double or text), a Struct, or a `ValueList`. None for a boolean."""


class ValueList(NamedTuple):
    """The values of a list or set, all of one type."""

    kind: int
    values: list[Any]
    """As `Value.value`; a boolean is one byte."""


def read_struct(content: bytes) -> Struct:
    """The struct at the start of `content`. Raises ValueError for types that no footer of Parquet has."""
    try:
        return _Reader(content).struct()
    except IndexError:
        raise ValueError("a struct that has no end") from None


def struct_bytes(struct: Struct) -> bytes:
    """The bytes of a struct."""
    return b"".join(_struct(struct))


class _Reader:
    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    def struct(self) -> Struct:
        fields: Struct = {}
        number = 0
        while (head := self._byte()) != _STOP:
            kind = head & 15
            number = number + (head >> 4) if head >> 4 else self._signed()
            fields[number] = Value(kind, None if kind in (_TRUE, _FALSE) else self._value(kind))
        return fields

    def _value(self, kind: int) -> Any:
        if kind in _INTEGERS:
            return self._signed()
        if kind == _BINARY:
            return self._take(self._unsigned())
        if kind == _STRUCT:
            return self.struct()
        if kind in (_LIST, _SET):
            head = self._byte()
            count = head >> 4 if head >> 4 < _LONG_LIST else self._unsigned()
            return ValueList(head & 15, [self._value(head & 15) for _ in range(count)])
        sizes = {_TRUE: 1, _FALSE: 1, _BYTE: 1, _DOUBLE: 8}
        if kind not in sizes:
            raise ValueError(f"a value of the unknown type {kind}")
        return self._take(sizes[kind])

    def _byte(self) -> int:
        """The next byte. Raises IndexError at the end."""
        self._at += 1
        return self._content[self._at - 1]

    def _take(self, count: int) -> bytes:
        self._at += count
        if self._at > len(self._content):
            raise IndexError
        return self._content[self._at - count : self._at]

    def _unsigned(self) -> int:
        content, at = self._content, self._at
        value = content[at] & 127
        shift = 0
        while content[at] > 127:
            at += 1
            shift += 7
            value |= (content[at] & 127) << shift
        self._at = at + 1
        return value

    def _signed(self) -> int:
        value = self._unsigned()
        return value >> 1 ^ -(value & 1)


def _struct(struct: Struct) -> Iterable[bytes]:
    before = 0
    for number, field in sorted(struct.items()):
        step = number - before
        if 0 < step < 16:
            yield bytes([step << 4 | field.kind])
        else:
            yield bytes([field.kind]) + _signed(number)
        before = number
        if field.value is not None:
            yield from _value(field.kind, field.value)
    yield bytes([_STOP])


def _value(kind: int, value: Any) -> Iterable[bytes]:
    if kind in _INTEGERS:
        yield _signed(value)
    elif kind == _BINARY:
        yield _unsigned(len(value)) + value
    elif kind == _STRUCT:
        yield from _struct(value)
    elif kind in (_LIST, _SET):
        count = len(value.values)
        yield bytes([min(count, _LONG_LIST) << 4 | value.kind])
        if count >= _LONG_LIST:
            yield _unsigned(count)
        for own in value.values:
            yield from _value(value.kind, own)
    else:
        yield value


def _unsigned(value: int) -> bytes:
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    found.append(value)
    return bytes(found)


def _signed(value: int) -> bytes:
    return _unsigned(value << 1 if value >= 0 else (-value << 1) - 1)
