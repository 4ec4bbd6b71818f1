"""Preload module of Dask workers: `dask worker … --preload edgemill.pipeline.preload`, also for `dask cuda worker`."""

from .cluster.workers.preload import dask_setup

__all__ = ["dask_setup"]
