"""The notebooks of docs/notebooks run from the first cell to the last, and print what they show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "docs" / "notebooks").glob("*.ipynb"))


def printed(notebook: Any) -> list[list[str]]:
    """[code cells] the text of each output; pictures and pages are left out."""
    return [
        [out["text"] if "text" in out else out["data"]["text/plain"] for out in cell.outputs if _is_text(out)]
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def _is_text(out: Any) -> bool:
    return bool(out.get("name") == "stdout" or ("data" in out and "image/png" not in out["data"]))


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=[] if path.stem == "two-nights" else [pytest.mark.slow])
        for path in NOTEBOOKS
    ],
)
def test_a_notebook(path: Path, tmp_path: Path) -> None:
    saved = nbformat.read(path, as_version=4)
    fresh = nbformat.read(path, as_version=4)
    manager = AsyncKernelManager(transport="ipc", ip=str(tmp_path / "kernel"), kernel_name="python3")
    resources = {"metadata": {"path": str(path.parent)}}
    NotebookClient(fresh, km=manager, timeout=240, resources=resources, record_timing=False).execute()
    assert printed(fresh) == printed(saved)
    assert any(any(texts) for texts in printed(saved))


def test_from_a_frame_to_a_plot_in_six_cells() -> None:
    notebook = nbformat.read(next(path for path in NOTEBOOKS if path.stem == "groups-of-a-frame"), as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert len(cells) == 6
    assert "pd.read_parquet" in cells[0].source
    assert any("image/png" in out.get("data", {}) for cell in cells for out in cell.outputs)
