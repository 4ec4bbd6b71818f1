"""The scripts of docs/newcomers, each in a fresh environment that has what its head says."""

from __future__ import annotations

import csv
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from itertools import combinations
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NEWCOMERS = ROOT / "docs" / "newcomers"
Run = Callable[..., str]
TEAMS = (range(1, 7), range(10, 14))
"""Everyone in a team is joined: λ is 4 and 2."""


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run a script of that name in an environment with the packages that its head names; gives what it prints."""

    def fresh(name: str, *arguments: str | Path) -> str:
        script = NEWCOMERS / name
        found = re.search(r"pip install edgemill (\w+)", script.read_text(encoding="utf-8"))
        assert found
        environment = tmp_path / "environment"
        subprocess.run([sys.executable, "-m", "venv", environment], check=True)
        python = environment / "bin" / "python"
        subprocess.run([python, "-m", "pip", "install", "--quiet", ROOT, found[1]], check=True)
        done = subprocess.run(
            [python, script, *map(str, arguments)],
            cwd=tmp_path,
            env={"PATH": f"{environment}/bin:/usr/bin:/bin", "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return fresh


def written(path: Path, header: tuple[str, str], rows: Iterable[tuple[object, object]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def teams() -> list[tuple[object, object]]:
    return [pair for team in TEAMS for pair in combinations(team, 2)]


def test_sql(run: Run, tmp_path: Path) -> None:
    bought = [(f"c{customer}", product) for team in TEAMS for customer in team for product in (team[0], team[1])]
    printed = run("from_sql.py", written(tmp_path / "purchases.csv", ("customer", "product"), bought), tmp_path)
    assert "c1, c2, c3, c4, c5, c6" in printed
    assert "c10, c11, c12, c13" in printed


def test_pandas(run: Run, tmp_path: Path) -> None:
    payments = written(tmp_path / "payments.csv", ("payer", "payee"), [*teams(), (1, 10), (1, 99)])
    run("from_pandas.py", payments, tmp_path / "features.csv")
    with (tmp_path / "features.csv").open(encoding="utf-8") as file:
        rows = {int(row["id"]): row for row in csv.DictReader(file)}
    assert {vertex: row["group_size"] for vertex, row in rows.items()} == {
        **dict.fromkeys(TEAMS[0], "6"),
        **dict.fromkeys(TEAMS[1], "4"),
        99: "",
    }
    assert rows[1]["lambda"] == "4"
    assert rows[99]["lambda"] == "0"


def test_spark(run: Run, tmp_path: Path) -> None:
    if shutil.which("java") is None:
        pytest.skip("no Java here: apt-get install openjdk-17-jre-headless")
    run("from_spark.py", written(tmp_path / "edges.csv", ("src", "dst"), [*teams(), (1, 10)]), tmp_path)
    rows = []
    for part in (tmp_path / "members").glob("*.csv"):
        with part.open(encoding="utf-8") as file:
            rows += list(csv.DictReader(file))
    assert {(int(row["vertex"]), int(row["lambda"])) for row in rows} == {
        *((vertex, 4) for vertex in TEAMS[0]),
        *((vertex, 2) for vertex in TEAMS[1]),
    }
