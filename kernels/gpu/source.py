"""CUDA sources from files: read once, compiled once in a process for each device."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import cupy

OPTIONS = ("-std=c++17",)
_STATIC_BYTES = 2**12
"""Of shared memory that a kernel declares, at most."""
_INCLUDE = re.compile(r'^#include "([\w/]+\.cuh)"$', re.MULTILINE)


@cache
def read(name: str) -> str:
    """A source with its headers put in, each once, so that CuPy's cache of compiled kernels sees all of it."""
    seen: set[str] = set()

    def put_in(match: re.Match[str]) -> str:
        header = match[1]
        if header in seen:
            return ""
        seen.add(header)
        return _INCLUDE.sub(put_in, _text(header))

    return _INCLUDE.sub(put_in, _text(name)).replace("#pragma once\n", "")


def _text(name: str) -> str:
    return files("edgemill.kernels.cuda").joinpath(name).read_text()


def definitions(defines: Mapping[str, int]) -> list[str]:
    """Options of the compiler that define macros."""
    return [f"-D{key}={value}" for key, value in defines.items()]


@cache
def _module(name: str, defines: tuple[tuple[str, int], ...], cooperative: bool, device: int) -> Any:
    options = (*OPTIONS, *definitions(dict(defines)))
    return cupy.RawModule(code=read(name), options=options, enable_cooperative_groups=cooperative)


@cache
def _function(name: str, defines: tuple[tuple[str, int], ...], cooperative: bool, device: int) -> Any:
    return _module(f"{name.partition(':')[0]}.cu", defines, cooperative, device).get_function(name.rpartition(":")[2])


def kernel(name: str, *, cooperative: bool = False, **defines: int) -> Any:
    """The kernel `function` of `file.cu`, named "file:function" (or "file" for both), for the current device."""
    return _function(name, tuple(sorted(defines.items())), cooperative, cupy.cuda.runtime.getDevice())


@cache
def processors(device: int) -> int:
    """Multiprocessors of a device."""
    return int(cupy.cuda.runtime.deviceGetAttribute(cupy.cuda.runtime.cudaDevAttrMultiProcessorCount, device))


@cache
def _most_shared(device: int) -> int:
    attribute = cupy.cuda.runtime.cudaDevAttrMaxSharedMemoryPerBlockOptin
    return int(cupy.cuda.runtime.deviceGetAttribute(attribute, device)) - _STATIC_BYTES


def most_shared() -> int:
    """Bytes of dynamic shared memory that a block may have on the current device, beside what kernels declare."""
    return _most_shared(cupy.cuda.runtime.getDevice())


def grid(items: int, block: int, blocks_per_processor: int = 8) -> int:
    """Blocks for a kernel whose threads stride over `items`."""
    most = processors(cupy.cuda.runtime.getDevice()) * blocks_per_processor
    return max(1, min(most, -(-items // block)))


@cache
def _resident(kernel: Any, block: int, shared: int, device: int) -> int:
    kernel.max_dynamic_shared_size_bytes = shared
    each = cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(kernel.kernel.ptr, block, shared)
    return int(each) * processors(device)


def resident(kernel: Any, block: int, shared: int) -> int:
    """Blocks of a cooperative kernel that run at once, with `shared` bytes of dynamic shared memory each."""
    return _resident(kernel, block, shared, cupy.cuda.runtime.getDevice())
