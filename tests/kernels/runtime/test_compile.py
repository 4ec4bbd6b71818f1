"""Each CUDA kernel compiles for each supported compute capability. This needs no GPU."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from itertools import count
from pathlib import Path

import pytest
from cupy_backends.cuda.libs import nvrtc

from edgemill.kernels.gpu.compiling.ahead import VARIANTS
from edgemill.kernels.gpu.runtime import machine_code, source

EXTRA: dict[str, list[dict[str, int]]] = {"shards/peel": [{"SYSTEM": 1, "PROFILE": 1}]}
"""Macros of benchmarks."""
CAPABILITIES = (75, 80, 86, 89, 90, 100, 120)
QUICK = (75, 80, 120)
"""The first, the last, and both sides of each condition in the sources. The others compile the same code, and so do all
for a source without conditions: the first knows the fewest instructions.
"""


def test_all_sources_are_listed() -> None:
    folder = Path(str(files("edgemill.kernels.cuda")))
    assert {entry.relative_to(folder).as_posix() for entry in folder.rglob("*.cu")} == {f"{n}.cu" for n in VARIANTS}


def test_quick_capabilities_read_all_code() -> None:
    text = "".join(source.read(f"{name}.cu") for name in VARIANTS)
    least = {int(capability) for capability in re.findall(r"^#if __CUDA_ARCH__ >= (\d+)0$", text, re.MULTILINE)}
    assert len(re.findall("__CUDA_ARCH__", text)) == len(re.findall(r"^#if __CUDA_ARCH__ >= \d+0$", text, re.MULTILINE))
    assert "#include" not in text  # headers of others may have conditions of their own
    sides = {max(one for one in CAPABILITIES if one < border) for border in least} | least
    assert set(QUICK) == sides | {CAPABILITIES[0], CAPABILITIES[-1]}


def cases() -> Iterator[object]:
    """Sources with conditions are compiled for one of QUICK each time, in turn."""
    turns = count()
    for name in VARIANTS:
        quick = QUICK[next(turns) % len(QUICK)] if "__CUDA_ARCH__" in source.read(f"{name}.cu") else QUICK[0]
        for capability in CAPABILITIES:
            yield pytest.param(name, capability, marks=[] if capability == quick else [pytest.mark.slow])


@pytest.mark.parametrize(("name", "capability"), list(cases()))
def test_compiles(name: str, capability: int) -> None:
    for defines in [*VARIANTS[name], *EXTRA.get(name, [])]:
        program = nvrtc.createProgram(source.code(name, defines), f"{name}.cu", [], [])
        options = [*machine_code.OPTIONS, f"-arch=compute_{capability}"]
        try:
            nvrtc.compileProgram(program, options)
        except nvrtc.NVRTCError:
            pytest.fail(nvrtc.getProgramLog(program))
        finally:
            nvrtc.destroyProgram(program)
