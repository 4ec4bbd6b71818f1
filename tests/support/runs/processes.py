"""Commands as a user starts them, each in a session of its own, all of which is ended with the test."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

DASK = (sys.executable, "-m", "dask")
EDGEMILL = (sys.executable, "-m", "edgemill.pipeline")
_ENDING_SECONDS = 20
_MOST_SECONDS = 250


@contextmanager
def started(log: Path, *words: str, **changes: str) -> Iterator[subprocess.Popen[bytes]]:
    """A command that runs meanwhile, what it prints goes to `log`; `changes` are those of the environment."""
    with log.open("wb") as file:
        process = subprocess.Popen(
            words,
            stdout=file,
            stderr=file,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **changes},
            start_new_session=True,
        )
        try:
            yield process
        finally:
            end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    """End it and all of its session, by force where asking does not do."""
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(_ENDING_SECONDS)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def ended(*words: str, **changes: str) -> subprocess.CompletedProcess[str]:
    """A command that has ended, and what it printed."""
    return subprocess.run(
        words, capture_output=True, text=True, check=False, timeout=_MOST_SECONDS, env={**os.environ, **changes}
    )
