"""The summaries of `run` and `show`, as text and as JSON according to docs/json.md."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result as Called
from rich.console import Console

import runs
from edgemill.pipeline import Result
from edgemill.pipeline.cli import edgemill
from edgemill.pipeline.cli.show import dropped_rows, groups_grid, print_ending, top_groups
from edgemill.pipeline.messages.terminal import print_whole
from edgemill.pipeline.output.manifest import Counts, Manifest
from edgemill.pipeline.queries.group_tables import IdList, dn_graphs_table
from edgemill.pipeline.queries.groups import top, with_members
from in_process import call

CLIQUES = ("abcdef", "ghijk", "lmno", "pqr")


@pytest.fixture(scope="module")
def mined(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Called]:
    """Four cliques of strings, a duplicate edge, a self-loop and a null; and the output of the run."""
    import pyarrow as pa

    folder = tmp_path_factory.mktemp("summary")
    edges = [(a * 3, b * 3) for clique in CLIQUES for a in clique for b in clique if a < b]
    rows = runs.write_rows(folder / "rows.parquet", [*edges, edges[0][::-1], ("z", "z"), ("z", None)], pa.string())
    command = ["run", "--input", str(rows), "--output", str(folder / "out"), "--device", "cpu"]
    called = call(*command, "--set", "input.nulls=drop")
    assert called.exit_code == 0, called.stderr
    return folder / "out", called


def lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines()]


def test_the_end_of_a_run(mined: tuple[Path, Called]) -> None:
    out, called = mined
    shown = lines(called.stdout)
    assert shown[4:9] == [
        "DN-graphs   4",
        "dropped     1 duplicate, 1 self-loop, 1 row with a null id",
        shown[6],
        f"output      {out}",
        f"report      {out}/report.html",
    ]
    assert shown[10] == "first 3 of 4 DN-graphs, by lambda"
    heads = [re.split(r" {2,}", line.strip()) for line in shown[11:15]]
    assert heads[0] == ["DN-graph", "lambda", "vertices", "edges", "density", "members"]
    assert [row[1:] for row in heads[1:]] == [
        ["4", "6", "15", "1.000", "aaa, bbb, ccc, ddd, eee, fff"],
        ["3", "5", "10", "1.000", "ggg, hhh, iii, jjj, kkk"],
        ["2", "4", "6", "1.000", "lll, mmm, nnn, ooo"],
    ]
    assert shown[16] == "next"
    commands = [line.split("   ")[0].split() for line in shown[17:]]
    assert [name for _, name, *_ in commands] == ["show", "top", "members", "explore"]
    for _, name, *more in commands:
        assert edgemill.commands[name].make_context(name, list(more)).params["out"] == str(out)
    assert call(*commands[2][1:]).exit_code == 0


def test_show_leads_with_groups(mined: tuple[Path, Called]) -> None:
    out, _ = mined
    shown = lines(call("show", out).stdout)
    assert shown[0] == "the 4 DN-graphs"
    assert shown[2].endswith("aaa, bbb, ccc, ddd, eee, fff")
    assert not {"partitions", "bounding", "stages"} & set(shown)
    assert not re.search("evaluations|exchanges", "\n".join(shown))
    detailed = lines(call("show", out, "--detail").stdout)
    assert detailed[:6] == shown[:6]
    assert {"partitions", "bounding", "stages"} <= set(detailed)


def keys_of(value: Any, prefix: str = "") -> set[str]:
    """Keys of a document and its nested objects, except in copies of the manifest."""
    match value:
        case dict():
            found = set()
            for name, inner in value.items():
                found |= {f"{prefix}{name}"} | keys_of(inner, f"{prefix}{name}.")
            return found
        case [dict() as first, *_]:
            return keys_of(first, f"{prefix.removesuffix('.')}[].")
    return set()


def documented(pytestconfig: pytest.Config, command: str) -> set[str]:
    """Keys in the table of the command on the page."""
    page = (pytestconfig.rootpath / "docs/json.md").read_text(encoding="utf-8")
    part = page.partition(f"\n## `{command}`")[2].partition("\n## ")[0]
    return {key for row in re.findall(r"^\| (`.*?`) \|", part, re.MULTILINE) for key in re.findall(r"`([^`]+)`", row)}


def test_keys_of_run_and_show(mined: tuple[Path, Called], pytestconfig: pytest.Config) -> None:
    out, _ = mined
    rows = out.parent / "rows.parquet"
    again = call("run", "--input", rows, "--output", out, "--set", "input.nulls=drop", "--device", "cpu", "--json")
    run = json.loads(again.stdout)
    assert (again.exit_code, again.stderr, again.stdout.count("\n")) == (0, "", 1)
    assert (run["nothing_to_do"], run["exit_code"], run["warnings"], run["removed"]) == (True, 0, [], [])
    show = json.loads(call("show", out, "--json").stdout)
    assert run.keys() - show.keys() == {"nothing_to_do", "night", "removed", "warnings"}
    assert (run["result"], run["report"]) == (str(out), f"{out}/report.html")
    assert len(run["groups"]) == 3
    assert [group["first_members"][0] for group in show["groups"]] == ["aaa", "ggg", "lll", "ppp"]
    assert show["counts"]["nulls_dropped"] == 1
    assert show["lambda"]["histogram"] == [[1, 3], [2, 6], [3, 10], [4, 15]]
    told = documented(pytestconfig, "run") | documented(pytestconfig, "show")
    assert keys_of(run) | keys_of(show) | {"error", "groups[].first_labels"} == told
    detail = json.loads(call("show", out, "--json", "--detail").stdout)
    manifest = set(Result(out).manifest.model_dump(by_alias=True))
    assert detail.keys() == show.keys() | (manifest - {"outputs", "format", "format_version"})


def test_keys_of_plan_and_verify(mined: tuple[Path, Called], pytestconfig: pytest.Config) -> None:
    out, _ = mined
    rows = out.parent / "rows.parquet"
    called = call("plan", "--input", rows, "--output", out.parent / "x", "--json", "--device", "cpu")
    plan = json.loads(called.stdout)
    assert (called.exit_code, plan["exit_code"], plan["fits"], plan["partitions"]) == (0, 0, True, 1)
    assert plan["input"]["rows"] == 37
    of_update = {f"update.{name}" for name in ("base", "way", "reason", "inserted", "deleted", "expected_work")}
    assert plan["update"] is None
    assert keys_of(plan) | of_update | {"error"} == documented(pytestconfig, "plan")
    verify = json.loads(call("verify", out, "--json").stdout)
    assert verify["ok"] and all(check["ok"] for check in verify["checks"])
    assert keys_of(verify) | {"error"} == documented(pytestconfig, "verify")


def test_a_plan_that_cannot_fit_is_one_document(mined: tuple[Path, Called]) -> None:
    rows = mined[0].parent / "rows.parquet"
    tiny = ("--workers", "1", "--set", "cluster.memory_limit_bytes=1000000")
    called = call("plan", "--input", rows, "--output", "x", "--device", "cpu", *tiny, "--json")
    plan = json.loads(called.stdout)
    assert called.exit_code == plan["exit_code"] == 7
    assert "give workers" in plan["error"]
    assert "--set cluster.memory_limit_bytes=…" in called.stderr


def test_a_wrong_result_is_one_document(tmp_path: Path, mined: tuple[Path, Called]) -> None:
    import shutil

    shutil.copytree(mined[0], tmp_path / "out")
    file = next((tmp_path / "out/edges").iterdir())
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    called = call("verify", tmp_path / "out", "--json")
    found = json.loads(called.stdout)
    assert (called.exit_code, found["exit_code"], found["ok"]) == (1, 1, False)
    assert called.stderr == f"Error: {found['error']}\n"


@pytest.mark.parametrize("width", [40, 80, 120])
def test_members_fit_the_width_and_are_whole(mined: tuple[Path, Called], width: int) -> None:
    groups = top_groups(Result(mined[0]), 4, 8)
    written = io.StringIO()
    print_whole(Console(width=width, file=written), groups_grid(groups))
    for line, clique in zip(lines(written.getvalue())[1:], CLIQUES, strict=True):
        ids = line.split("1.000")[1].strip().removesuffix(", …").split(", ")
        assert ids == [one * 3 for one in clique][: len(ids)]
        assert (len(ids) < len(clique)) is line.endswith("…")


@pytest.mark.parametrize("width", [72, 80, 120])
def test_top_is_a_line_for_each_group(mined: tuple[Path, Called], width: int) -> None:
    result = Result(mined[0])
    rows = list(with_members(result, top(result, count=4).to_pylist(), 3))
    written = io.StringIO()
    print_whole(Console(width=width, file=written), dn_graphs_table(rows, fits=True))
    head, *body = lines(written.getvalue())
    assert len(body) == len(rows) == 4 and max(map(len, body)) <= max(width, len(head))
    for line, row in zip(body, rows, strict=True):
        ids = line[head.index("members") :].strip().removesuffix(", …").split(", ")
        assert ids == [str(one) for one in row["members"]][: len(ids)]


def test_names() -> None:
    assert IdList([1, 2, 3], 3).fitting(7) == "1, 2, 3"
    assert IdList([1, 2, 3], 4).fitting(6) == "1, …"
    assert IdList([1, 2, 3], 4).fitting(10) == "1, 2, 3, …"
    assert IdList(["x" * 99], 1).fitting(0) == "x" * 23 + "…"
    assert IdList(["two\nlines", "b"], 2).fitting(99) == r"two\x0alines, b"


def test_rows_that_are_dropped() -> None:
    counts = Counts(rows=9, self_loops=0, duplicates=2000, nulls_dropped=2, edges=1, vertices=2, triangles=0)
    assert dropped_rows(counts) == "2,000 duplicates, 2 rows with a null id"


def test_a_name_that_the_shell_would_split(tmp_path: Path, mined: tuple[Path, Called]) -> None:
    written = io.StringIO()
    manifest: Manifest = Result(mined[0]).manifest
    print_ending(manifest, "/x", None, [], [], "my out", Console(width=80, file=written))
    assert "'my out'" in written.getvalue()
