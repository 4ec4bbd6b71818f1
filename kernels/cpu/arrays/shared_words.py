"""Acquire loads and release stores on words in memory that several processes share, and spinning on such a word.

A sender writes its packet with plain stores and then the number of the exchange with a *release* store. A receiver
reads the number with an *acquire* load and then the packet. Everything written before the release is visible after the
acquire, on every machine that Numba compiles for. The reverse holds as well: a receiver has read a packet before it
stores its own next number, and the sender overwrites the packet only after it has loaded that number. Plain moves of
x86 have both orders; ARM has stlr and ldar. (C11, 5.1.2.4; the LLVM language reference, atomic memory ordering.)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from ...runtime.cache import cached_njit


def _pointer(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    struct = context.make_array(signature.args[0])(context, builder, arguments[0])
    return cgutils.get_item_pointer(context, builder, signature.args[0], struct, [arguments[1]], wraparound=False)


@intrinsic
def _load_acquire(typing_context: Any, array: Any, index: Any) -> Any:
    """Load `array[index]` with acquire order."""
    signature = array.dtype(array, types.intp)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.load_atomic(_pointer(context, builder, sig, args), "acquire", sig.args[0].dtype.bitwidth // 8)

    return signature, codegen


@intrinsic
def _store_release(typing_context: Any, array: Any, index: Any, value: Any) -> Any:
    """Store `value` in `array[index]` with release order."""
    signature = types.void(array, types.intp, array.dtype)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        pointer = _pointer(context, builder, sig, args)
        builder.store_atomic(args[2], pointer, "release", sig.args[0].dtype.bitwidth // 8)
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def _pause(typing_context: Any) -> Any:
    """Hint to the core that this thread spins. Has no effect on results."""

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


@cached_njit
def load_acquire(words, at):
    """`words[at]`, a uint32; everything its writer stored before is visible afterwards."""
    return _load_acquire(words, at)


@cached_njit
def store_release(words, at, value):
    """Store the uint32 `value` in `words[at]`, after everything stored before has become visible."""
    _store_release(words, at, np.uint32(value))


@cached_njit
def store_release_longs(words, at, values):
    """Store the uint64 `values` from `words[at]` on, each after everything stored before has become visible."""
    for i in range(values.size):
        _store_release(words, at + i, values[i])


@cached_njit
def spin_until_at_least(words, at, least, turns):
    """Load `words[at]`, a uint32, until it is at least `least`, or `turns` times; returns the last value."""
    found = _load_acquire(words, at)
    while found < least and turns > 0:
        _pause()
        turns -= 1
        found = _load_acquire(words, at)
    return found
