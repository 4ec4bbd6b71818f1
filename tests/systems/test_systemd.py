"""A night within the restrictions of the systemd unit, as far as they can be had without systemd as the first process.

Held here: system calls, address families, capabilities, no new privileges, pseudo devices alone, and a disk that is
read-only but for the folders of the unit. Not held: its own user, namespaces, and hidden folders (`ProtectHome=`).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from edgemill.pipeline import Result
from edgemill.tasks.generate import generate
from trials import Trials

HERE = Path(__file__).resolve().parent
UNIT = HERE.parent.parent / "configs" / "nightly" / "edgemill-nightly.service"
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
CLOSED = f"""
set -e
for folder in state cache tmp dev; do mkdir -p $folder && mount --bind $folder $folder; done
mount -t tmpfs tmpfs dev
for name in {" ".join(DEVICES)}; do touch dev/$name && mount --bind /dev/$name dev/$name; done
mkdir dev/shm && mount -t tmpfs tmpfs dev/shm
mount --rbind dev /dev
mount -o remount,ro,bind /
exec setpriv --bounding-set=-all --inh-caps=-all --ambient-caps=-all --no-new-privs "$@"
"""
Confined = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def confined(tmp_path: Path) -> Confined:
    """Runs a command within the restrictions, in the folder that has `state`, `cache` and `tmp`."""
    if missing := [name for name in ("systemd-analyze", "setpriv", "unshare") if shutil.which(name) is None]:
        pytest.skip(f"not installed: {', '.join(missing)}")
    can = subprocess.run(["unshare", "--mount", "mount", "-o", "remount,ro,bind", "/"], capture_output=True)
    if can.returncode:
        pytest.skip("file systems cannot be mounted here")

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        places = {
            "XDG_CACHE_HOME": str(tmp_path / "cache"),
            "TMPDIR": str(tmp_path / "tmp"),
            "DASK_TEMPORARY_DIRECTORY": str(tmp_path / "tmp"),
        }
        filtered = [sys.executable, str(HERE / "system_calls.py"), str(UNIT), *command]
        words = ["unshare", "--mount", "sh", "-c", CLOSED, "sh", *filtered]
        return subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, env=os.environ | places)

    return run


def test_a_night(confined: Confined, tmp_path: Path, trials: Trials) -> None:
    state = tmp_path / "state"
    generate("rmat", str(state / "edges" / "2026-11-20"), files=1, seed=4, scale=8, edge_factor=8)
    (state / "edges" / "2026-11-20" / "_SUCCESS").touch()
    text = (UNIT.parent.parent / "nightly.yaml").read_text().replace("path: ", f"path: {state}/")
    (state / "nightly.yaml").write_text(text)
    command = [sys.executable, "-m", "edgemill.pipeline", "run", str(state / "nightly.yaml"), "--date", "2026-11-20"]
    small = ["--set", "input.least_rows=1", "--device", "cpu"]
    for more in ([], ["--workers", "2", "--partitions", "3", "--fresh"]):
        done = confined(*command, *small, "--verbose", *more)
        assert done.returncode == 0, done.stderr
        assert "arning" not in done.stderr
        trials("systemd: a night within the unit's restrictions", "same")
    assert Result(state / "results" / "latest").converged


@pytest.mark.parametrize(
    ("what", "tried"),
    [
        ("a file outside", "open('outside', 'w')"),
        ("a socket of another family", "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)"),
        ("a system call of the privileged", "os.chroot('/')"),
        ("a user", "os.setuid(1)"),
        ("a device", "open('/dev/kmsg')"),
    ],
)
def test_what_is_refused(confined: Confined, what: str, tried: str) -> None:
    """The restrictions hold: the test above would pass without any."""
    done = confined(sys.executable, "-c", f"import os, socket\nprint('begun')\n{tried}")
    assert done.stdout == "begun\n", done.stderr
    assert done.returncode == 1, what
    assert "Error: [Errno" in done.stderr
