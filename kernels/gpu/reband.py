"""One pass over the edges of a subgraph that assigns their bands and finds the first edges to remove."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from .runtime import source

_BLOCK = 256


def reband(band: Any, count: Any, start: Any, commit: Any, touched: Any, threshold: Any) -> tuple[Any, Any, Any, Any]:
    """Apply the outcome of the finished filters and start the next ones; see `kernels.reband`."""
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
