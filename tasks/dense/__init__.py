"""Dense groups: the hierarchy of the connected components of {λ ≥ k}, and its leaves, the DN-graphs.

Components are found in each bucket by itself. What holds none of the vertices that other buckets have too is done;
the rest goes, as an outline, by way of tasks that join a few of them, to one, which finds how those hang together. In
order:

    every bucket   tree.grow_tree
    exchange 1     tree.send_outline         buckets → fewer tasks: merge.join_outlines, and so on
                                             → one task: merge.merge_outlines
    exchange 2     merge.answer_outlines     one task → buckets: groups.collect_groups
    every bucket   groups.dn_edges, whose triangles are counted as those of all edges were
    exchange 3     triangles.send_triangles  buckets → buckets: triangles.collect_triangles

An outline has a line for each component that reaches out of its bucket and one for each vertex it shares, and none for
edges. A component is known by its highest k and its least vertex, and numbered by these: the same in any buckets.

DN-graphs are those of Wang, Zhang, Tan and Tung, "On triangulation-based dense neighborhood graphs discovery",
PVLDB 2010.
"""

from .groups import BucketGroups, collect_groups, dn_edges
from .merge import Answer, Merged, answer_outlines, join_outlines, merge_outlines
from .tree import BucketTree, Outline, grow_tree, send_outline
from .triangles import collect_triangles, send_triangles

__all__ = [
    "Answer",
    "BucketGroups",
    "BucketTree",
    "Merged",
    "Outline",
    "answer_outlines",
    "collect_groups",
    "collect_triangles",
    "dn_edges",
    "grow_tree",
    "join_outlines",
    "merge_outlines",
    "send_outline",
    "send_triangles",
]
