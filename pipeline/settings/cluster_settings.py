"""Settings of the cluster that computes."""

from __future__ import annotations

import re
from typing import Literal, Self

from pydantic import Field, model_validator

from .section import Section

_LOCAL_ONLY = (
    "workers",
    "threads_per_worker",
    "memory_limit_bytes",
    "local_directory",
    "device_memory_limit_bytes",
    "dashboard_address",
)
"""Settings of workers that the run starts; an error with a running scheduler."""


class ClusterSettings(Section):
    """The device and the Dask cluster."""

    device: Literal["auto", "cpu", "gpu"] = "auto"
    """Device that computes. `auto` is `gpu` where every worker has one, else `cpu`."""
    workers: int | None = Field(None, ge=1)
    """Worker processes to start on this machine, with `gpu` one per GPU; null: one worker inside this process."""
    protocol: Literal["tcp", "ucxx"] = "tcp"
    """Protocol between GPU workers started here. `ucxx` sends GPU to GPU over NVLink; it needs distributed-ucxx."""
    threads_per_worker: int | None = Field(None, ge=1)
    """Threads of a worker; null: an equal share of the cores, at most 16 for tasks and 48 for a kernel."""
    memory_limit_bytes: int | None = Field(None, ge=1)
    """Memory limit of a worker; null: an equal share of the memory."""
    local_directory: str | None = None
    """Spill folder on each machine, for results above a worker's memory; null: Dask's, or the temporary folder."""
    device_memory_limit_bytes: int | None = Field(None, ge=1)
    """GPU memory of a worker above which waiting results move to host memory; null: 80 % of the GPU."""
    scheduler: str | None = None
    """Address of a running Dask scheduler, such as `tcp://host:8786`."""
    scheduler_file: str | None = None
    """Scheduler file of a running Dask scheduler (`dask scheduler --scheduler-file`)."""
    least_workers: int | None = Field(None, ge=1)
    """Workers of a running cluster to wait for, up to `waiting_seconds`; null: one."""
    tls_ca_file: str | None = None
    """PEM file of the CA that signs the cluster's certificates; null: Dask's configuration."""
    tls_cert_file: str | None = None
    """PEM file of the certificate of the driver, and of workers and a scheduler started here."""
    tls_key_file: str | None = None
    """PEM file of the key of that certificate, without a password; null: the key is in `tls_cert_file`."""
    dashboard_address: str | None = None
    """`host:port` of the dashboard of a cluster started here, such as `127.0.0.1:8787`; no password; null: none."""
    silence_seconds: float = Field(60, gt=0)
    """Seconds without a heartbeat after which a worker started here is replaced and its tasks run again."""
    waiting_seconds: float = Field(300, gt=0)
    """Seconds without a scheduler that answers, or without any usable worker, after which the run ends with code 4."""

    @property
    def is_started_here(self) -> bool:
        """Whether the run starts its own cluster."""
        return self.scheduler is None and self.scheduler_file is None

    @model_validator(mode="after")
    def _check_scheduler(self) -> Self:
        if self.scheduler is not None and self.scheduler_file is not None:
            raise ValueError("cluster.scheduler and cluster.scheduler_file exclude each other: set one")
        if not self.is_started_here:
            for name in _LOCAL_ONLY:
                if getattr(self, name) is not None:
                    raise ValueError(f"cluster.{name} applies to workers started here: leave it out with a scheduler")
        return self

    @model_validator(mode="after")
    def _check_tls(self) -> Self:
        if (self.tls_ca_file is None) != (self.tls_cert_file is None):
            raise ValueError("cluster.tls_ca_file and cluster.tls_cert_file must be set together: set both or neither")
        if self.tls_key_file is not None and self.tls_cert_file is None:
            raise ValueError("cluster.tls_key_file is the key of cluster.tls_cert_file: set that too")
        if self.tls_ca_file is not None and self.protocol != "tcp":
            raise ValueError(
                f"cluster.protocol={self.protocol} is not encrypted: leave it out with cluster.tls_ca_file"
            )
        return self

    @model_validator(mode="after")
    def _check_dashboard(self) -> Self:
        address = self.dashboard_address
        if address is None:
            return self
        found = re.fullmatch(r"([\w.-]+|\[[0-9a-fA-F:]+\]):(\d{1,5})", address)
        if found is None or int(found[2]) > 65535:
            raise ValueError(
                "cluster.dashboard_address: must be host:port, such as 127.0.0.1:8787 for this machine alone, "
                f"got {address!r}"
            )
        return self
