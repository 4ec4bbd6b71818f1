"""The declared columns of the table of edges, from supports and bounds that a test has computed."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa

from edgemill.tasks.publish.result_columns import edge_columns


def edge_values(
    support: Sequence[int], low: Sequence[int], high: Sequence[int] | None = None
) -> dict[str, tuple[pa.DataType, list[Any]]]:
    """Name → type and values [edges], as in a result with exact λ, or with intervals if `high` is given."""
    bounds = [np.array(bound, np.int32) for bound in (low, low if high is None else high)]
    numbers: Any = SimpleNamespace(support=np.array(support, np.int32), low=bounds[0], high=bounds[1])
    return {own.name: (pa.type_for_alias(own.type), own.value(numbers).tolist()) for own in edge_columns(high is None)}
