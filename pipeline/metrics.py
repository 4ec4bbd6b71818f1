"""Figures of a run for Prometheus, over HTTP while it runs."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from threading import Lock
from typing import Any

from distributed import Client
from prometheus_client import CollectorRegistry, ProcessCollector, start_http_server
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    InfoMetricFamily,
    Metric,
    StateSetMetricFamily,
)
from prometheus_client.registry import Collector

from .watch import workers_of

__all__ = ["Metrics"]

_STATES = {"run_finished": "finished", "run_failed": "failed"}
_PATIENCE_SECONDS = 3
"""How long a scrape waits for the scheduler to tell of its workers; Prometheus gives up after 10 s."""

_LATEST = {
    "partitions": ("edgemill_partitions", "Partitions of the graph, or groups of shards."),
    "exchange": ("edgemill_exchange", "Number of the last exchange of banding or fixpoint rounds."),
    "step": ("edgemill_step", "Step of bounding that the last exchange was in."),
    "level": ("edgemill_level", "Level that is being peeled."),
    "open_bands": ("edgemill_open_bands", "Bands of values that still hold unsettled edges."),
    "settled": ("edgemill_settled_edges", "Edges whose lambda is known."),
    "unsettled": ("edgemill_unsettled_edges", "Edges whose lambda is not known yet."),
}
"""Field of an event of the search → the gauge that shows what it was last, there from the first time on, and what
that is."""
_OF_SEARCH = ("planned", "exchange", "level")
_SUMMED = {
    "messages": ("edgemill_messages", "Messages between partitions or groups of shards."),
    "bytes": ("edgemill_message_bytes", "Bytes of the messages between partitions or groups of shards."),
    "evaluations": ("edgemill_evaluations", "Times that an edge was looked at."),
    "seconds": ("edgemill_exchange_seconds", "Seconds that exchanges took."),
}
"""Field of an exchange → the counter that sums it up, and what that is."""


@dataclass
class _Stage:
    tasks: int
    started: float
    done: int = 0
    running: bool = True
    seconds: float = 0
    """Of all the times that it was finished."""


class Metrics(Collector):
    """Listens to a run's events and answers scrapes: names, units and types are in docs/monitoring.md.

    `client` may be set while there is one: each scrape asks its scheduler for the memory of the workers.
    """

    def __init__(self, run_id: str, started: datetime, output: str) -> None:
        self.client: Client | None = None
        self._labels = {"run_id": run_id, "version": version("edgemill"), "output": output}
        self._started = started.timestamp()
        self._ended: float | None = None
        self._state = "running"
        self._stages: dict[str, _Stage] = {}
        self._latest: dict[str, float] = {}
        self._sums = dict.fromkeys(_SUMMED, 0.0)
        self._kept = 0
        self._lock = Lock()
        self._server: Any = None

    def serve(self, host: str, port: int) -> str:
        """Answer on that port, from a thread, until `close`; gives the address. Raises OSError."""
        registry = CollectorRegistry()
        registry.register(self)
        registry.register(ProcessCollector(registry=None))  # this process, by the names that all exporters use
        self._server = start_http_server(port, host, registry)
        bound = self._server[0].server_port
        return f"http://{f'[{host}]' if ':' in host else host}:{bound}/metrics"

    def close(self) -> None:
        """Give the port back."""
        if self._server is not None:
            server, thread = self._server
            server.shutdown()
            server.server_close()
            thread.join()
            self._server = None

    def show(self, event: Mapping[str, Any]) -> None:
        """Take in what the event says."""
        with self._lock:
            if event["event"] in _OF_SEARCH:  # others use the names for other things: a logger's `level`
                self._latest |= {name: event[name] for name in _LATEST if name in event}
            match event["event"]:
                case "stage_started":
                    seconds = self._stages[event["stage"]].seconds if event["stage"] in self._stages else 0
                    self._stages[event["stage"]] = _Stage(event["tasks"], time.time(), seconds=seconds)
                case "task_done":
                    self._stages[event["stage"]].done = event["done"]
                case "stage_finished":
                    stage = self._stages[event["stage"]]
                    stage.running = False
                    stage.seconds += event["seconds"]
                case "exchange":
                    for name in _SUMMED:
                        self._sums[name] += event[name]
                case "kept":
                    self._kept += 1
                case "run_finished" | "run_failed" as name:
                    self._state, self._ended = _STATES[name], time.time()
                    for stage in self._stages.values():
                        stage.running = False

    def collect(self) -> Iterable[Metric]:
        """What a scrape gets."""
        with self._lock:
            families = [*self._run(), *self._of_stages(), *self._of_exchanges()]
        return [*families, *self._workers()]

    def _run(self) -> Iterator[Metric]:
        yield InfoMetricFamily("edgemill_run", "The run.", value=self._labels)
        states = {state: state == self._state for state in ("running", *_STATES.values())}
        yield StateSetMetricFamily("edgemill_run_state", "How the run stands.", value=states)
        yield GaugeMetricFamily("edgemill_run_start_time_seconds", "When the run began, Unix time.", self._started)
        if self._ended is not None:
            yield GaugeMetricFamily("edgemill_run_end_time_seconds", "When the run ended, Unix time.", self._ended)

    def _of_stages(self) -> Iterator[Metric]:
        def family(kind: type[Any], name: str, what: str) -> Any:
            return kind(f"edgemill_stage_{name}", what, labels=["stage"])

        running = family(GaugeMetricFamily, "running", "Whether the stage runs now; one may run within another.")
        started = family(GaugeMetricFamily, "start_time_seconds", "When the stage began last, Unix time.")
        tasks = family(GaugeMetricFamily, "tasks", "Tasks of the stage; 0 where they are not counted.")
        done = family(GaugeMetricFamily, "tasks_done", "Tasks of the stage that are done.")
        seconds = family(CounterMetricFamily, "seconds", "Seconds that the stage took, whenever it was finished.")
        for name, stage in self._stages.items():
            running.add_metric([name], float(stage.running))
            started.add_metric([name], stage.started)
            tasks.add_metric([name], stage.tasks)
            done.add_metric([name], stage.done)
            seconds.add_metric([name], stage.seconds)
        yield from (running, started, tasks, done, seconds)

    def _of_exchanges(self) -> Iterator[Metric]:
        for name, value in self._latest.items():
            metric, what = _LATEST[name]
            yield GaugeMetricFamily(metric, what, value)
        for name, total in self._sums.items():
            metric, what = _SUMMED[name]
            yield CounterMetricFamily(metric, what, total)
        yield CounterMetricFamily("edgemill_checkpoints", "Times that the search was kept.", self._kept)

    def _workers(self) -> Iterator[Metric]:
        client, workers = self.client, {}
        if client is not None:
            with suppress(Exception):  # the cluster may be going: the driver tells of that, not a scrape
                workers = workers_of(client, _PATIENCE_SECONDS)
        used = GaugeMetricFamily("edgemill_worker_memory_bytes", "Resident memory of the worker.", labels=["worker"])
        limit = GaugeMetricFamily(
            "edgemill_worker_memory_limit_bytes", "Memory that the worker may take.", labels=["worker"]
        )
        spilled = GaugeMetricFamily(
            "edgemill_worker_spilled_bytes", "Results that the worker has moved to its disk.", labels=["worker"]
        )
        for worker in workers.values():
            labels, figures = [str(worker["name"])], worker["metrics"]
            if "memory" in figures:  # one that has just come has told nothing yet
                used.add_metric(labels, figures["memory"])
                spilled.add_metric(labels, figures["spilled_bytes"]["disk"])
            if worker["memory_limit"]:
                limit.add_metric(labels, worker["memory_limit"])
        yield from (used, limit, spilled)
