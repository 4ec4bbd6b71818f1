"""A nightly run with Prefect 3: `python prefect_flow.py` serves it; edgemill must be on the PATH."""

from __future__ import annotations

import subprocess
from datetime import UTC, timedelta
from typing import Any

from prefect import flow, runtime, task
from prefect.schedules import Cron

COMMAND = ["edgemill", "run", "/etc/edgemill/nightly.yaml", "--date"]
NO_RETRY = {2, 3, 5}
"""Exit codes of wrong settings, bad input and limits: a retry would fail again. Others are retried and resume."""


def is_retryable(task: Any, run: Any, state: Any) -> bool:
    """Whether a retry of the command may succeed."""
    error = state.result(raise_on_failure=False)
    return not (isinstance(error, subprocess.CalledProcessError) and error.returncode in NO_RETRY)


@task(retries=16, retry_delay_seconds=900, retry_condition_fn=is_retryable)
def mine(date: str) -> None:
    """Compute λ for the edges of one day."""
    subprocess.run([*COMMAND, date], check=True)


@flow(name="edgemill-nightly")
def edgemill_nightly(date: str | None = None) -> None:
    """Compute λ for the edges of the given day, or of the day before the run was due (UTC).

    A run that starts late, or is retried later, keeps the time at which it was due.
    """
    due = runtime.flow_run.scheduled_start_time.astimezone(UTC)
    mine(date or f"{due - timedelta(days=1):%Y-%m-%d}")


if __name__ == "__main__":
    edgemill_nightly.serve(name="nightly", schedule=Cron("15 2 * * *", timezone="UTC"), limit=1)
