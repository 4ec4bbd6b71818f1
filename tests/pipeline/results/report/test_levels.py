"""The distribution of λ in a report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from edgemill.pipeline import Result, mine
from edgemill.pipeline.report.distributions import levels
from edgemill.tasks.generate import generate


@pytest.mark.parametrize("limits", [{}, {"max_exchanges": 1}])
def test_levels_without_a_histogram_of_vertices(tmp_path: Path, limits: dict[str, int]) -> None:
    """Results of earlier releases have none: their vertices are counted from the table."""
    generate("rmat", str(tmp_path / "rows"), files=2, seed=3, scale=9, edge_factor=8)
    how: dict[str, Any] = {"method": "band", "bounding": limits}
    result = mine(tmp_path / "rows", tmp_path / "out", device="cpu", **how)
    manifest = result.manifest
    assert (manifest.lambda_high is not None) == bool(limits)
    assert manifest.lam.vertices
    earlier = manifest.model_copy(update={"lambda_low": manifest.lam.model_copy(update={"vertices": None})})
    assert levels(Result.unpublished(result.place, earlier)) == levels(result)
