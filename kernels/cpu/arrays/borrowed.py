"""Arrays that a kernel borrows from its caller: Numba does not count references to them.

Numba counts the references to each array, with an atomic addition for each variable that holds it. In loops of small
steps over many arrays that is most of the time. The caller of a kernel holds its arrays until the kernel returns, so
the kernel need not count.
"""

from __future__ import annotations

from typing import Any

from numba.core import cgutils
from numba.extending import intrinsic


@intrinsic
def borrowed(typing_context: Any, array: Any) -> Any:
    """The same elements as an array without an owner: a view that keeps nothing alive.

    Use it at the start of a kernel, on the arguments that Python passes: ``key = borrowed(key)``. Neither return such
    an array to Python nor store it, and do not borrow an array that the kernel itself has made: nothing would keep it.
    """

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = context.make_array(signature.return_type)(context, builder, value=arguments[0])
        view.meminfo = cgutils.get_null_value(view.meminfo.type)
        view.parent = cgutils.get_null_value(view.parent.type)
        return view._getvalue()

    return array(array), codegen
