"""A nightly run with Airflow 3: copy this file into the DAGs folder; edgemill must be on the PATH of the workers."""

from __future__ import annotations

import subprocess
from datetime import datetime, timedelta

from airflow.sdk import dag, task
from airflow.sdk.exceptions import AirflowException, AirflowFailException

COMMAND = ["edgemill", "run", "/etc/edgemill/nightly.yaml", "--date"]
NO_RETRY = {2, 3, 5}
"""Exit codes of wrong settings, bad input and limits: a retry would fail again. Others are retried and resume."""


@dag(
    schedule="15 2 * * *",
    start_date=datetime(2026, 11, 1),
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 16, "retry_delay": timedelta(minutes=15)},
    params={"date": "yesterday"},
)
def edgemill_nightly() -> None:
    """Compute λ for the edges of yesterday (UTC), or of the parameter: `{"date": "2026-11-20"}` in a manual run."""

    @task
    def mine(date: str) -> None:
        code = subprocess.run([*COMMAND, date], check=False).returncode
        if code in NO_RETRY:
            raise AirflowFailException(f"exit code {code}")
        if code:
            raise AirflowException(f"exit code {code}")

    mine("{{ params.date }}")


edgemill_nightly()
