"""A process that keeps freed memory takes no new pages for the next arrays."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

MEASURE = """
import resource
import sys

from edgemill.pipeline.cluster.connecting.start import keep_freed_memory

if sys.argv[1] == "kept":
    keep_freed_memory()
faults = []
for _ in range(11):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    part = b"x" * 2**26
    del part
    faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
print(faults[0], sum(faults[1:]))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library is another one")
@pytest.mark.parametrize("how", ["kept", "returned"])
def test_pages_of_freed_memory(how: str) -> None:
    """Arrays of 64 MiB. The C library by itself returns what is larger than 32 MiB."""
    done = subprocess.run([sys.executable, "-c", MEASURE, how], capture_output=True, text=True, check=True)
    first, later = map(int, done.stdout.split())
    assert (later < 2 * first) == (how == "kept")
