"""Imports what workers of tests import, in the process from which they are forked; see quick_starts.py."""

from __future__ import annotations

import gc
import importlib
import pkgutil

import distributed  # noqa: F401

import edgemill.pipeline.run.mining  # noqa: F401
from edgemill import tasks
from edgemill.kernels import cpu

for package in (cpu, tasks):
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if "gpu" not in module.name.split("."):
            importlib.import_module(module.name)
gc.collect()
gc.freeze()
