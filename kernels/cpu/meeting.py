"""Words in memory that several processes share: tell others a number, and wait for theirs.

The order of memory. A group writes letters with plain stores, then its number with a *release* store; another one
reads the number with an *acquire* load, then the letters. On every machine that Numba compiles for, what was written
before the release is seen after the acquire. It holds the other way, too: a group has read the last letters before it
stores its next number, and a writer overwrites them only after it has loaded that number. Plain moves of x86 do both;
ARM has stlr and ldar. (C11, 5.1.2.4; the LLVM language reference, atomic memory ordering.)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

__all__ = ["await_change", "load", "store", "store_longs"]


def _place(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    struct = context.make_array(signature.args[0])(context, builder, arguments[0])
    return cgutils.get_item_pointer(context, builder, signature.args[0], struct, [arguments[1]], wraparound=False)


@intrinsic
def _load_acquire(typing_context: Any, array: Any, index: Any) -> Any:
    """`array[index]`, and what its writer wrote before it."""
    signature = array.dtype(array, types.intp)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.load_atomic(_place(context, builder, sig, args), "acquire", sig.args[0].dtype.bitwidth // 8)

    return signature, codegen


@intrinsic
def _store_release(typing_context: Any, array: Any, index: Any, value: Any) -> Any:
    """Make `array[index]` the `value`, after all that was written before."""
    signature = types.void(array, types.intp, array.dtype)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        place = _place(context, builder, sig, args)
        builder.store_atomic(args[2], place, "release", sig.args[0].dtype.bitwidth // 8)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def _pause(typing_context: Any) -> Any:
    """Leave the core's other thread room for a moment; no effect but on time."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        triple, number = builder.module.triple, ir.IntType(32)
        if triple.startswith("x86_64"):
            kind = ir.FunctionType(ir.VoidType(), [])
            builder.call(cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.sse2.pause"), [])
        elif triple.startswith(("aarch64", "arm64")):
            kind = ir.FunctionType(ir.VoidType(), [number])
            builder.call(cgutils.get_or_insert_function(builder.module, kind, "llvm.aarch64.hint"), [number(1)])
        return context.get_dummy_value()

    return types.void(), codegen


@njit(cache=True, nogil=True)
def load(words, at):
    """`words[at]`, a uint32, and with it what its writer wrote before."""
    return _load_acquire(words, at)


@njit(cache=True, nogil=True)
def store(words, at, value):
    """Make `words[at]`, a uint32, the `value` once all that was written before can be seen."""
    _store_release(words, at, np.uint32(value))


@njit(cache=True, nogil=True)
def store_longs(words, at, values):
    """Make the uint64 from `words[at]` on the `values`, each once all that was written before can be seen."""
    for i in range(values.size):
        _store_release(words, at + i, values[i])


@njit(cache=True, nogil=True)
def await_change(words, at, least, turns):
    """Look at `words[at]`, a uint32, until it is `least` or more, or for so many `turns`; gives it as it is then."""
    found = _load_acquire(words, at)
    while found < least and turns > 0:
        _pause()
        turns -= 1
        found = _load_acquire(words, at)
    return found
