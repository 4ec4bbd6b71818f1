"""What `edgemill run` loads, and what it leaves to be searched as it ends: most of a short run is its start and end."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from in_process import call

RUN = """
import gc, json, sys
from edgemill.pipeline.cli import main

try:
    main()
except SystemExit as end:
    code = end.code
loaded = sorted(sys.modules)
import pandas, pyarrow  # what the run did without still works

frame = pyarrow.table({"a": [1, 2]}).to_pandas()
whole = [int(frame["a"].sum()), pyarrow.Table.from_pandas(frame).num_rows]
left_out = gc.get_freeze_count()
print(json.dumps({"code": code, "loaded": loaded, "left_out": left_out, "collects": gc.isenabled(), "pandas": whole}))
"""


def ending_of_a_run(folder: Path) -> dict[str, Any]:
    """How the process of a run ends that writes into `folder`."""
    edges = folder.parent / "edges.parquet"
    pq.write_table(pa.table({"a": [0, 0, 1, 2], "b": [1, 2, 2, 3]}), edges)
    done = subprocess.run(
        [sys.executable, "-c", RUN, "run", "--input", edges, "--output", folder, "--device", "cpu"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    ending: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return ending


def test_a_run_loads_what_it_needs(tmp_path: Path) -> None:
    ending_of_a_run(tmp_path / "first")  # which may have to compile kernels, and then Numba loads more
    ending = ending_of_a_run(tmp_path / "second")
    assert ending["code"] == 0
    loaded = set(ending["loaded"])
    assert {"numba", "pyarrow", "distributed"} <= loaded
    # Arrow loads pandas if it can. Numba loads the others to compile, and with them scipy.linalg, if that is installed.
    assert not loaded & {"pandas", "numba.np.linalg", "numba.typed.typeddict", "scipy.linalg"}
    assert ending["pandas"] == [3, 2]


@pytest.mark.slow
def test_a_run_leaves_little_to_search_at_its_end(tmp_path: Path) -> None:
    ending = ending_of_a_run(tmp_path / "out")
    assert ending["collects"]
    assert ending["left_out"] > 100_000  # nearly all that a run makes


def run_in_this_process(folder: Path) -> None:
    """The command; its input is not there, so it ends when it has loaded what it needs."""
    assert call("run", "--input", str(folder / "none"), "--output", str(folder)).exit_code
    assert gc.isenabled()


def test_a_process_that_goes_on_searches_all_objects_again(tmp_path: Path) -> None:
    gc.unfreeze()
    try:
        run_in_this_process(tmp_path)
        assert gc.get_freeze_count() == 0
    finally:
        gc.freeze()  # as tests/conftest.py has it


def test_a_process_that_leaves_out_objects_itself_chooses_them(tmp_path: Path) -> None:
    left_out: list[None] = []
    gc.freeze()
    searched: list[None] = []
    run_in_this_process(tmp_path)
    assert [found is searched for found in gc.get_objects() if found is left_out or found is searched] == [True]
