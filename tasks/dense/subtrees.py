"""Values of components, folded over all components within them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...kernels.runtime.threads import numba_was_loaded

FEW = 2**14
"""Components for which a loop in Python takes 5 ms. To load Numba and a kernel takes 0.4 s."""


def subtree_sums(parent: NDArray[np.int32], values: NDArray[np.int64]) -> NDArray[np.int64]:
    """The sum of `values` [components] over each component and all components within it.

    Each component must have a lower number than its `parent` (-1 for none), as in `Nested`.
    """
    if _are_few(parent):
        found = values.tolist()
        for x, above in enumerate(parent.tolist()):
            if above >= 0:
                found[above] += found[x]
        return np.array(found, np.int64)
    from ...kernels.cpu.nest import subtree_sums

    return subtree_sums(parent, values)


def subtree_minima(parent: NDArray[np.int32], values: NDArray[np.int64]) -> NDArray[np.int64]:
    """The least of `values` over each component and all components within it; as `subtree_sums`."""
    if _are_few(parent):
        found = values.tolist()
        for x, above in enumerate(parent.tolist()):
            if above >= 0:
                found[above] = min(found[above], found[x])
        return np.array(found, np.int64)
    from ...kernels.cpu.nest import subtree_minima

    return subtree_minima(parent, values)


def _are_few(parent: NDArray[np.int32]) -> bool:
    """Whether kernels are not worth loading."""
    return len(parent) <= FEW and not numba_was_loaded()
