"""Metrics of a run for Prometheus, served over HTTP while the run lasts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from importlib.metadata import version
from threading import Lock
from typing import Any

from prometheus_client import CollectorRegistry, ProcessCollector, start_http_server
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    InfoMetricFamily,
    Metric,
    StateSetMetricFamily,
)
from prometheus_client.registry import Collector

from .progress import Progress

_STATES = ("running", "finished", "failed")

_LATEST = {
    "partitions": ("edgemill_partitions", "Partitions of the graph, or shard groups."),
    "exchange": ("edgemill_exchange", "Number of the last exchange of the method band or fixpoint."),
    "step": ("edgemill_step", "Bounding step of the last exchange."),
    "level": ("edgemill_level", "Level that is being peeled."),
    "open_bands": ("edgemill_open_bands", "Bands with unsettled edges."),
    "settled": ("edgemill_settled_edges", "Edges whose lambda is known."),
    "unsettled": ("edgemill_unsettled_edges", "Edges whose lambda is not known yet."),
}
"""Field of `Progress.latest` → name and help of its gauge, which is absent until the field has a value."""
_SUMMED = {
    "messages": ("edgemill_messages", "Messages between partitions or shard groups."),
    "bytes": ("edgemill_message_bytes", "Bytes of messages between partitions or shard groups."),
    "evaluations": ("edgemill_evaluations", "Evaluations of an edge."),
    "seconds": ("edgemill_exchange_seconds", "Seconds in exchanges."),
}
"""Field of `Progress.totals` → name and help of its counter."""


class Metrics(Collector):
    """Listens to a run's events and answers scrapes. docs/monitoring.md lists the names, units and types.

    Each scrape calls `workers`, if it is set, for what the scheduler knows of each worker, by address. If the call
    raises, the scrape has no metrics of workers.
    """

    def __init__(self, run_id: str, started: datetime, output: str) -> None:
        self.workers: Callable[[], Mapping[str, Any]] | None = None
        self._labels = {"run_id": run_id, "version": version("edgemill"), "output": output}
        self._started = started.timestamp()
        self._progress = Progress()
        self._lock = Lock()
        self._server: Any = None

    def serve(self, host: str, port: int) -> str:
        """Answer on that port from a thread until `close`, and return the address. Raises OSError."""
        registry = CollectorRegistry()
        registry.register(self)
        registry.register(ProcessCollector(registry=None))  # metrics of this process under the usual names
        self._server = start_http_server(port, host, registry)
        bound = self._server[0].server_port
        return f"http://{f'[{host}]' if ':' in host else host}:{bound}/metrics"

    def close(self) -> None:
        """Release the port."""
        if self._server is not None:
            server, thread = self._server
            server.shutdown()
            server.server_close()
            thread.join()
            self._server = None

    def show(self, event: Mapping[str, Any]) -> None:
        """Update the state from the event."""
        with self._lock:
            self._progress.update(event)

    def collect(self) -> Iterable[Metric]:
        """All metrics, for one scrape."""
        with self._lock:
            families = [*self._run(), *self._stages(), *self._search()]
        return [*families, *self._workers()]

    def _run(self) -> Iterator[Metric]:
        yield InfoMetricFamily("edgemill_run", "The run.", value=self._labels)
        states = {state: state == self._progress.outcome for state in _STATES}
        yield StateSetMetricFamily("edgemill_run_state", "State of the run.", value=states)
        yield GaugeMetricFamily("edgemill_run_start_time_seconds", "Unix time of the start of the run.", self._started)
        if (ended := self._progress.ended) is not None:
            text = "Unix time of the end of the run."
            yield GaugeMetricFamily("edgemill_run_end_time_seconds", text, ended.timestamp())
        if self._progress.outcome == "failed":
            why = {"error": str(self._progress.error), "exit_code": str(self._progress.exit_code)}
            yield InfoMetricFamily("edgemill_run_failure", "Why the run failed.", value=why)

    def _stages(self) -> Iterator[Metric]:
        def family(kind: type[Any], name: str, what: str) -> Any:
            return kind(f"edgemill_stage_{name}", what, labels=["stage"])

        running = family(GaugeMetricFamily, "running", "Whether the stage is running. Stages can be nested.")
        started = family(GaugeMetricFamily, "start_time_seconds", "Unix time of the last start of the stage.")
        tasks = family(GaugeMetricFamily, "tasks", "Tasks of the stage; 0 if they are not counted.")
        done = family(GaugeMetricFamily, "tasks_done", "Finished tasks of the stage.")
        seconds = family(CounterMetricFamily, "seconds", "Seconds of the stage, summed over repetitions.")
        progress = self._progress
        for name, stage in progress.stages.items():
            running.add_metric([name], float(progress.outcome == "running" and name in progress.active))
            if stage.started is not None:
                started.add_metric([name], stage.started.timestamp())
            tasks.add_metric([name], stage.tasks)
            done.add_metric([name], stage.done)
            seconds.add_metric([name], progress.finished.get(name, 0.0))
        yield from (running, started, tasks, done, seconds)

    def _search(self) -> Iterator[Metric]:
        for field, value in self._progress.latest.items():
            name, text = _LATEST[field]
            yield GaugeMetricFamily(name, text, value)
        for field, total in self._progress.totals.items():
            name, text = _SUMMED[field]
            yield CounterMetricFamily(name, text, total)
        yield CounterMetricFamily(
            "edgemill_checkpoints", "Checkpoints of the search for lambda.", self._progress.checkpoints
        )

    def _workers(self) -> Iterator[Metric]:
        workers: Mapping[str, Any] = {}
        if (get_workers := self.workers) is not None:
            with suppress(Exception):  # the run reports a lost cluster; a scrape does not
                workers = get_workers()
        used = GaugeMetricFamily("edgemill_worker_memory_bytes", "Resident memory of the worker.", labels=["worker"])
        limit = GaugeMetricFamily(
            "edgemill_worker_memory_limit_bytes", "Memory limit of the worker.", labels=["worker"]
        )
        spilled = GaugeMetricFamily(
            "edgemill_worker_spilled_bytes", "Bytes of results that the worker has spilled to disk.", labels=["worker"]
        )
        for worker in workers.values():
            labels, figures = [str(worker["name"])], worker["metrics"]
            if "memory" in figures:  # a new worker has not reported yet
                used.add_metric(labels, figures["memory"])
                spilled.add_metric(labels, figures["spilled_bytes"]["disk"])
            if worker["memory_limit"]:
                limit.add_metric(labels, worker["memory_limit"])
        yield from (used, limit, spilled)
