"""A parser of Thrift's compact protocol, the encoding of Parquet footers, for untrusted bytes.

Parquet's C++ reader aborts the process on some inconsistent footers. This parser raises ValueError.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, TypeAlias

Fields: TypeAlias = dict[int, Any]
"""A struct: field number → value, which is an int, float, bool, bytes, list or Fields."""

_MAX_DEPTH = 32
"""Nested structs and lists. Parquet footers have six levels."""
_MAX_VARINT_BITS = 63


def read_struct(content: bytes) -> Fields:
    """The struct at the start of `content`. Raises ValueError for other bytes, and for a map: Parquet uses none."""
    try:
        return _Reader(content).struct(0)
    except IndexError as error:
        raise ValueError("it ends within a value") from error


class _Reader:
    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0
        self._by_type: dict[int, Callable[[int], Any]] = {
            1: lambda _: self._byte() == 1,  # within a list
            2: lambda _: self._byte() == 1,
            3: lambda _: int.from_bytes(self._bytes(1), signed=True),
            4: self._integer,
            5: self._integer,
            6: self._integer,
            7: lambda _: struct.unpack("<d", self._bytes(8))[0],
            8: lambda _: self._bytes(self._varint()),
            9: self._list,
            10: self._list,
            12: self.struct,
        }

    def struct(self, depth: int) -> Fields:
        fields: Fields = {}
        number = 0
        while head := self._byte():
            step, kind = head >> 4, head & 15
            number = number + step if step else self._integer(depth)
            fields[number] = kind == 1 if kind in (1, 2) else self._value(kind, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        read = self._by_type.get(kind)
        if read is None or depth > _MAX_DEPTH:
            raise ValueError(f"it has a value of type {kind} in depth {depth}")
        return read(depth + 1)

    def _list(self, depth: int) -> list[Any]:
        head = self._byte()
        length, kind = head >> 4, head & 15
        if length == 15:
            length = self._varint()
        if length > len(self._content) - self._at:  # an element takes a byte at least
            raise ValueError(f"it has a list of {length} elements")
        return [self._value(kind, depth) for _ in range(length)]

    def _integer(self, _: int) -> int:
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
        found = self._content[self._at : end]
        self._at = end
        return found
