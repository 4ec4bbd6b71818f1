"""ORC files: the same rows as from Parquet, by stripes, in a run and its check, and one message for each damage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import orc

import edgemill
import runs
from edgemill.tasks.errors import InputError
from edgemill.tasks.ids.id_types import from_internal
from edgemill.tasks.ingest.reading import count_rows, read_rows
from edgemill.tasks.inputs.formats.form import Form
from edgemill.tasks.inputs.formats.shipped import orc as orc_format
from edgemill.tasks.inputs.open_source import open_source
from edgemill.tasks.inputs.sources import Source, plan_blocks

TABLES = {
    "int64": pa.table({"src": [1, 2**53 + 1, -5, 7], "dst": [2, 3, 2**62, 7], "weight": [0.5, 1.5, 0.25, 2.0]}),
    "int32": pa.table({"weight": [1, 2], "dst": pa.array([5, 6], pa.int32()), "src": pa.array([6, 7], pa.int32())}),
    "text": pa.table({"src": ["a", "é ü"], "dst": ["b", "#c"], "weight": [0.5, 1.0]}),
}


def rows(source: Source, rows_per_block: int = 2) -> list[tuple[Any, Any]]:
    """Ids of all rows, in order."""
    found: list[tuple[Any, Any]] = []
    for block in plan_blocks(source, rows_per_block):
        own = read_rows(source, block)
        ends = [from_internal(end, source.id_type).to_pylist() for end in (own.source, own.target)]
        found += zip(*ends, strict=True)
    return found


@pytest.mark.parametrize("name", ["rows.orc", "ROWS.ORC", "part-00000", "rows.txt"])
@pytest.mark.parametrize("kind", TABLES)
def test_the_rows_of_a_file(tmp_path: Path, kind: str, name: str) -> None:
    """By its suffix, or by its first bytes."""
    table = TABLES[kind]
    orc.write_table(table, tmp_path / name, compression="zstd")
    source = open_source(str(tmp_path / name))
    expected = list(zip(table["src"].to_pylist(), table["dst"].to_pylist(), strict=True))
    assert (rows(source), source.id_type, source.format) == (expected, table.schema.field("src").type, "orc")
    assert count_rows(source) == len(table)
    wanted = open_source(str(tmp_path / name), form=Form(where="weight > 0.5"))
    weights = table["weight"].to_pylist()
    assert rows(wanted) == [row for row, weight in zip(expected, weights, strict=True) if weight > 0.5]


def test_a_file_is_read_by_stripes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orc_format, "BATCH_ROWS", 100)
    ids = np.random.default_rng(1).integers(0, 2**60, (2, 50_000))
    with orc.ORCWriter(tmp_path / "rows.orc", stripe_size=100_000, batch_size=1000) as writer:
        for start in range(0, 50_000, 5000):
            writer.write(pa.table({"src": ids[0, start : start + 5000], "dst": ids[1, start : start + 5000]}))
    source = open_source(str(tmp_path))
    (file,) = source.files
    assert len(file.row_groups) > 3 and source.rows >= 50_000
    assert len(plan_blocks(source, 10_000)) > 3
    assert rows(source, 10_000) == list(zip(*ids.tolist(), strict=True))


def test_a_run_and_its_check(tmp_path: Path) -> None:
    """Two files, one without rows, give the λ of the same rows in Parquet, and `verify` reads them again."""
    edges = [(a, b) for a in range(6) for b in range(a)] + [(5, 9)]
    table = pa.table({"src": [a for a, _ in edges], "dst": [b for _, b in edges]})
    (tmp_path / "in").mkdir()
    orc.write_table(table, tmp_path / "in" / "a.orc")
    orc.write_table(table.slice(0, 0), tmp_path / "in" / "b.orc")
    found = edgemill.mine(tmp_path / "in", tmp_path / "out", device="cpu", report=False)
    other = runs.write_rows(tmp_path / "rows.parquet", edges)
    assert found.edges.to_table().equals(edgemill.mine(other, device="cpu").edges.to_table())
    assert runs.flaws(tmp_path / "out", str(tmp_path / "in")) == []
    assert found.manifest.input.format == "orc" and found.manifest.settings["input"]["format"] == "auto"


def test_text_with_the_same_letters(tmp_path: Path) -> None:
    (tmp_path / "proteins.txt").write_text("ORC1 ORC2\nORC2 ORC3\n")
    source = open_source(str(tmp_path), form=Form(header=False))
    assert (source.format, rows(source)) == ("csv", [("ORC1", "ORC2"), ("ORC2", "ORC3")])
    orc.write_table(TABLES["text"].slice(0, 0), tmp_path / "none")
    assert open_source(str(tmp_path / "none")).format == "orc"


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    orc.write_table(TABLES["int64"], tmp_path / "whole.orc")
    content = (tmp_path / "whole.orc").read_bytes()
    (tmp_path / "cut.orc").write_bytes(content[: len(content) // 2])
    with pytest.raises(InputError, match=r"cut\.orc.*ORC"):
        open_source(str(tmp_path / "cut.orc"))
    (tmp_path / "empty.orc").write_bytes(b"")
    with pytest.raises(InputError, match=r"empty\.orc.*\(0"):
        open_source(str(tmp_path / "empty.orc"))
    with pytest.raises(InputError, match=r"'weight'.*double"):
        open_source(str(tmp_path / "whole.orc"), "src", "weight")
