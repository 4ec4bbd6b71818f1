"""What a command imports for a run: without pandas, and without a search for objects that nobody needs."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.abc import MetaPathFinder

__all__ = ["light_imports"]


@contextmanager
def light_imports(leave_out: bool) -> Iterator[None]:
    """While modules are imported within the block, which nobody lets go of.

    Python searches objects for cycles while it makes many, and finds next to nothing in modules. With `leave_out` those
    that there are at the end of the block are left out until `gc.unfreeze()`.
    """
    _do_without_pandas()
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if leave_out:
            gc.freeze()
        if enabled:
            gc.enable()


def _do_without_pandas() -> None:
    """Have Arrow not import pandas, which takes a quarter of a second. For a process that gives it no frame of pandas.

    Where pandas is installed, Arrow imports it before it converts its first value, to know pandas' missing values. It
    tries once. `to_pandas()` still works.
    """
    if "pandas" in sys.modules:
        return
    absent = _Absent()
    sys.meta_path.insert(0, absent)
    try:
        import pyarrow

        pyarrow.scalar(0)
    finally:
        sys.meta_path.remove(absent)


class _Absent(MetaPathFinder):
    """Tells Python that there is no pandas."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
