"""The walk through the code in CONTRIBUTING.md: a run of a small graph passes its stops in their order."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from tests.test_house import FOLDERS, ROOT

STOP = re.compile(r"^(\d+)\. `([a-z_/]+\.py)`: ", re.MULTILINE)
CODE = """
import json, sys, threading
root, folders, rows, out = sys.argv[1], json.loads(sys.argv[2]), *sys.argv[3:]
inside = tuple(f"{root}/{folder}/" for folder in folders)
files = {}

def is_of_product(code):
    return code.co_filename.startswith(inside)

def called(frame, event, _):
    code = frame.f_code
    if event != "call" or code.co_filename in files or not code.co_flags & 1 or not is_of_product(code):
        return  # modules and bodies of classes have no flag 1, CO_OPTIMIZED
    outer = frame
    while outer is not None:
        if outer.f_code.co_name == "<module>" and is_of_product(outer.f_code):
            return  # a decorator, or another call while a module is imported
        outer = outer.f_back
    files[code.co_filename] = None

threading.setprofile(called)
sys.setprofile(called)
import edgemill
edgemill.mine(rows, out)
sys.setprofile(None)
print(json.dumps([file.removeprefix(f"{root}/") for file in files]))
"""
"""Prints the files of the product whose functions take part in a run, in the order of their first calls."""


def test_an_edge_passes_the_stops_of_the_walk_in_their_order(tmp_path: Path) -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("**A walk: ")[2].partition("\n## ")[0]
    stops = STOP.findall(text)
    assert [int(number) for number, _ in stops] == [*range(1, 11)]
    low, high = zip(*combinations(range(6), 2), (5, 6), (6, 7), strict=True)
    pq.write_table(pa.table({"source": low, "target": high}), tmp_path / "edges.parquet")
    words = [str(ROOT), json.dumps([*FOLDERS]), str(tmp_path / "edges.parquet"), str(tmp_path / "out")]
    done = subprocess.run([sys.executable, "-c", CODE, *words], capture_output=True, text=True, check=True)
    files = json.loads(done.stdout.splitlines()[-1])
    passed = [file for _, file in stops]
    assert [file for file in files if file in passed] == passed
