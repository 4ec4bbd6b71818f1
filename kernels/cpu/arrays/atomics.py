"""Atomic addition and exchange of array elements, which Numba offers on GPUs only, and prefetching."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


@intrinsic
def fetch_add(typing_context: Any, array: Any, index: Any, value: Any) -> Any:
    """Add `value` to `array[index]` atomically (relaxed order). Returns the element's value before the addition.

    Numba does not know that the element changes: read it in another kernel than the one that created the array.
    """
    signature = array.dtype(array, types.intp, array.dtype)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        struct = context.make_array(sig.args[0])(context, builder, args[0])
        element = cgutils.get_item_pointer(context, builder, sig.args[0], struct, [args[1]], wraparound=False)
        return builder.atomic_rmw("add", element, args[2], "monotonic")

    return signature, codegen


@intrinsic
def compare_swap(typing_context: Any, array: Any, index: Any, expected: Any, value: Any) -> Any:
    """Write `value` to `array[index]` if it is `expected`, atomically (relaxed order). Returns whether.

    Elements are integers or float64; floats are compared by their bits. Numba does not know that the element changes:
    create the array in another kernel.
    """
    signature = types.boolean(array, types.intp, array.dtype, array.dtype)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        struct = context.make_array(sig.args[0])(context, builder, args[0])
        element = cgutils.get_item_pointer(context, builder, sig.args[0], struct, [args[1]], wraparound=False)
        before, after = args[2], args[3]
        if isinstance(sig.args[0].dtype, types.Float):
            bits = ir.IntType(sig.args[0].dtype.bitwidth)
            element = builder.bitcast(element, bits.as_pointer())
            before, after = builder.bitcast(before, bits), builder.bitcast(after, bits)
        return builder.extract_value(builder.cmpxchg(element, before, after, "monotonic", "monotonic"), 1)

    return signature, codegen


@intrinsic
def prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    """Fetch the cache line of `array[index]`. Affects speed only."""
    signature = types.void(array, types.intp)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        struct = context.make_array(sig.args[0])(context, builder, args[0])
        element = cgutils.get_item_pointer(context, builder, sig.args[0], struct, [args[1]], wraparound=False)
        pointer, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(function, [builder.bitcast(element, pointer), number(0), number(3), number(1)])
        return context.get_dummy_value()

    return signature, codegen
