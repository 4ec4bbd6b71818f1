"""The edges of each day, with Airflow 3: copy this into the folder of DAGs; edgemill must be on the workers' PATH."""

from __future__ import annotations

import subprocess
from datetime import datetime, timedelta

from airflow.sdk import dag, task
from airflow.sdk.exceptions import AirflowException, AirflowFailException

COMMAND = ["edgemill", "run", "/etc/edgemill/nightly.yaml", "--date"]
A_PERSON_HAS_TO_LOOK = {2, 3, 5}
"""Settings, bad input, limits: the same would end the same. All else is tried again, and goes on from what was kept."""


@dag(
    schedule="15 2 * * *",
    start_date=datetime(2026, 11, 1),
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 16, "retry_delay": timedelta(minutes=15)},
    params={"date": "yesterday"},
)
def edgemill_nightly() -> None:
    """λ of the edges of the day before the start, in UTC, or of another: `{"date": "2026-11-20"}` for a run by hand."""

    @task
    def mine(date: str) -> None:
        code = subprocess.run([*COMMAND, date], check=False).returncode
        if code in A_PERSON_HAS_TO_LOOK:
            raise AirflowFailException(f"exit code {code}")
        if code:
            raise AirflowException(f"exit code {code}")

    mine("{{ params.date }}")


edgemill_nightly()
