"""A full disk: exit code 7, existing files stay whole, and no partial file is left.

The disk is a file system of 3 MB in memory, mounted in its own namespace and filled up to a few pages.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from trials import Trials

MOUNT = 'mount -t tmpfs -o size=3m none "$0" && exec "$@"'
PRELUDE = """
import hashlib, json, os, sys
from pathlib import Path
from click.testing import CliRunner
from edgemill.pipeline.cli import edgemill

disk, rows, apart = map(Path, sys.argv[1:])

def run(out, *arguments):
    command = ["run", "--input", str(rows), "--output", str(out), "--device", "cpu", *arguments]
    found = CliRunner().invoke(edgemill, command)
    return found.exit_code, found.stderr

def leave(pages):
    filler, room = disk / "filler", os.statvfs(disk)
    filler.unlink(missing_ok=True)
    room = os.statvfs(disk)
    with filler.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, (room.f_bavail - pages) * room.f_frsize)

def content(folder):
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.rglob("*") if path.is_file()}
"""


@pytest.fixture(scope="module")
def name_space(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command that gives a process its own mounts."""
    told = []
    for command in (["unshare", "--mount"], ["unshare", "--mount", "--map-root-user"]):
        try:
            tried = [*command, "sh", "-c", MOUNT, str(tmp_path_factory.mktemp("disk")), "true"]
            done = subprocess.run(tried, capture_output=True, text=True)
        except FileNotFoundError as error:
            pytest.skip(f"no small disk can be mounted here: {error}")
        if not done.returncode:
            return command
        told.append(done.stderr.strip())
    pytest.skip(f"no small disk can be mounted here: {'; '.join(told)}")


def within(name_space: list[str], script: str, rows: Path, tmp_path: Path) -> Any:
    """The last output of the script, as JSON. Its `disk` is the small one, `apart` is another."""
    disk, apart = tmp_path / "disk", tmp_path / "apart"
    disk.mkdir()
    apart.mkdir()
    python = [sys.executable, "-c", PRELUDE + script, str(disk), str(rows), str(apart)]
    done = subprocess.run([*name_space, "sh", "-c", MOUNT, str(disk), *python], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert list(disk.iterdir()) == []  # the disk went with its name space
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("step", [8, pytest.param(1, marks=pytest.mark.slow)])
def test_the_output(rows: Path, name_space: list[str], tmp_path: Path, trials: Trials, step: int) -> None:
    """With some more pages each time, every write of the run fails once."""
    script = """
assert run(disk / "out")[0] == 0
before, found = content(disk / "out"), []
for pages in range(0, 64, STEP):
    leave(pages)
    code, told = run(disk / "out", "--overwrite", "--fresh")
    found.append((code, told, content(disk / "out") == before, sorted(os.listdir(disk))))
    if code == 0:
        break
print(json.dumps(found))
"""
    *failed, last = within(name_space, script.replace("STEP", str(step)), rows, tmp_path)
    assert len(failed) > 1
    for code, told, whole, left in failed:
        assert (code, whole) == (7, True), told
        assert "no room left" in told
        assert set(left) <= {"filler", "out", "out.failed.log.jsonl"}
        trials("the disk of the output is full", "refused")
    assert (last[0], last[2]) == (0, False)
    # the report is larger than the disk
    assert "report" in last[1] and "no room left" in last[1]


@pytest.mark.slow
def test_the_checkpoint(rows: Path, name_space: list[str], tmp_path: Path) -> None:
    """Each run resumes from the last one's checkpoint, which is complete."""
    script = """
def kept():
    found, named = set(), set()
    for path in (disk / "kept").rglob("*"):
        if path.suffix == ".json":
            index = json.loads(path.read_bytes().partition(b"\\n")[2])
            named |= {Path(file["url"]).name for own in index["files"].values() for file in own}
        elif path.is_file():
            found.add(path.name)
    return found == named

settings = ["checkpoint.every_seconds=0", "checkpoint.every_exchanges=1", f"checkpoint.path={disk}/kept"]
settings.append("output.report=false")
arguments = ["--partitions", "2", *(part for each in settings for part in ("--set", each))]
assert run(apart / "plain", "--partitions", "2")[0] == 0
found = []
for pages in range(0, 600, 4):
    leave(pages)
    code, told = run(apart / "out", *arguments)
    found.append((code, told, kept(), sorted(os.listdir(apart))))
    if code == 0:
        break
from edgemill.pipeline import Result
out, plain = (Result(apart / name).edges.to_table() for name in ("out", "plain"))
print(json.dumps([found, out == plain, os.listdir(disk / "kept")]))
"""
    (*failed, last), equal, left = within(name_space, script, rows, tmp_path)
    assert len(failed) > 1
    for code, told, whole, beside in failed:
        assert (code, whole) == (7, True), told
        assert "no room left for the checkpoint" in told
        assert beside == ["out.failed.log.jsonl", "plain"]
    assert (last[0], equal, left) == (0, True, [])


@pytest.mark.slow
def test_scratch(rows: Path, name_space: list[str], tmp_path: Path) -> None:
    """Dask keeps results in memory that it cannot write. The result is complete, and its log shows the attempt."""
    script = """
import logging
import dask
from distributed import Client, LocalCluster
from edgemill.pipeline import Result, mine

tried = []
class Told(logging.Handler):
    def emit(self, record):
        tried.append(record.getMessage())

logging.getLogger("distributed.spill").addHandler(Told())
limits = {"target": 1e-6, "spill": False, "pause": False}
memory = {f"distributed.worker.memory.{name}": share for name, share in limits.items()}
leave(2)
with (
    dask.config.set({**memory, "temporary-directory": str(disk)}),
    LocalCluster(n_workers=1, processes=False, threads_per_worker=2, dashboard_address=None) as cluster,
    Client(cluster) as client,
):
    out = mine(rows, apart / "out", client=client, device="cpu", partitions=2)
plain = mine(rows, apart / "plain", device="cpu", partitions=2)
print(json.dumps([tried, out.edges.to_table() == plain.edges.to_table(), os.listdir(apart)]))
"""
    tried, equal, left = within(name_space, script, rows, tmp_path)
    assert any("keeping data in memory" in told for told in tried), tried
    assert equal
    assert sorted(left) == ["out", "plain"]
