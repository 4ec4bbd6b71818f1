"""The vertex programs of edgemill, one module each.

Start with `components`, the shortest. May import `programs.program`, `batches.program`, `edges.program`
and NumPy only.
"""

from .betweenness import Betweenness
from .clustering import LocalClustering
from .components import Components
from .cores import Coreness
from .distances import Distances
from .hubs import Hits
from .labels import LabelPropagation
from .paths import BreadthFirst, ShortestPaths
from .ranks import PageRank
from .similarity import Similarity
from .strong import StrongComponents

__all__ = [
    "Betweenness",
    "BreadthFirst",
    "Components",
    "Coreness",
    "Distances",
    "Hits",
    "LabelPropagation",
    "LocalClustering",
    "PageRank",
    "ShortestPaths",
    "Similarity",
    "StrongComponents",
]
