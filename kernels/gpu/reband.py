"""One pass over all edges of a subgraph: which band they are in, and who starts to fall."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from . import source

_BLOCK = 256


def reband(band: Any, count: Any, start: Any, commit: Any, touched: Any, threshold: Any) -> tuple[Any, Any, Any, Any]:
    """Write the outcome of silent filters and start the next ones."""
    new_band, new_count, new_start = cupy.empty_like(band), cupy.empty_like(count), cupy.empty_like(start)
    falling = cupy.empty(len(band), np.bool_)
    source.kernel("reband")(
        (source.grid(len(band), _BLOCK),),
        (_BLOCK,),
        (
            band,
            count,
            start,
            cupy.asarray(commit),
            cupy.asarray(touched),
            cupy.asarray(threshold),
            np.int32(len(band)),
            new_band,
            new_count,
            new_start,
            falling,
        ),
    )
    return new_band, new_count, new_start, cupy.flatnonzero(falling).astype(np.int32)
