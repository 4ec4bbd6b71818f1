"""Connected components by union-find, many edges at a time, with NumPy alone. Shares no code with the kernels."""

from __future__ import annotations

import numpy as np

from .verify_triangles import Int


def find_roots(up: Int, vertices: Int) -> Int:
    """The root of each of the vertices, where up[v] is the parent of v and a root is its own parent.

    Changes `up`: each of the vertices then points at its root, and what lay on the way at its parent's parent (path
    halving; Tarjan and van Leeuwen, JACM 1984). So a path of n vertices takes about log2(n) steps if all of them ask,
    and is short for the next who asks if one does.
    """
    found = up[vertices]
    rising = np.flatnonzero(up[found] != found)
    while rising.size:
        at = found[rising]
        above = up[up[at]]
        up[at] = above
        found[rising] = above
        rising = rising[up[above] != above]
    up[vertices] = found
    return found


def join(up: Int, source: Int, target: Int) -> None:
    """Join the trees of the roots source[i] and target[i], for all i; the least vertex of a component is its root.

    Every root that has a smaller neighbour hangs itself under the smallest. After two rounds at most half of the roots
    that had any neighbour are left, so there are at most 2 log2(roots) rounds.
    """
    while (apart := np.flatnonzero(source != target)).size:
        source, target = source[apart], target[apart]
        np.minimum.at(up, np.maximum(source, target), np.minimum(source, target))
        source, target = find_roots(up, source), find_roots(up, target)
