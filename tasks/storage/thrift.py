"""Thrift's compact protocol, in which Parquet stores its footers: structs read and written without a description.

Footers are untrusted, and Parquet's C++ reader aborts the process on some inconsistent ones. This reader raises
ValueError. A struct that `read_struct` has read and `struct_bytes` writes has the same bytes. Source: "Thrift Compact
protocol encoding", https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple, TypeAlias

Fields: TypeAlias = dict[int, Any]
"""A struct as plain values: field number → int, float, bool, bytes, list or Fields."""

Struct: TypeAlias = "dict[int, Value]"
"""A struct with the types of its fields: field number → value."""

_STOP, _TRUE, _FALSE, _BYTE, _I16, I32, I64, _DOUBLE, _BINARY, LIST, _SET, _MAP, STRUCT = range(13)
_INTEGERS = (_I16, I32, I64)
_LONG_LIST = 15
"""In the first byte of a list: the number of its values follows."""
_FIXED = {_TRUE: 1, _FALSE: 1, _BYTE: 1, _DOUBLE: 8}
"""Bytes of a value of these types. A boolean field has none, only one in a list."""

_MAX_DEPTH = 32
"""Nested structs and lists. Parquet footers have six levels."""
_MAX_VARINT_BITS = 63


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


def read_fields(content: bytes) -> Fields:
    """The struct at the start of `content` as plain values. Raises ValueError for other bytes, and for a map: Parquet
    uses none.
    """
    return _read(content, with_types=False)


def read_struct(content: bytes) -> Struct:
    """The struct at the start of `content`, with the types of its fields. Raises as `read_fields`."""
    return _read(content, with_types=True)


def struct_bytes(fields: Struct) -> bytes:
    """The bytes of a struct."""
    content = bytearray()
    _add_struct(content, fields)
    return bytes(content)


def _read(content: bytes, with_types: bool) -> dict[int, Any]:
    try:
        return _Reader(content, with_types).struct(0)
    except IndexError as error:
        raise ValueError("it ends within a value") from error


class _Reader:
    def __init__(self, content: bytes, with_types: bool) -> None:
        self._content, self._with_types = content, with_types
        self._at = 0

    def struct(self, depth: int) -> dict[int, Any]:
        fields: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            step, kind = head >> 4, head & 15
            number = number + step if step else self._integer()
            if kind in (_TRUE, _FALSE):
                fields[number] = Value(kind, None) if self._with_types else kind == _TRUE
            else:
                value = self._value(kind, depth)
                fields[number] = Value(kind, value) if self._with_types else value
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if depth <= _MAX_DEPTH:
            if kind in _INTEGERS:
                return self._integer()
            if kind == _BINARY:
                return self._bytes(self._varint())
            if kind == STRUCT:
                return self.struct(depth + 1)
            if kind in (LIST, _SET):
                return self._list(depth + 1)
            if kind in _FIXED:
                content = self._bytes(_FIXED[kind])
                return content if self._with_types else _plain(kind, content)
        raise ValueError(f"it has a value of type {kind} in depth {depth}")

    def _list(self, depth: int) -> Any:
        head = self._byte()
        length, kind = head >> 4, head & 15
        if length == _LONG_LIST:
            length = self._varint()
        if length > len(self._content) - self._at:  # an element takes a byte at least
            raise ValueError(f"it has a list of {length} elements")
        values = [self._value(kind, depth) for _ in range(length)]
        return ValueList(kind, values) if self._with_types else values

    def _integer(self) -> int:
        value = self._varint()
        return value >> 1 ^ -(value & 1)

    def _varint(self) -> int:
        value = 0
        for shift in range(0, _MAX_VARINT_BITS + 1, 7):
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise ValueError("it has an integer of more than 64 bits")

    def _byte(self) -> int:
        byte = self._content[self._at]
        self._at += 1
        return byte

    def _bytes(self, length: int) -> bytes:
        end = self._at + length
        if end > len(self._content):
            raise IndexError
        content = self._content[self._at : end]
        self._at = end
        return content


def _plain(kind: int, content: bytes) -> int | float | bool:
    """The value of a boolean, a byte or a double that has these bytes."""
    if kind == _DOUBLE:
        return float(struct.unpack("<d", content)[0])
    return int.from_bytes(content, signed=True) if kind == _BYTE else content == bytes([_TRUE])


def _add_struct(content: bytearray, fields: Struct) -> None:
    before = 0
    for number, (kind, value) in sorted(fields.items()):
        step = number - before
        if 0 < step < 16:
            content.append(step << 4 | kind)
        else:
            content.append(kind)
            _add_signed(content, number)
        before = number
        if value is not None:
            _add_value(content, kind, value)
    content.append(_STOP)


def _add_value(content: bytearray, kind: int, value: Any) -> None:
    if kind in _INTEGERS:
        _add_signed(content, value)
    elif kind == _BINARY:
        _add_unsigned(content, len(value))
        content += value
    elif kind == STRUCT:
        _add_struct(content, value)
    elif kind in (LIST, _SET):
        of, values = value
        content.append(min(len(values), _LONG_LIST) << 4 | of)
        if len(values) >= _LONG_LIST:
            _add_unsigned(content, len(values))
        for element in values:
            _add_value(content, of, element)
    else:
        content += value


def _add_unsigned(content: bytearray, value: int) -> None:
    while value > 127:
        content.append(value & 127 | 128)
        value >>= 7
    content.append(value)


def _add_signed(content: bytearray, value: int) -> None:
    _add_unsigned(content, value << 1 if value >= 0 else (-value << 1) - 1)
