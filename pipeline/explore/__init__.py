"""The explorer: a finished run as a page in a browser."""

from __future__ import annotations

from collections.abc import Callable

from ..exits import Terminated
from ..result import Result
from .server import ExplorerServer

__all__ = ["explore"]


def explore(result: Result, ready: Callable[[str], None], port: int = 0) -> None:
    """Serve the explorer of `result` on loopback until Ctrl-C; `ready` is told its URL once it can be opened.

    `port` 0 is a free one. Raises UsageError for a result without tables of dense groups, and for a port that is taken.
    """
    with ExplorerServer(result, port) as server:
        ready(server.address)
        try:
            server.serve_forever()
        except Terminated:
            raise
        except KeyboardInterrupt:
            return
