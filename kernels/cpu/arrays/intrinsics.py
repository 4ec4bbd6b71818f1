"""Operations within kernels that Numba lacks, or compiles to slower code.

Atomic addition and exchange of array elements, which Numba offers on GPUs only; prefetching; words of eight bytes; bits
of 64-bit words, each as one instruction of the processor; arrays without counted references; unsigned indices; a hash
of 64-bit words.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from ...runtime.cache import cached_njit


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


@intrinsic
def load_word(typing_context: Any, array: Any, index: Any) -> Any:
    """The eight bytes from `array[index]` on as a uint64, in the order of the processor. `array` is of uint8, and need
    not be aligned.
    """

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        struct = context.make_array(sig.args[0])(context, builder, args[0])
        element = cgutils.get_item_pointer(context, builder, sig.args[0], struct, [args[1]], wraparound=False)
        return builder.load(builder.bitcast(element, ir.IntType(64).as_pointer()), align=1)

    return types.uint64(array, types.intp), codegen


@intrinsic
def popcount(typing_context: Any, word: Any) -> Any:
    """Bits set in a uint64."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), codegen


@intrinsic
def lowest_bit(typing_context: Any, word: Any) -> Any:
    """The number of the lowest bit set in a uint64, which must not be 0."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), codegen


@intrinsic
def borrowed(typing_context: Any, array: Any) -> Any:
    """The same elements as an array without an owner: a view that keeps nothing alive.

    Use this at the start of a kernel, on the arguments that Python passes: ``key = borrowed(key)``. Neither return the
    view to Python nor store it. Do not borrow an array that the kernel itself has made: nothing would keep it alive.
    """

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = context.make_array(signature.return_type)(context, builder, value=arguments[0])
        view.meminfo = cgutils.get_null_value(view.meminfo.type)
        view.parent = cgutils.get_null_value(view.parent.type)
        return view._getvalue()

    return array(array), codegen


_UNSIGNED = {4: np.uint32, 8: np.uint64}


def places(index: NDArray[Any]) -> NDArray[Any]:
    """The same int32 or int64 as unsigned integers of their size, without a copy; none may be negative.

    Numba's code compares a signed index with 0 before a read, since negative indices count from the end. With unsigned
    indices there is no comparison, and gathers from caches take half the time. A kernel must not combine signed and
    unsigned numbers in arithmetic, as the result would be a float.
    """
    return index.view(_UNSIGNED[index.dtype.itemsize])


@cached_njit(inline="always")
def mixed(word):
    """The finalizer of splitmix64 (Steele, Lea and Flood, OOPSLA 2014), a permutation of uint64. `word` is a uint64."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))
