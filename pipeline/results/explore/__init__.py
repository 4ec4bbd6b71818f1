"""The explorer: a finished run as an interactive page in a browser.

`explore` serves it. Start reading at `server`, whose docstring lists the requests, then `api`, which answers them.
`queries` reads the result's tables within bounds; `drawing`, `tree` and `search` make the larger answers. `static/`
holds the page.
"""

from __future__ import annotations

from collections.abc import Callable

from ...messages.exits import Terminated
from ..result import Result
from .server import ExplorerServer


def explore(result: Result, ready: Callable[[str], None], port: int = 0) -> None:
    """Serve the explorer of `result` on loopback until Ctrl-C. Calls `ready` with its URL once the server listens.

    Port 0 selects a free port. Raises UsageError for a result without tables of dense groups, or if the port is taken.
    """
    with ExplorerServer(result, port) as server:
        ready(server.address)
        try:
            server.serve_forever()
        except Terminated:
            raise
        except KeyboardInterrupt:
            return
