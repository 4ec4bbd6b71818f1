"""Chunks that are copied to the memory of a processor, while its kernels read other chunks; as many as fit stay there.

The topology streams past the attributes of vertices, which stay in the memory of the processor: Kim et al., "GTS: A
fast and scalable graph processing method based on streaming topology to GPUs", SIGMOD 2016. Here a chunk has whole
rows, so no partial results of a row are combined.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from .rows import Chunk

BUFFERS = 3
"""Buffers that chunks pass through: kernels read one of them, and two are filled."""

CHUNK_BYTES = 64 * 2**20
"""Bytes of a chunk, except of one with a longer row: 1.2 ms of copying at 55 GB/s, against 0.1 ms of launches."""

LEAST_CHUNK_BYTES = 2**20
"""Fewest bytes of a chunk, even if the buffers then take more than the memory for entries."""

BUFFER_SHARE = 1 / 16
"""Most of the memory for entries that one buffer takes, unless a single row is longer."""


class Memory(Protocol):
    """Memory of a processor, with copies that are queued beside its kernels. A place holds the entries of one chunk."""

    width: int
    """Bytes of an entry."""

    def new_place(self, entries: int) -> Any:
        """A place for so many entries."""
        ...

    def copy(self, place: Any, chunk: Chunk) -> None:
        """Queue the copy of a chunk, behind the kernels that were launched before `release`."""
        ...

    def acquire(self, place: Any, entries: int) -> tuple[Any, Any]:
        """The sources and weights of the chunk, for kernels that are launched from now on."""
        ...

    def release(self, place: Any) -> None:
        """No kernel that is launched from now on reads the place."""
        ...

    def settle(self) -> None:
        """Wait for all copies."""
        ...


class PassingFeed:
    """The entries of all chunks in host memory, and memory of a processor for some of them.

    The first chunks stay once they have been copied, as many as `topology_bytes` hold beside the buffers. The others
    pass through BUFFERS buffers, which are as large as the largest of them. Successive visits go through them in
    alternate directions, so that a visit begins with the chunks that the buffers still have. Chunks that stay are read
    between the others, so that copies do not wait for them.
    """

    def __init__(self, chunks: Sequence[Chunk], memory: Memory, topology_bytes: int) -> None:
        self.chunks = chunks
        self.bytes_copied = self.bytes_direct = 0
        self._memory = memory
        self._stays = _stay(chunks, memory.width, topology_bytes)
        self._largest = max((len(chunk) for chunk in chunks if not self._stays[chunk.number]), default=0)
        self._buffers: list[Any] = []
        self._in_buffer: dict[int, Chunk] = {}
        """The chunk in each buffer, or on its way there, by the buffer's index."""
        self._place: dict[int, Any] = {}
        """The place of each chunk that has one, or is on its way there, by the chunk's number."""
        self._downwards = False

    @property
    def kept(self) -> int:
        """Number of chunks that stay."""
        return sum(self._stays)

    def is_near(self, number: int) -> bool:
        """See `Feed.is_near`."""
        return self._stays[number] or number in self._place

    def visit(self, numbers: Sequence[int]) -> Iterator[tuple[Chunk, Any, Any]]:
        """See `Feed.visit`."""
        wanted = sorted(numbers, reverse=self._downwards)
        self._downwards = not self._downwards
        staying = [k for k in wanted if self._stays[k]]
        passing = sorted((k for k in wanted if not self._stays[k]), key=lambda k: k not in self._place)
        rest = iter([k for k in passing if k not in self._place])
        finished = False
        try:
            self._start_all(staying, passing, rest)
            for k in _merged(passing, staying):
                place, chunk = self._place[k], self.chunks[k]
                arrays = self._memory.acquire(place, len(chunk))
                try:
                    yield chunk, *arrays
                finally:
                    self._memory.release(place)
                if not self._stays[k]:
                    self._start_next(self._buffers.index(place), rest)
            finished = True
        finally:
            if not finished:  # memory may be freed that copies write to
                self._memory.settle()

    def _start_all(self, staying: Sequence[int], passing: Sequence[int], rest: Iterator[int]) -> None:
        """Copy chunks that will stay, and fill the buffers that have no chunk of this visit."""
        for k in staying:
            if k not in self._place:
                self._place[k] = self._memory.new_place(len(self.chunks[k]))
                self._copy(self._place[k], self.chunks[k])
        if passing and not self._buffers:
            self._buffers = [self._memory.new_place(self._largest) for _ in range(BUFFERS)]
        coming = set(passing)
        for at in range(len(self._buffers)):
            before = self._in_buffer.get(at)
            if before is None or before.number not in coming:
                self._start_next(at, rest)

    def _start_next(self, at: int, rest: Iterator[int]) -> None:
        """Copy the next chunk of `rest`, if there is one, to a buffer."""
        number = next(rest, None)
        if number is None:
            return
        before = self._in_buffer.get(at)
        if before is not None:
            del self._place[before.number]
        self._in_buffer[at], self._place[number] = self.chunks[number], self._buffers[at]
        self._copy(self._buffers[at], self.chunks[number])

    def _copy(self, place: Any, chunk: Chunk) -> None:
        self._memory.copy(place, chunk)
        self.bytes_copied += self._memory.width * len(chunk)


def _stay(chunks: Sequence[Chunk], width: int, topology_bytes: int) -> list[bool]:
    """[chunks] whether a chunk stays."""
    whole, largest = width * sum(map(len, chunks)), width * max(map(len, chunks), default=0)
    left, stays = kept_bytes(whole, largest, topology_bytes), []
    for chunk in chunks:
        left -= width * len(chunk)
        stays.append(left >= 0)
    return stays


def _merged(passing: Sequence[int], staying: Sequence[int]) -> Iterator[int]:
    """Both, with those that stay spread evenly between the others."""
    done = 0
    for at, k in enumerate(passing, 1):
        yield k
        due = len(staying) * at // len(passing)
        yield from staying[done:due]
        done = due
    yield from staying[done:]


def kept_bytes(whole: int, largest: int, topology_bytes: int) -> int:
    """Bytes for chunks that stay, of `whole` bytes in chunks of at most `largest` bytes."""
    return whole if whole <= topology_bytes else max(0, topology_bytes - BUFFERS * largest)


def chunk_bytes(topology_bytes: int) -> int:
    """Bytes of a chunk that passes through buffers within `topology_bytes`."""
    return max(LEAST_CHUNK_BYTES, min(CHUNK_BYTES, int(BUFFER_SHARE * topology_bytes)))
