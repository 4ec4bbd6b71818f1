"""A nightly run with Airflow 3: copy this file into the DAGs folder; edgemill must be on the PATH of the workers."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import CronDataIntervalTimetable, Param, dag, task
from airflow.sdk.exceptions import AirflowException, AirflowFailException

COMMAND = ["edgemill", "run", "/etc/edgemill/nightly.yaml", "--date"]
NO_RETRY = {2, 3, 5}
"""Exit codes of wrong settings, bad input and limits: a retry would fail again. Others are retried and resume."""


def day_of(params: dict[str, Any], data_interval_start: datetime | None, run_after: datetime) -> str:
    """The day that a run mines: its parameter `date`, or else the UTC day on which its data interval begins.

    That is the day before the run was due, also in a backfill and in a run that is cleared later. A run that was
    triggered without a logical date has no data interval: it mines the day before it was triggered.
    """
    start = data_interval_start or run_after - timedelta(days=1)
    return params["date"] or f"{start.astimezone(UTC):%Y-%m-%d}"


@dag(
    schedule=CronDataIntervalTimetable("15 2 * * *", timezone="UTC"),
    start_date=datetime(2026, 11, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 16, "retry_delay": timedelta(minutes=15)},
    params={"date": Param(None, type=["null", "string"], format="date")},
)
def edgemill_nightly() -> None:
    """Compute λ for the edges of the day of the run, or of the parameter: `{"date": "2026-11-20"}` in a manual run."""

    @task(max_active_tis_per_dag=1)  # also of a backfill: each night continues the one before
    def mine(params: Any = None, dag_run: Any = None) -> None:
        date = day_of(params, dag_run.data_interval_start, dag_run.run_after)
        code = subprocess.run([*COMMAND, date], check=False).returncode
        if code in NO_RETRY:
            raise AirflowFailException(f"exit code {code}")
        if code:
            raise AirflowException(f"exit code {code}")

    mine()


edgemill_nightly()
