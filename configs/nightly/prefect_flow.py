"""The edges of each day, with Prefect 3: `python prefect_flow.py` serves it, where edgemill is on the PATH."""

from __future__ import annotations

import subprocess
from typing import Any

from prefect import flow, task

COMMAND = ["edgemill", "run", "/etc/edgemill/nightly.yaml", "--date"]
A_PERSON_HAS_TO_LOOK = {2, 3, 5}
"""Settings, bad input, limits: the same would end the same. All else is tried again, and goes on from what was kept."""


def worth_a_retry(task: Any, run: Any, state: Any) -> bool:
    """Whether the command may end otherwise later."""
    error = state.result(raise_on_failure=False)
    return not (isinstance(error, subprocess.CalledProcessError) and error.returncode in A_PERSON_HAS_TO_LOOK)


@task(retries=16, retry_delay_seconds=900, retry_condition_fn=worth_a_retry)
def mine(date: str) -> None:
    """λ of the edges of a day."""
    subprocess.run([*COMMAND, date], check=True)


@flow(name="edgemill-nightly")
def edgemill_nightly(date: str = "yesterday") -> None:
    """λ of the edges of the day before the start, in UTC, or of the given one."""
    mine(date)


if __name__ == "__main__":
    edgemill_nightly.serve(name="nightly", cron="15 2 * * *", limit=1)
