"""Dense groups: the hierarchy of the connected components of {λ ≥ k}, and its leaves, the DN-graphs.

Each bucket finds the components of its own edges. A component is closed if it shares no vertex with another bucket; it
is then a component of the graph. The other components are open. Each bucket sends an outline of its open components.
Tasks join a few outlines at a time, and one task then finds the components of the graph. In order:

    each bucket    tree.grow_tree
    exchange 1     tree.send_outline         buckets → fewer tasks: merge.join_outlines, repeated
                                             → one task: merge.merge_outlines
    exchange 2     merge.answer_outlines     one task → buckets: groups.collect_groups
    each bucket    groups.dn_edges

Then the triangles of DN-graphs are counted, by one task if their edges fit one partition:

    exchange 3     groups.send_dn_edges      buckets → one task: groups.merge_dn_edges
    exchange 4     groups.send_sums          one task → buckets: groups.collect_triangles

An update of a result in one bucket finds components from those of the earlier result instead (`regrouping`).

An outline has a row for each open component and for each shared vertex, and none for edges. A component is identified
by its largest k and its least vertex; its id is made of these, and does not depend on the buckets.

DN-graphs are those of Wang, Zhang, Tan and Tung, "On triangulation-based dense neighborhood graph discovery",
PVLDB 2010.
"""

from .groups import (
    BucketGroups,
    DnEdgeEnds,
    DnEdges,
    SupportSums,
    collect_butterflies,
    collect_groups,
    collect_triangles,
    dn_edges,
    merge_dn_edges,
    send_dn_edges,
    send_sums,
    vertices_of_first_side,
)
from .merge import Answer, MergedOutlines, answer_outlines, join_outlines, merge_outlines
from .tree import BucketTree, EdgeLevels, Outline, grow_tree, send_outline

__all__ = [
    "Answer",
    "BucketGroups",
    "BucketTree",
    "DnEdgeEnds",
    "DnEdges",
    "EdgeLevels",
    "MergedOutlines",
    "Outline",
    "SupportSums",
    "answer_outlines",
    "collect_butterflies",
    "collect_groups",
    "collect_triangles",
    "dn_edges",
    "grow_tree",
    "join_outlines",
    "merge_dn_edges",
    "merge_outlines",
    "send_dn_edges",
    "send_outline",
    "send_sums",
    "vertices_of_first_side",
]
