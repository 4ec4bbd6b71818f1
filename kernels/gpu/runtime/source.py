"""CUDA sources from files: each is read once, and compiled once in a process for each device and set of macros."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import cupy

from . import machine_code
from .constants import BY_FILE, EVERY_FILE

_STATIC_BYTES = 2**12
"""Upper bound of the bytes of shared memory that a kernel declares statically."""
_INCLUDE = re.compile(r'^#include "([\w/]+\.cuh)"$', re.MULTILINE)


@cache
def read(name: str) -> str:
    """The source `name` with each of its headers inserted once. CuPy's cache of compiled kernels then depends on all of
    the text.
    """
    seen: set[str] = set()

    def insert(match: re.Match[str]) -> str:
        header = match[1]
        if header in seen:
            return ""
        seen.add(header)
        return _INCLUDE.sub(insert, _text(header))

    return _INCLUDE.sub(insert, _text(name)).replace("#pragma once\n", "")


def _text(name: str) -> str:
    return files("edgemill.kernels.cuda").joinpath(name).read_text()


def code(file: str, defines: Mapping[str, int]) -> str:
    """The source "folder/file" after its macros: shared constants, and `defines`, which override them.

    The compiler's options could define macros, but CuPy calls the compiler once for each set of options, even for
    kernels in its cache: 10 to 20 ms.
    """
    macros = {**EVERY_FILE, **BY_FILE.get(file, {}), **dict(sorted(defines.items()))}
    return "".join(f"#define {key} {value}\n" for key, value in macros.items()) + read(f"{file}.cu")


@cache
def _module(file: str, defines: tuple[tuple[str, int], ...], cooperative: bool, device: int) -> Any:
    text = code(file, dict(defines))
    kept = machine_code.find(text, int(cupy.cuda.Device(device).compute_capability))
    compiled = {"code": text, "options": machine_code.OPTIONS} if kept is None else {"path": str(kept)}
    return cupy.RawModule(**compiled, enable_cooperative_groups=cooperative)


@cache
def _function(name: str, defines: tuple[tuple[str, int], ...], cooperative: bool, device: int) -> Any:
    file, _, function = name.partition(":")
    return _module(file, defines, cooperative, device).get_function(function or file.rpartition("/")[2])


def kernel(name: str, *, cooperative: bool = False, **defines: int) -> Any:
    """The kernel "folder/file:function" for the current device, compiled with the macros `defines`.

    Without ":function" the function has the name of the file.
    """
    return _function(name, tuple(sorted(defines.items())), cooperative, cupy.cuda.runtime.getDevice())


@cache
def processors(device: int) -> int:
    """Number of multiprocessors of a device."""
    return int(cupy.cuda.runtime.deviceGetAttribute(cupy.cuda.runtime.cudaDevAttrMultiProcessorCount, device))


@cache
def _max_shared(device: int) -> int:
    attribute = cupy.cuda.runtime.cudaDevAttrMaxSharedMemoryPerBlockOptin
    return int(cupy.cuda.runtime.deviceGetAttribute(attribute, device)) - _STATIC_BYTES


def max_shared() -> int:
    """Bytes of dynamic shared memory that a block may use on the current device, beside static shared memory."""
    return _max_shared(cupy.cuda.runtime.getDevice())


def grid(items: int, block: int, blocks_per_processor: int = 8) -> int:
    """Number of blocks for a kernel whose threads stride over `items`."""
    most = processors(cupy.cuda.runtime.getDevice()) * blocks_per_processor
    return max(1, min(most, -(-items // block)))


@cache
def _resident(kernel: Any, block: int, shared: int, device: int) -> int:
    kernel.max_dynamic_shared_size_bytes = shared
    each = cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(kernel.kernel.ptr, block, shared)
    return int(each) * processors(device)


def resident(kernel: Any, block: int, shared: int) -> int:
    """Number of blocks of a cooperative kernel that run at once, with `shared` bytes of dynamic shared memory each."""
    return _resident(kernel, block, shared, cupy.cuda.runtime.getDevice())
