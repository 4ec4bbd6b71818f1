"""Which gatherer combines the values of a program."""

from __future__ import annotations

from ..block import Block
from ..combining.entries import GatherEntries
from ..gathering import GatherAll, GatherChanged, Gatherer, GatherKept
from ..links import GatherLinks
from ..mirrors import Mirrors
from ..spreading import GatherSpread
from .calls import Calls, has_messages


def gatherer_of(calls: Calls, block: Block, mirrors: Mirrors) -> Gatherer:
    """The gatherer of the program for a block with these mirrors."""
    program = calls.program
    if has_messages(program) or program.combine == "top":
        return GatherEntries(calls, block, mirrors)
    if program.combine == "links":
        return GatherLinks(calls, block, mirrors)
    if program.senders == "all":
        return GatherAll(calls, block, mirrors)
    if program.spreads:
        return GatherSpread(calls, block, mirrors)
    return (GatherKept if program.combine in ("mode", "hindex") else GatherChanged)(calls, block, mirrors)
