"""Memory, cores and disk that a process, and all that it starts, take over time. Linux."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Thread

import psutil

from benchmarks.machine import taken_by


@dataclass(frozen=True)
class Sample:
    """What there was at one moment."""

    time: datetime
    largest_bytes: int
    """Resident in the largest process."""
    all_bytes: int
    """Resident in all together; what they share is counted for each."""
    cpu_seconds: float
    """That all have had of the cores until then."""


@dataclass
class Watch:
    """What was seen until now."""

    samples: list[Sample] = field(default_factory=list)
    peaks: dict[int, int] = field(default_factory=dict)
    """Process → the most it had resident, as the system counts it."""
    cpu_seconds: dict[int, float] = field(default_factory=dict)
    """Process → what it has had of the cores."""
    disk_bytes: int = 0
    """The most that lay below the folder."""

    @property
    def largest_bytes(self) -> int:
        """The most that any process had."""
        return max([*self.peaks.values(), *(sample.largest_bytes for sample in self.samples)], default=0)

    @property
    def busy_seconds(self) -> float:
        """What all had of the cores."""
        return self.samples[-1].cpu_seconds - self.samples[0].cpu_seconds if self.samples else 0.0

    @property
    def all_bytes(self) -> int:
        """The most that all had at one moment."""
        return max((sample.all_bytes for sample in self.samples), default=0)

    def between(self, start: datetime, end: datetime) -> Watch:
        """What was seen in that time, but for the peaks of the processes and the disk."""
        return Watch([sample for sample in self.samples if start <= sample.time <= end])


@contextmanager
def watched(process: int, folder: Path, every_seconds: float = 0.2) -> Iterator[Watch]:
    """Watch the process of that id, its descendants, and the size of the folder, until the block ends."""
    watch, ended = Watch(), Event()

    def look() -> None:
        measured = 0.0
        while not ended.wait(every_seconds):
            with suppress(psutil.NoSuchProcess):
                root = psutil.Process(process)
                found = [taken for one in (root, *root.children(recursive=True)) if (taken := taken_by(one.pid))]
                for one in found:
                    watch.peaks[one.process] = max(one.peak_bytes, watch.peaks.get(one.process, 0))
                    watch.cpu_seconds[one.process] = one.cpu_seconds
                now = [one.resident_bytes for one in found]
                busy = sum(watch.cpu_seconds.values())
                watch.samples.append(Sample(datetime.now(UTC), max(now, default=0), sum(now), busy))
            if time.monotonic() > measured + 10 * every_seconds:
                measured = time.monotonic()
                watch.disk_bytes = max(watch.disk_bytes, _bytes_below(folder))

    thread = Thread(target=look, daemon=True)
    thread.start()
    try:
        yield watch
    finally:
        ended.set()
        thread.join()


def _bytes_below(folder: Path) -> int:
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += os.stat(os.path.join(path, name)).st_size
    return total
