"""Banding of all partitions at once, over a graph held once: what each exchange would move, and what it would cost."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from benchmarks import walks
from edgemill import kernels
from edgemill.kernels.graph import Adjacency, Topology
from edgemill.pipeline.ledger import Ledger
from edgemill.tasks.bound.band import COMPACT_AT, BandReport, Bands, Order, carry_out, highest_lambda


@dataclass
class Exchanges:
    """One value for each exchange."""

    active: list[int] = field(default_factory=list)
    """Partitions that had something to do."""
    parts: list[int] = field(default_factory=list)
    """Pairs of partitions of which one told the other something."""
    ids: list[int] = field(default_factory=list)
    """Edges told."""
    evaluations: list[int] = field(default_factory=list)
    """Edges that fell, and ghosts that were told of."""
    slowest: list[int] = field(default_factory=list)
    """The same in the partition that had most."""


@dataclass(frozen=True)
class Banded:
    """How banding went."""

    lam: NDArray[np.int32]
    """[local edges] λ"""
    steps: int
    exchanges: Exchanges


def banding(
    topology: Topology,
    rows: Adjacency,
    support: NDArray[np.int32],
    owner: NDArray[np.int16],
    copies: NDArray[np.uint64],
    partitions: int,
) -> Banded:
    """The exchanges that `pipeline.banding` would make; each array is [local edges], `copies` says who has it too."""
    top = highest_lambda(np.bincount(support))
    ledger = Ledger(top, np.bincount(owner, minlength=partitions).tolist())
    told = np.bitwise_count(copies).sum(axis=1, dtype=np.int32)
    bands = Bands(np.zeros_like(support), support, support, np.zeros(top + 2, np.int32), rows)
    falls = walks.Falls(topology, owner)
    happened = Exchanges()
    orders: list[Order] = ledger.start()
    mail, work = support[:0], np.zeros(partitions, np.int64)
    receivers: set[int] = set()
    while ledger.open_bands:
        active = ledger.concerned(orders) | receivers
        falling = support[:0]
        if orders:
            bands, falling = carry_out(bands, [orders])
            bands = replace(bands, rows=_compacted(bands, ledger.floor))
        count = bands.count.copy()
        falls.begin(count, falling)
        how = count, bands.band, bands.threshold
        frontier = np.concatenate([falling, falls.elsewhere(bands.rows, mail, *how)])
        fell = [frontier]
        while len(frontier):
            frontier = falls.at_owners(bands.rows, frontier, *how)
            fell.append(frontier)
        fallen = np.concatenate(fell)
        bands = replace(bands, count=count)
        work += np.bincount(owner[fallen], minlength=partitions)
        mail = fallen[told[fallen] > 0]
        pairs = walks.tally_mail(mail, owner, copies, partitions)
        happened.active.append(len(active))
        happened.parts.append(int(np.count_nonzero(pairs)))
        happened.ids.append(int(pairs.sum()))
        happened.evaluations.append(int(work.sum()))
        happened.slowest.append(int(work.max()))
        work = pairs.sum(axis=0)  # looked at in the next exchange
        receivers = set(np.flatnonzero(work).tolist())
        ledger.record(_reports(owner, bands.band, fallen, mail))
        orders = ledger.split()
    if orders:
        bands, _ = carry_out(bands, [orders])
    return Banded(bands.band, ledger.steps, happened)


def _compacted(bands: Bands, floor: int) -> Adjacency:
    matters = bands.band >= floor
    if int(np.count_nonzero(matters)) >= COMPACT_AT * len(bands.rows.edge) / 2:
        return bands.rows
    return kernels.compact(bands.rows, matters)


def _reports(
    owner: NDArray[np.int16], band: NDArray[np.int32], fallen: NDArray[np.int32], mail: NDArray[np.int32]
) -> dict[int, BandReport]:
    fell, mailed = _tally(owner, band, fallen), _tally(owner, band, mail)
    return {p: BandReport(fell[p], mailed.get(p, {}), 0, 0) for p in fell}


def _tally(owner: NDArray[np.int16], band: NDArray[np.int32], edges: NDArray[np.int32]) -> dict[int, dict[int, int]]:
    """Partition → band → edges."""
    keys, counts = np.unique(owner[edges].astype(np.int64) << 32 | band[edges], return_counts=True)
    found: dict[int, dict[int, int]] = {}
    for key, count in zip(keys.tolist(), counts.tolist(), strict=True):
        found.setdefault(key >> 32, {})[key & 0xFFFFFFFF] = count
    return found
