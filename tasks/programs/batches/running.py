"""The loop of batches that every group runs, in step with the other groups.

The sources are all vertices, or some that a seed selects, whatever the partitioning. The run time is predicted from the
first batches, and may be limited: T × ⌈N / batch⌉ for N sources, with T the mean time of the first batches. Sources are
in random order, so that these batches are like all others.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...partition import Partitioner
from ...shards.carriers.carrier import Carrier
from ..block import GraphBlock, PairTable
from ..program import State, Vertices
from ..running import ProgramOutcome, abandoning
from ..words import NO_WORDS
from .levels import BatchReach, LevelSearch
from .paths import path_search
from .program import UNBOUNDED, Facts, LevelsFound, SourceProgram, SourceSample, Span
from .side import Side, sides_of
from .spans import Spans

CHUNK = 2**20
"""Vertices that are hashed at a time."""


def drawn_sources(vertices: int, count: int | None, seed: int) -> NDArray[np.int64]:
    """The dense numbers of `count` of the vertices 0 … vertices - 1, or of all, in a random order.

    A vertex gets a hash of its number and the seed (the finalizer of SplitMix64: Steele, Lea and Flood, OOPSLA 2014).
    The vertices with the `count` smallest hashes are drawn, in the order of the hashes. So the first vertices of the
    result, however many, are a random sample without replacement, too.
    """
    count = vertices if count is None else min(count, vertices)
    keys, numbers = np.empty(0, np.uint64), np.empty(0, np.int64)
    for first in range(0, vertices, CHUNK):
        number = np.arange(first, min(first + CHUNK, vertices))
        keys, numbers = np.append(keys, _hash(number.astype(np.uint64), seed)), np.append(numbers, number)
        if len(keys) > count:
            kept = np.argpartition(keys, count - 1)[:count] if count else slice(0)
            keys, numbers = keys[kept], numbers[kept]
    return numbers[np.lexsort((numbers, keys))]


def _hash(words: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
    """64-bit hashes; distinct for distinct words."""
    mixed = words * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed * 0xD1342543DE82EF95 % 2**64)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    hashed: NDArray[np.uint64] = mixed ^ (mixed >> np.uint64(31))
    return hashed


TIMED = 3
"""The fewest batches that predict the time."""
SHARE = 20
"""One batch in SHARE improves the prediction, if that are more than TIMED."""


class Forecast:
    """The prediction for a run over `sources`, of which each batch has `width`."""

    def __init__(self, sources: int, width: int) -> None:
        self.batches = -(-sources // width)
        last = sources - (self.batches - 1) * width
        self.last = (1 + last / width) / 2
        """The time of the last batch, as a share of that of a full one, if half of the time of a batch does not depend
        on its size. Measured: 0.6 to 0.9 with a fourth of the sources.
        """
        self.timed = max(TIMED, self.batches // SHARE)
        """Batches that predict the time."""
        self.seconds: float | None = None
        """Predicted seconds from start to end; None before TIMED batches are done, and if there are no more."""
        self._spent: list[float] = []

    def add(self, spent: float) -> None:
        """Record that the next batch has ended `spent` seconds after the start.

        The first batch does not predict the time of the others, since it also allocates memory and touches it first.
        """
        self._spent.append(spent)
        done = len(self._spent)
        if TIMED <= done <= self.timed and done < self.batches:
            each = (spent - self._spent[0]) / (done - 1)
            self.seconds = spent + each * (self.batches - done - 1 + self.last)


def is_late(carrier: Carrier, seconds: float | None, start: float) -> bool:
    """Whether `seconds` have passed since `start`, on the monotonic clock, at any group. All groups must call this."""
    if seconds is None:
        return False
    late = np.array([time.monotonic() - start >= seconds], np.uint32)
    packets = carrier.exchange(late, [NO_WORDS] * carrier.groups)
    return any(int(packet.common[0]) for packet in packets)


MOST_SEARCHES = 1024
"""The most further sources for bounds of diameter and radius."""

Progress = Callable[[int, int, float, float | None], None]
"""Called after each batch with the batches that are done, the number of batches, the seconds since the start, and the
predicted seconds from start to end, once known.
"""


def run_batches(
    program: SourceProgram,
    block: GraphBlock,
    home: Partitioner,
    carrier: Carrier,
    *,
    most_batches: int | None = None,
    seconds: float | None = None,
    progress: Progress | None = None,
) -> ProgramOutcome:
    """Run a program on the block of one group. All groups must call this with the same program and limits.

    After `most_batches`, or when `seconds` have passed at any group, but not before the first batch, all groups stop
    after the same batch; the result is not converged then, and is that of the sources searched from. Raises as
    `run_program`, and InputError if a number of paths exceeds float64.
    """
    with abandoning(carrier):
        run = _PathRun if program.search == "paths" else _LevelRun
        return run(program, block, home, carrier).run(most_batches, seconds, progress)


class _Run(ABC):
    """A program on one block."""

    words: int
    """64-bit words with a bit for each source of a batch."""

    def __init__(self, program: SourceProgram, block: GraphBlock, home: Partitioner, carrier: Carrier) -> None:
        self.program, self.block, self.carrier = program, block, carrier
        self.sources = drawn_sources(block.vertices, program.sources, program.seed)
        self.width = max(1, min(program.batch, len(self.sources)))
        self.into, self.out = sides_of(block, home, carrier, -(-self.width // 64))

    def run(self, most_batches: int | None, seconds: float | None, progress: Progress | None) -> ProgramOutcome:
        """Search from all sources."""
        start, batches = time.monotonic(), -(-len(self.sources) // self.width)
        forecast, done = Forecast(len(self.sources), self.width), 0
        while done < batches and (not done or (done != most_batches and not is_late(self.carrier, seconds, start))):
            self.search(self.sources[done * self.width : (done + 1) * self.width])
            done += 1
            spent = time.monotonic() - start
            forecast.add(spent)
            if progress is not None:
                progress(done, batches, spent, forecast.seconds)
        spent = time.monotonic() - start
        sample = SourceSample(self.block.vertices, self.sources[: done * self.width])
        state, facts = self.finish(sample)
        times = {"sources": len(sample.sources), "batches": done, "batch_seconds": round(spent, 3)}
        if forecast.seconds is not None:
            times["predicted_seconds"] = round(forecast.seconds, 3)
        mirrors = {id(side.mirrors): side.mirrors for side in (self.into, self.out)}
        sides = {id(side): side for side in (self.into, self.out)}
        return ProgramOutcome(
            self.block.group,
            self.block.number,
            {name: np.asarray(state[name]).astype(kind, copy=False) for name, kind in self.program.state.items()},
            self.levels,
            done == batches,
            0.0,
            sum(side.entries for side in sides.values()),
            4 * sum(own.words for own in mirrors.values()),
            {**facts, **times},
            pairs=self.pairs(len(sample.sources)),
            received=4 * sum(own.words_received for own in mirrors.values()),
        )

    @abstractmethod
    def search(self, sources: NDArray[np.int64]) -> None:
        """Search from one batch."""

    @abstractmethod
    def finish(self, sample: SourceSample) -> tuple[State, Facts]:
        """The result."""

    def pairs(self, sources: int) -> PairTable | None:
        """The distances from the first `sources` sources, if they are kept."""
        return None

    @property
    @abstractmethod
    def levels(self) -> int:
        """Levels of all batches."""

    def vertices(self) -> Vertices:
        """The own vertices."""
        degrees = {"in_degree": self.into.lengths, "out_degree": self.out.lengths}
        return Vertices({"number": self.block.number, **degrees}, self.block.vertices, self.levels)


class _PathRun(_Run):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.paths = path_search(self.block, self.into, self.out, self.width)

    def search(self, sources: NDArray[np.int64]) -> None:
        self.paths.run(sources)

    def finish(self, sample: SourceSample) -> tuple[State, Facts]:
        return self.program.finish(self.vertices(), self.paths.found, sample, self.block.mutual)

    @property
    def levels(self) -> int:
        return self.paths.levels


class _LevelRun(_Run):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.search_all = LevelSearch(self.block, self.into, self.sources if self.program.table else None)
        self.reaches: list[BatchReach] = []
        self.spans: Spans | None = None
        if self.block.mutual and len(self.sources) < self.block.vertices:
            self.spans = Spans(self.block, self.into.mirrors)

    def search(self, sources: NDArray[np.int64]) -> None:
        reach, levels = self.search_all.run(sources, tally=True, keep=self.spans is not None)
        self.reaches.append(reach)
        if self.spans is not None:
            self.spans.add(reach, levels)

    def finish(self, sample: SourceSample) -> tuple[State, Facts]:
        span, least, most = self._bounds() if self.spans is None else self._narrowed(self.spans)
        sums = self.search_all
        found = LevelsFound(sums.reached, sums.distance, sums.squares, least, most, sums.pairs, sums.pair_squares, span)
        return self.program.finish(self.vertices(), found, sample, self.block.mutual)

    def pairs(self, sources: int) -> PairTable | None:
        kept, table = self.search_all.kept, self.search_all.table
        if kept is None or table is None:
            return None
        done = np.isin(kept, self.sources[:sources])
        number = self.block.number.astype(np.int64)
        return PairTable(number, kept, table) if done.all() else PairTable(number, kept[done], table[:, done])

    def _bounds(self) -> tuple[Span, NDArray[np.int32], NDArray[np.int32]]:
        """The eccentricities of the sources."""
        number, count = self.block.number, len(self.block.number)
        least, most = np.zeros(count, np.int32), np.full(count, UNBOUNDED)
        sources, far, size = (
            np.concatenate([empty, *(getattr(reach, name) for reach in self.reaches)])
            for name, empty in (("sources", self.sources[:0]), ("eccentricity", most[:0]), ("size", self.sources[:0]))
        )
        here = np.isin(sources, number)
        rows = np.searchsorted(number, sources[here])
        least[rows] = most[rows] = far[here]
        largest = int(size.max(initial=0))
        ends = far[size == largest]
        lowest, highest = int(ends.min(initial=UNBOUNDED)), int(ends.max(initial=0))
        if len(sources) == self.block.vertices:
            lowest = 0 if not len(sources) else lowest
            return Span(largest, (highest, highest), (lowest, lowest), 0), least, most
        return Span(largest, (highest, None), (0, lowest if len(ends) else None), 0), least, most

    def _narrowed(self, spans: Spans) -> tuple[Span, NDArray[np.int32], NDArray[np.int32]]:
        """Bounds of the eccentricities, after further searches until those of diameter and radius meet."""
        into = self.into
        narrow = Side(self.block, into.mirrors, into.transposed, 1)
        search = LevelSearch(self.block, narrow)
        span, further = spans.span()
        while len(further) and spans.searches <= MOST_SEARCHES:
            spans.add(*search.run(further, tally=False, keep=True))
            span, further = spans.span()
        into.entries += narrow.entries
        self.search_all.levels += search.levels
        return span, spans.least, spans.most

    @property
    def levels(self) -> int:
        return self.search_all.levels
