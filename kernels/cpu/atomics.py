"""Atomic read-modify-write on array elements, which Numba offers on GPUs only."""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


@intrinsic
def fetch_add(typing_context: Any, array: Any, index: Any, value: Any) -> Any:
    """Add `value` to `array[index]` atomically (relaxed order); gives what stood there before.

    Numba does not see the write, so read the element in another call than the one that made the array.
    """
    signature = array.dtype(array, types.intp, array.dtype)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        struct = context.make_array(sig.args[0])(context, builder, args[0])
        place = cgutils.get_item_pointer(context, builder, sig.args[0], struct, [args[1]], wraparound=False)
        return builder.atomic_rmw("add", place, args[2], "monotonic")

    return signature, codegen
