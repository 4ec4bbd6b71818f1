"""Dense groups in very large graphs: λ of every edge, exactly.

>>> import edgemill
>>> result = edgemill.mine("edges.parquet", "out")
>>> result.edges.to_table()
>>> edgemill.pagerank("edges.parquet", damping=0.9).to_pandas()

The public names are those of `edgemill.pipeline`, and `run`. Each is loaded at its first use, so that `import edgemill`
is fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import pipeline
from .pipeline import __all__ as __all__

if TYPE_CHECKING:  # the same names, for type checkers, editors and the documentation
    from .pipeline import *  # noqa: F403
    from .pipeline.calls.running import run as run

    __all__ += ["run"]
else:  # hidden from type checkers, which would accept any name
    __all__ = sorted([*__all__, "run"])

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        if name == "run":  # in `edgemill.pipeline` it is the name of a room
            from .pipeline.calls.running import run as value
        else:
            value = getattr(pipeline, name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted(__all__)
