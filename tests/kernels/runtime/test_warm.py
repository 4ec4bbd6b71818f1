"""`warm` compiles all kernels that a run calls, for all types: no stage compiles a kernel."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support_path import SUPPORT_PATH

SCRIPT = """
import os, sys
sys.path[:0] = sys.argv[4].split(os.pathsep)
import bounding, drive
from backends import kernel_types
from edgemill.kernels.runtime.warm import warm
from edgemill.tasks.generate.generate import generate
from edgemill.tasks.inputs.open_source import open_source

method, partitions, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3]

warm(method, partitions)
before = kernel_types()
generate("rmat", folder, files=2, seed=1, scale=9, edge_factor=8)
ingested = drive.ingest(open_source(folder), partitions, "hash", rows_per_block=1000)
schedules = {"peel": bounding.peeling, "band": bounding.band, "fixpoint": bounding.fixpoint}
found = schedules[method](drive.subgraphs(ingested.owned))
assert sum(int(ends.low.sum()) for ends in found) > 0
print({name: types for name, types in kernel_types().items() if types != before[name]})
"""


@pytest.mark.parametrize(
    ("method", "partitions"), [("peel", 1), ("band", 1), ("band", 3), ("fixpoint", 1), ("fixpoint", 3)]
)
def test_a_run_compiles_no_further_kernel(tmp_path: Path, method: str, partitions: int) -> None:
    found = subprocess.run(
        [sys.executable, "-c", SCRIPT, method, str(partitions), str(tmp_path / "rows"), SUPPORT_PATH],
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout == "{}\n"
