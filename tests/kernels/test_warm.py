"""Warming compiles all that a run then calls: no kernel meets new types in the middle of a stage."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import sys
sys.path.insert(0, sys.argv[4])
import bounding, drive
from backends import kernel_types
from edgemill.kernels.warm import warm
from edgemill.tasks.generate import generate
from edgemill.tasks.sources import open_source

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
def test_a_run_compiles_nothing_more(tmp_path: Path, method: str, partitions: int) -> None:
    found = subprocess.run(
        [sys.executable, "-c", SCRIPT, method, str(partitions), str(tmp_path / "rows"), str(Path(__file__).parents[1])],
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout == "{}\n"
