"""The explorer of a result, served for the length of a block."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from edgemill.pipeline import Result
from edgemill.pipeline.explore.server import ADDRESS, ExplorerServer


@contextmanager
def serving(result: Result) -> Iterator[ExplorerServer]:
    """A server that answers within the block, and whose port is free after it."""
    with ExplorerServer(result) as served:
        thread = threading.Thread(target=served.serve_forever)
        thread.start()
        try:
            yield served
        finally:
            served.shutdown()
            thread.join()
    with socket.socket() as taken:
        assert taken.connect_ex((ADDRESS, served.server_port)) != 0
