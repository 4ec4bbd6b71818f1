"""The vertex programs of edgemill, one module each.

Start with `components`, the shortest. May import `programs.program` and NumPy only.
"""

from .clustering import LocalClustering
from .components import Components
from .cores import Coreness
from .labels import LabelPropagation
from .paths import BreadthFirst, ShortestPaths
from .ranks import PageRank

__all__ = [
    "BreadthFirst",
    "Components",
    "Coreness",
    "LabelPropagation",
    "LocalClustering",
    "PageRank",
    "ShortestPaths",
]
