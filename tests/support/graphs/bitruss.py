"""Butterflies and λ by butterflies by brute force: slow on purpose, and without code of the product."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TypeVar

Left = TypeVar("Left", bound=Hashable)
Right = TypeVar("Right", bound=Hashable)


def butterflies_of(edges: Iterable[tuple[Left, Right]]) -> dict[tuple[Left, Right], int]:
    """The number of butterflies that contain each edge, by their definition."""
    given = set(edges)
    return {
        (left, right): sum(
            (left, other_right) in given and (other_left, right) in given
            for other_left, other_right in given
            if other_left != left and other_right != right
        )
        for left, right in given
    }


def bitruss_numbers(edges: Iterable[tuple[Left, Right]]) -> dict[tuple[Left, Right], int]:
    """λ of each edge: the largest k such that it lies in a subgraph in which every edge lies in k butterflies."""
    left, k = set(edges), 0
    found: dict[tuple[Left, Right], int] = {}
    while left:
        while fallen := [edge for edge, count in butterflies_of(left).items() if count <= k]:
            found |= dict.fromkeys(fallen, k)
            left -= set(fallen)
        k += 1
    return found
