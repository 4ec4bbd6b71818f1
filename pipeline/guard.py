"""Scripts that call `mine` without a guard, and that their worker processes import: one error, in the script's process.

Python starts a worker process with an import of the main script. Without `if __name__ == "__main__":` that import calls
`mine` again, in every worker.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing import current_process
from pathlib import Path

from ..tasks.errors import ClusterLost, UsageError

__all__ = ["guarded_start", "refuse_import"]

_MARKER = "EDGEMILL_UNGUARDED"
"""Environment variable of worker processes while they start: the file that tells that the script has no guard."""
_ADVICE = (
    "worker processes (cluster.workers) import the script that starts them: "
    'call mine below `if __name__ == "__main__":` in it, or leave workers out'
)


def refuse_import() -> None:
    """Raises UsageError if this process is still being started, and imports a main script that calls `mine`.

    A worker process of a run ends here instead, without a word: the run that started it tells.
    """
    if not getattr(current_process(), "_inheriting", False):  # as multiprocessing itself looks for this mistake
        return
    marker = os.environ.get(_MARKER)
    if marker is None:
        raise UsageError(_ADVICE)
    with suppress(OSError):
        Path(marker).touch()
    os._exit(UsageError.exit_code)


@contextmanager
def guarded_start(folder: str | None) -> Iterator[None]:
    """While worker processes are started within the block; what they tell lies in `folder`, None for temporary files'.

    Raises UsageError if they found the script without its guard, and ClusterLost if they do not start otherwise.
    """
    with tempfile.TemporaryDirectory(prefix="edgemill-", dir=folder) as place:
        marker = Path(place) / "unguarded"
        os.environ[_MARKER] = str(marker)
        try:
            yield
        except RuntimeError as error:
            if marker.exists():
                raise UsageError(_ADVICE) from None
            raise ClusterLost(
                f"the workers could not be started ({error}); stderr may say why. "
                f"If the script does more than call mine: {_ADVICE}"
            ) from error
        finally:
            del os.environ[_MARKER]
