"""The programs that edgemill brings."""

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
