"""SQL on the pages runs as it stands, and prints what the pages show."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

from edgemill.pipeline import diff, mine
from edgemill.tasks.publish.writing import EDGE_VALUE_COLUMNS

ROOT = Path(__file__).resolve().parents[2]
FACEBOOK = ROOT / "tests" / "graphs" / "facebook_combined.parquet"
WITHOUT_REPORT: Mapping[str, Any] = {"output.report": False}
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    with duckdb.connect() as connection:
        yield connection


def blocks(page: str) -> Iterator[tuple[str, str, str]]:
    """Language and text of each block of a page, and the text of an output that follows."""
    found = BLOCK.findall((ROOT / "docs" / page).read_text(encoding="utf-8"))
    for at, (language, text) in enumerate(found):
        after = found[at + 1] if at + 1 < len(found) else ("", "")
        yield language, text, after[1] if not after[0] and after[1].startswith("┌") else ""


def statements(text: str) -> list[str]:
    return [one for one in (part.strip() for part in re.split(r";\s*\n", text)) if one]


def test_the_page_on_groups(base: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    result = mine(FACEBOOK, "out/facebook", **WITHOUT_REPORT)
    night = tmp_path / "fewer.parquet"
    table = pq.read_table(FACEBOOK)
    pq.write_table(table.slice(0, len(table) - 1000), night)
    for date, edges in (("2026-11-21", FACEBOOK), ("2026-11-22", night)):
        mine(edges, f"results/{date}", **WITHOUT_REPORT)
    diff("results/2026-11-21", "results/2026-11-22", output="changes")
    shown = 0
    for language, text, printed in blocks("use-the-groups.md"):
        if language == "sql":
            for statement in statements(text):
                answer = base.sql(statement)
            if printed:
                assert str(answer).strip() == printed.strip()
                shown += 1
    assert shown == 2
    features = pq.read_table("features.parquet")
    assert len(features) == result.manifest.counts.vertices
    assert result.manifest.dense is not None
    assert sum(features["in_group"].to_pylist()) == result.manifest.dense.members


def test_the_page_on_programs(base: duckdb.DuckDBPyConnection) -> None:
    """The query finds the columns that the first command of the page makes."""
    found = list(blocks("programs.md"))
    [[command]] = [
        re.findall(r"^edgemill run (configs/laptop\.yaml .*?)  +#", text, re.MULTILINE) for _, text, _ in found[:1]
    ]
    (config, *options) = command.split()
    chosen = dict(zip(options[1::2], options[2::2], strict=True))
    assert (config, options[0], list(chosen)) == ("configs/laptop.yaml", "--overwrite", ["--programs"])
    mine(FACEBOOK, "out/facebook", programs=chosen["--programs"].split(","), **WITHOUT_REPORT)
    [answer] = [base.sql(one) for language, text, _ in found if language == "sql" for one in statements(text)]
    assert answer.columns == ["id", "pagerank", "label"] and len(answer.fetchall()) == 10


def test_the_page_on_frames(base: duckdb.DuckDBPyConnection) -> None:
    """Customers 1 to 5 share products 1 to 4; 6 shares two of them, and is no pair of anyone."""
    base.sql("CREATE TABLE purchases AS SELECT customer, product FROM range(1, 6) a(customer), range(1, 5) b(product)")
    base.sql("INSERT INTO purchases VALUES (6, 1), (6, 2)")
    base.sql("COPY (FROM purchases) TO 'follows.csv.gz'")
    answers = []
    for language, text, _ in blocks("from-frames.md"):
        if language == "sql":
            answers += [base.sql(statement) for statement in statements(text)]
        elif "edgemill run --input pairs.parquet" in text:
            mine("pairs.parquet", "out/pairs", **WITHOUT_REPORT)
            assert pq.read_table("out/pairs/edges")[EDGE_VALUE_COLUMNS[1]].to_pylist() == [3] * 10
    assert [row[1:] for answer in answers if answer.columns[0] == "dn_graph" for row in answer.fetchall()] == [
        (5, [1, 2, 3, 4, 5])
    ]
    assert base.sql("SELECT count(*) FROM 'follows.parquet'").fetchall() == [(22,)]
