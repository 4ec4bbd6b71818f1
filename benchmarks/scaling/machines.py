"""What the model assumes: nodes and their links, graphs, and ways in which groups exchange packets."""

from __future__ import annotations

from dataclasses import dataclass, field

from .spans import Span


@dataclass(frozen=True)
class Machines:
    """Nodes with GPUs. Each GPU has one shard."""

    nodes: int = 32
    gpus: int = 8
    """Of each node."""
    memory: float = 141e9
    """Bytes of each GPU."""
    network: Span = field(default=Span(1 / 50e9, 1 / (1.4 * 2**30)))
    """Seconds a byte from a GPU to another node: 400 Gb/s, and TCP between two workers as measured."""
    nvlink: Span = field(default=Span(1 / 400e9, 1 / 150e9))
    """Seconds a byte between GPUs of a node."""
    task: float = 1 / 5000
    """Seconds of the scheduler for a task, at best."""
    step: Span = field(default=Span(64e-6, 144e-6))
    """Seconds in which two processes meet over sockets."""

    @property
    def shards(self) -> int:
        """One for each GPU."""
        return self.nodes * self.gpus


@dataclass(frozen=True)
class Graph:
    """A graph as far as the model needs it."""

    edges: float
    vertices: float
    local: float
    """Edges with triangles."""
    triangles: float


@dataclass(frozen=True)
class Layout:
    """How groups exchange packets."""

    name: str
    way: str
    """"dask": a packet to each group by Dask's comms; "nccl": an all-gather; "steps": log2 steps between nodes."""
    by_node: bool = True
    """Whether the GPUs of a node are one group, which receives each removal and each stream once."""
    bundled: bool = False
    """Whether what one task sends to another is not a task of its own."""


FLAT, FLAT_NCCL = Layout("a group a GPU, Dask", "dask", False), Layout("a group a GPU, NCCL", "nccl", False)
LAYOUTS = (
    FLAT,
    Layout("a group a node, Dask", "dask"),
    Layout("a group a node, NCCL", "nccl"),
    Layout("a group a node, log2 steps", "steps"),
    Layout("and parts without tasks", "steps", bundled=True),
)
"""What the code does for up to 32 GPUs, and remedies that are not built."""
