"""Scripts that call `mine` without `if __name__ == "__main__":` and start worker processes.

Python starts a worker process with an import of the main script. Without that line the import calls `mine` again, in
every worker. The run then ends with one error, in the script's own process.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing import current_process
from pathlib import Path

from ....tasks.errors import ClusterLost, UsageError

_MARKER = "EDGEMILL_UNGUARDED"
"""Environment variable of starting worker processes: path of the file that they make if the script has no guard."""
_ADVICE = (
    "worker processes (cluster.workers) import the script that starts them: "
    'call mine below `if __name__ == "__main__":` in it, or leave workers out'
)


def refuse_import() -> None:
    """Raises UsageError if this process is still starting and imports a main script that calls `mine`.

    A worker process of a run ends here without output instead: the run that starts it reports the error.
    """
    if not getattr(current_process(), "_inheriting", False):  # multiprocessing detects this mistake in the same way
        return
    marker = os.environ.get(_MARKER)
    if marker is None:
        raise UsageError(_ADVICE)
    with suppress(OSError):
        Path(marker).touch()
    os._exit(UsageError.exit_code)


@contextmanager
def guarded_start(folder: str | None) -> Iterator[None]:
    """Worker processes start within the block. Their marker file lies in `folder`, None for that of temporary files.

    Raises UsageError if they found the script without its guard, ClusterLost if they fail to start for another reason.
    """
    with tempfile.TemporaryDirectory(prefix="edgemill-", dir=folder) as own:
        marker = Path(own) / "unguarded"
        os.environ[_MARKER] = str(marker)
        try:
            yield
        except RuntimeError as error:
            if marker.exists():
                raise UsageError(_ADVICE) from None
            raise ClusterLost(
                f"the workers could not be started ({error}); stderr may have the reason. "
                f"If the script does more than call mine: {_ADVICE}"
            ) from error
        finally:
            del os.environ[_MARKER]
