"""Connected components by union-find over batches of edges, with NumPy alone. Shares no code with the kernels."""

from __future__ import annotations

import numpy as np

from .triangles import Int


def find_roots(up: Int, vertices: Int) -> Int:
    """The root of each of the vertices, where up[v] is the parent of v and a root is its own parent.

    Changes `up`: the vertices then point to their roots, and their ancestors to their grandparents (path halving;
    Tarjan and van Leeuwen, JACM 1984). A path of n vertices takes about log2(n) steps if all are looked up at once.
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
    """Join the trees with the roots source[i] and target[i], for all i. The smallest vertex of a component is its root.

    Each root with a smaller neighbour becomes a child of its smallest neighbour. Two rounds at least halve the roots
    with neighbours, so there are at most 2 log2(roots) rounds.
    """
    while (apart := np.flatnonzero(source != target)).size:
        source, target = source[apart], target[apart]
        np.minimum.at(up, np.maximum(source, target), np.minimum(source, target))
        source, target = find_roots(up, source), find_roots(up, target)
