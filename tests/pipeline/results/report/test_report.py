"""report.html: its content equals the result, for any result, and it loads nothing from the network."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable
from functools import partial
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from distributed import Client

import runs
from chromium import chromium
from chromium import page as tab_of
from edgemill.pipeline import Result, mine
from edgemill.pipeline.output.manifest import (
    BoundingRecord,
    Counts,
    ExchangeRecord,
    InputFile,
    InputRecord,
    LambdaRecord,
    Manifest,
    PartitionRecord,
    ShardsRecord,
    StageRecord,
)
from edgemill.pipeline.report import graph_sections
from edgemill.pipeline.report.hierarchy import upper
from edgemill.pipeline.report.page import page
from edgemill.pipeline.report.parts import duration
from edgemill.tasks.generate import generate
from edgemill.tasks.verify.result import verify
from known_graphs import FACEBOOK
from made import made
from pages import Shown, read_page

WriteResult = Callable[..., Manifest]
Mine = Callable[..., Result]

WITH_REPORT: dict[str, Any] = {"output.report": True}
HOSTILE = "</script><img src=x onerror=alert(1)>{{ 7 * 7 }}'\"&amp;"

SHARDS = ShardsRecord(
    **dict.fromkeys(("shards", "groups", "exchanges", "rounds", "alarms", "reports", "grants", "bytes"), 3),
    carrier="dask",
    busiest=1.5,
)


def shown(path: Path) -> Shown:
    return read_page(path.read_text("utf-8"))


def whole(cell: str) -> int:
    return int(cell.replace(",", ""))


def log(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (result.path / "log.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def facebook(client: Client, tmp_path_factory: pytest.TempPathFactory) -> Result:
    """A result with a report, made by the halving of bands."""
    return mine(FACEBOOK, tmp_path_factory.mktemp("facebook") / "out", client=client, method="band")


@pytest.fixture(scope="module")
def report(facebook: Result) -> Shown:
    return shown(facebook.path / "report.html")


def test_a_run_writes_its_report(facebook: Result, report: Shown) -> None:
    manifest = facebook.manifest
    assert report.headings[0] == ("h1", "out")
    assert str(facebook.path) in report.text
    assert f"Run {manifest.run}, finished" in report.text
    assert "Converged: λ of every edge is exact." in report.text
    assert "report.html" not in {output.path for output in manifest.outputs}
    assert verify(facebook.path).ok
    *_, written, last = log(facebook)
    assert (written["event"], last["event"]) == ("report_written", "run_finished")
    assert written["bytes"] == (facebook.path / "report.html").stat().st_size < 2_000_000
    assert sorted(path.name for path in facebook.path.iterdir() if path.name.startswith((".", "report"))) == [
        "report.html"
    ]


def test_lambda_and_trusses(facebook: Result, report: Shown) -> None:
    lam = facebook.edges.to_table()["lambda"].to_numpy()
    vertices = facebook.vertices.to_table()["lambda"].to_numpy()
    [caption] = [caption for caption in report.tables if caption.startswith("Edges by λ")]
    header, *rows = report.tables[caption]
    assert header == ["λ", "edges", "edges with λ at least", "of all", "their vertices"]
    assert len(rows) == 32
    after = -1
    for name, *cells in rows:
        first, last = (int(end) for end in (name.split("-") * 2)[:2])
        assert first == after + 1
        after = last
        edges, above, vertices_above = (whole(cells[at]) for at in (0, 1, 3))
        assert edges == int(((lam >= first) & (lam <= last)).sum())
        assert (above, vertices_above) == (int((lam >= first).sum()), int((vertices >= first).sum()))
        assert cells[2] == f"{above / lam.size:.1%}"
    assert after == lam.max()


def test_sections_about_the_run(facebook: Result, report: Shown) -> None:
    manifest = facebook.manifest
    steps = report.tables["Steps, with the exchanges of each"][1:]
    assert whole(steps[-1][2]) == manifest.counts.edges
    assert sum(whole(step[4]) for step in steps) == sum(exchange.messages for exchange in manifest.exchanges)
    assert sum(whole(step[5]) for step in steps) == sum(exchange.bytes for exchange in manifest.exchanges)
    assert "One partition holds the whole graph." in report.text
    *stages, outside, run = report.tables["Stages"][1:]
    assert [row[0] for row in stages] == list(dict.fromkeys(stage.stage for stage in manifest.stages))
    assert (outside[0], run) == ("outside of stages", ["the run", duration(manifest.seconds), "100%"])
    shares = [int(row[2].rstrip("%")) for row in (*stages, outside)]
    assert abs(sum(shares) - 100) <= len(shares) / 2  # each is rounded
    assert report.tables["Rows of the input"][1] == ["rows read", "88,234", "100.0%"]
    assert report.tables["Files of the input"][1] == [str(FACEBOOK), "88,234", f"{FACEBOOK.stat().st_size:,}"]
    expected = report.tables["Expected before the run, and found"]
    assert manifest.plan is not None
    assert expected[1][1:3] == [f"at most {manifest.plan.edges:,}", f"{manifest.counts.edges:,}"]
    planned, found = manifest.plan.vertices, manifest.counts.vertices
    assert expected[2] == ["vertices", f"at most {planned:,}", f"{found:,}", f"{(planned - found) / found:+.1%}"]
    settings = {name: value for name, value in report.tables["Settings in effect"][1:]}
    assert (settings["partitioning.count"], settings["output.report"]) == ("auto", "true")
    assert settings.keys() == {f"{a}.{b}" for a, inner in manifest.settings.items() for b in inner}
    assert not [name for name in settings if "storage_options" in name]
    assert {name: value for name, value in report.tables["Versions"][1:]} == manifest.versions


def test_the_page_leads_with_the_groups(report: Shown) -> None:
    """λ and the hierarchy follow. Sections about the run come last, and are closed."""
    assert [title for level, title in report.headings if level == "h2"] == [
        "The densest groups",
        "Distribution of λ",
        "Hierarchy",
        "How it was made",
    ]
    folded = ["read", "stages", "bounding", "partitions", "plan", "settings"]
    ids = [value for element, name, value in report.attributes if (element, name) == ("details", "id")]
    assert ids == folded
    assert not [element for element, name, _ in report.attributes if (element, name) == ("details", "open")]
    assert report.text.index("λ (lambda) measures how dense") < report.text.index("The densest group has 139 vertices")
    assert "edgemill explore " in report.text


def test_the_groups(facebook: Result, report: Shown) -> None:
    groups = facebook.dn_graphs.to_table().sort_by([("lambda", "descending"), ("vertices", "descending")]).to_pylist()
    header, *rows = report.tables["Groups of the highest λ"]
    assert header == ["λ", "vertices", "first members by id", "density", "edges", "triangles", "id"]
    assert [[whole(row[at]) for at in (6, 0, 1, 4)] for row in rows] == [
        [group[name] for name in ("id", "lambda", "vertices", "edges")] for group in groups
    ]
    members = facebook.dn_graph_members.to_table()
    for row in rows:
        ids = sorted(
            v for g, v in zip(*map(pa.ChunkedArray.to_pylist, members.columns), strict=True) if g == int(row[6])
        )
        assert row[2] == ", ".join(map(str, ids[:12])) + f", {len(ids) - 12} more"
    branches = report.tables["Largest branches"][1:]
    assert branches[0][:4] == ["0", "88,234", "4,039", "95"]
    assert {row[5] for row in branches} == {str(group["id"]) for group in groups}
    assert "Groups with the most vertices" not in report.tables
    assert "The graph has 7 dense groups in all, with 373 of its 4,039 vertices." in report.text
    assert any(re.search(r'"component", ?\["0"', script) for _, script in report.scripts)  # JavaScript has no int64


def test_members_have_their_labels(tmp_path: Path) -> None:
    """The id is the tooltip of the label."""
    names: dict[str, Any] = {"name": (pa.string(), {1: "Ada <b>", 2: "Bela", 4: "Dora"})}
    levels = dict.fromkeys(combinations(range(1, 5), 2), 2)
    found = read_page(page(made(tmp_path / "out", levels, attributes=names, label="name"), "out").decode())
    assert found.tables["Groups of the highest λ"][1][2] == "Ada <b>, Bela, 3, Dora"
    assert [value for element, name, value in found.attributes if (element, name) == ("li", "title")] == ["1", "2", "4"]


def test_the_page_loads_nothing(report: Shown) -> None:
    assert all(value.startswith(("#", "data:")) for name in ("href", "src") for value in report.attribute(name))
    assert not {"iframe", "object", "embed", "base", "form", "img"} & report.elements.keys()
    [policy] = [value for value in report.attribute("content") if "default-src" in value]
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules.keys() == {"default-src", "script-src", "style-src", "img-src", "base-uri", "form-action"}
    assert {rules[name] for name in ("default-src", "base-uri", "form-action")} == {"'none'"}
    ours = [script for kind, script in report.scripts if kind is None]
    digests = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in ours]
    assert len(digests) == 2
    assert rules["script-src"].split() == [f"'sha256-{digest}'" for digest in digests]
    charts = [json.loads(script) for kind, script in report.scripts if kind == "application/json"]
    assert len(charts) == report.elements["figure"] == 7


def test_accessibility(report: Shown) -> None:
    levels = [int(name[1]) for name, _ in report.headings]
    assert levels[0] == 1 == levels.count(1)
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert report.elements["caption"] == report.elements["table"] > 0
    assert report.elements["summary"] == report.elements["details"] > 0
    assert report.attribute("scope") == ["col"] * report.elements["th"]
    labels = [value for element, name, value in report.attributes if (element, name) == ("div", "aria-label")]
    assert all(labels)
    assert report.attribute("role").count("img") == report.elements["figure"] == report.elements["figcaption"]
    anchors = {value.removeprefix("#") for value in report.attribute("href") if value.startswith("#")}
    assert anchors <= {*report.attribute("id")}
    assert "The charts need JavaScript. The tables show the same numbers." in report.text


def test_names_are_escaped(tmp_path: Path, client: Client, report: Shown) -> None:
    """Ids, columns, files and folders have the same hostile name."""
    edges = [(f"{u}{HOSTILE}", f"{v}{HOSTILE}") for u in range(6) for v in range(u)]
    ends = [pa.array(end) for end in zip(*edges, strict=True)]
    place = tmp_path / HOSTILE.replace("/", "∕")
    place.mkdir()
    rows = place / HOSTILE.replace("/", "\\")
    pq.write_table(pa.table(ends, names=[HOSTILE, f"b{HOSTILE}"]), rows.with_suffix(".parquet"))
    result = mine(rows.with_suffix(".parquet"), place / HOSTILE.replace("/", ""), client=client, device="cpu")
    found = shown(result.path / "report.html")
    assert found.elements.keys() <= report.elements.keys()
    assert {name for _, name, _ in found.attributes} <= {name for _, name, _ in report.attributes}
    assert found.headings[0][1] == HOSTILE.replace("/", "")
    assert f"columns {HOSTILE} and b{HOSTILE} (string)" in found.text
    assert str(rows.with_suffix(".parquet")) in found.text
    assert found.tables["Groups of the highest λ"][1][2] == ", ".join(f"{v}{HOSTILE}" for v in range(6))
    ours = [script for kind, script in found.scripts if kind is None]
    assert ours == [script for kind, script in report.scripts if kind is None]


@pytest.mark.skipif(chromium() is None, reason="no Chromium here")
def test_in_a_browser(facebook: Result, tmp_path: Path) -> None:
    """All charts are drawn without requests and errors: in a wide, narrow, dark and printed page."""
    address = (facebook.path / "report.html").as_uri()
    drawn = """new Promise((done) => {
      const has = (node) => node.querySelector("svg") !== null
        || [...node.querySelectorAll("*")].some((inner) => inner.shadowRoot && has(inner.shadowRoot));
      const look = () => {
        const charts = [...document.querySelectorAll(".chart")].filter((chart) => chart.checkVisibility());
        if (charts.length && charts.every(has)) done(charts.length); else setTimeout(look, 20);
      };
      look();
    })"""
    dark = "document.querySelectorAll('.chart[data-dark]').length"
    hints = "[...document.querySelectorAll('.scrolls')].filter(hint => hint.checkVisibility()).length"
    with tab_of(tmp_path) as tab:
        tab.size(1440, 900)
        tab.open(address)
        assert tab.run(drawn) == 4
        assert tab.run("document.querySelector('#dn-graphs table').offsetWidth") > 1300
        assert tab.run(hints) == 0
        tab.run("document.querySelector('#open-all').click()")
        tab.until("document.querySelectorAll('.chart[data-drawn]').length === 7")
        assert (tab.run(drawn), tab.run(dark)) == (7, 0)
        tab.size(390, 900, dark=True)
        tab.open(f"{address}#stages")
        assert tab.run("[...document.querySelectorAll('#run > details[open]')].map(fold => fold.id)") == ["stages"]
        tab.until("document.querySelectorAll('.chart[data-drawn]').length === 5")
        assert (tab.run(drawn), tab.run(dark)) == (5, 5)
        tab.until("document.querySelector('#dn-graphs .table').hasAttribute('data-scrolls')")
        assert tab.run(hints) > 0
        assert tab.run("document.documentElement.scrollWidth") <= 390  # innerWidth would grow with it
        assert base64.b64decode(tab.send("Page.printToPDF")["data"]).startswith(b"%PDF")
        tab.send("Emulation.setEmulatedMedia", media="print")
        assert tab.run(
            "[...document.querySelectorAll('nav, .tools, #settings')].every(part => !part.checkVisibility())"
        )
        assert tab.run("document.querySelector('#stages').checkVisibility()")
        tab.send("Emulation.setEmulatedMedia", media="")
        tab.send("Emulation.setScriptExecutionDisabled", value=True)
        tab.send("Page.navigate", url=address)
        while tab.run("document.readyState") != "complete":
            pass
        text = tab.run("document.body.innerText")
        assert "The charts need JavaScript" in text
        assert "8,987" in text
        assert tab.run(
            "[...document.querySelectorAll('figure')].every((figure) => figure.offsetHeight === 0)"
        )  # title and all
        assert {url.partition("#")[0] for url in tab.requests} == {address}
        assert not tab.errors


def test_large_runs_have_small_pages(tmp_path: Path, write_result: WriteResult) -> None:
    long = "x" * 10_000
    exchanges = [
        ExchangeRecord(
            exchange=at,
            step=at // 3,
            open_bands=9,
            settled=at,
            unsettled=0,
            messages=at,
            bytes=4,
            evaluations=1,
            seconds=1,
        )
        for at in range(1, 5_001)
    ]
    top = 50_000
    write_result(tmp_path / "small")
    manifest = write_result(
        tmp_path / "large",
        exchanges=exchanges,
        lambda_low=LambdaRecord(max=top, sum=1, histogram=[(at, at + 1) for at in range(top + 1)]),
        settings={"input": {"path": long}, "output": {"path": f"s3://me:secret@bucket/{long}"}},
        input=Result(tmp_path / "small").manifest.input.model_copy(
            update={"files": [InputFile(path=f"s3://me:secret@{at}/{long}", bytes=1, rows=1) for at in range(3000)]}
        ),
    )
    small, large = (page(Result(tmp_path / name), name) for name in ("small", "large"))
    assert len(large) - len(small) < 200_000
    found = read_page(large.decode())
    assert "secret" not in found.text
    assert max(len(cell) for rows in found.tables.values() for row in rows for cell in row) == 201
    rows = next(rows for caption, rows in found.tables.items() if caption.startswith("Edges by λ"))[1:]
    assert len(rows) <= 40
    assert sum(whole(row[1]) for row in rows) == sum(edges for _, edges in manifest.lam.histogram)
    assert rows[-1][0].endswith(str(top))
    steps = found.tables["Steps, with the exchanges of each"][1:]
    assert len(steps) == 24
    assert sum(whole(step[4]) for step in steps) == sum(exchange.messages for exchange in exchanges)


def test_a_result_of_an_earlier_release(tmp_path: Path, write_result: WriteResult) -> None:
    write_result(tmp_path / "out", plan=None, exchanges=[])
    found = read_page(page(Result(tmp_path / "out"), "out").decode())
    assert "was made by an earlier release" in found.text
    assert "did not record its plan" in found.text
    assert "Groups of the highest λ" not in found.tables


def test_a_run_that_a_limit_ended(tmp_path: Path, mined: Mine) -> None:
    generate("rmat", str(tmp_path / "rows"), files=1, seed=3, scale=8, edge_factor=8)
    bounding = {"method": "band", "max_exchanges": 3}
    result = mined(tmp_path / "rows", bounding=bounding, **WITH_REPORT)
    found = shown(result.path / "report.html")
    assert f"Not converged: {result.manifest.unsettled:,} edges" in found.text
    assert "The run did not converge, so the groups are not known" in found.text
    header, *rows = next(
        rows for caption, rows in found.tables.items() if caption.startswith("Edges by lower end of λ")
    )
    assert header[-1] == "edges with upper end at least"
    high = result.edges.to_table()["lambda_high"].to_numpy()
    assert rows[-1][0].endswith(str(high.max()))
    assert [whole(row[5]) for row in rows] == [int((high >= int(row[0].split("-")[0])).sum()) for row in rows]


@pytest.mark.parametrize(
    "edges",
    [
        [],
        *(pytest.param(edges, marks=pytest.mark.slow) for edges in ([(1, 1)], [(1, 2)], [(1, 2), (3, 4)])),
        [(1, 2), (2, 3), (1, 3)],
    ],
)
def test_small_graphs(tmp_path: Path, mined: Mine, edges: list[runs.Edge]) -> None:
    result = mined(runs.write_rows(tmp_path / "rows.parquet", edges), **WITH_REPORT)
    assert log(result)[-2]["event"] == "report_written"
    assert shown(result.path / "report.html").headings[0] == ("h1", "out")


def test_an_empty_graph(tmp_path: Path) -> None:
    """There are no empty charts and tables."""
    found = read_page(page(made(tmp_path / "out", {}), "out").decode())
    assert found.elements["figure"] == 0
    assert [caption for caption, rows in found.tables.items() if len(rows) == 1] == ["Settings in effect"]
    assert "with of the" not in " ".join(found.text.split())
    assert "The graph has none: no edge is in a triangle." in found.text
    assert "The graph has no edges" in found.text


def test_vertices_without_edges_are_in_no_truss(tmp_path: Path) -> None:
    found = read_page(page(made(tmp_path / "out", {(1, 2): 0, (2, 3): 0}, alone=[7, 8]), "out").decode())
    assert found.tables["Edges by λ, and the truss that begins with each range"][1] == ["0", "2", "2", "100.0%", "3"]


def test_several_series_have_a_key(report: Shown) -> None:
    """It is beside the chart, since it would cover lines inside it."""
    assert report.attribute("class").count("keys") == 1  # k-trusses
    colours = [value for element, name, value in report.attributes if (element, name) == ("i", "style")]
    assert len(colours) == 2 == len(set(colours))
    assert not [script for kind, script in report.scripts if kind and '"Legend"' in script]


def test_a_hierarchy_that_is_read_in_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cliques = {pair: 3 for at in (0, 10, 20) for pair in combinations(range(at, at + 5), 2)}
    result = made(tmp_path / "out", cliques | {(0, 10): 0, (10, 20): 0})
    whole_page = read_page(page(result, "out").decode())
    assert [row[3] for row in whole_page.tables["Largest branches"][1:]] == ["3", "3", "3"]
    assert "were read." not in whole_page.text.partition("How it was made\n")[0]
    monkeypatch.setattr(graph_sections, "upper", partial(upper, most=2))
    found = read_page(page(result, "out").decode())
    assert "Only the 2 components with the most edges were read." in found.text
    assert [(row[3], row[5]) for row in found.tables["Largest branches"][1:]] == [("≥ 3", "")]


def test_stages_files_and_partitions(tmp_path: Path, write_result: WriteResult) -> None:
    names = ("inner", "cut", "vertices")
    sizes = {0: 4, 1: 5, 2: 3}
    files = [InputFile(path=f"{at}.parquet", bytes=1, rows=1) for at in range(11)]
    for many in (10, 11):
        write_result(
            tmp_path / f"{many}",
            stages=[StageRecord(stage=stage, seconds=1.0) for stage in ("read", "bound", "read")],
            partitions=[
                PartitionRecord(partition=at, owned=owned, **dict.fromkeys(names, 1)) for at, owned in sizes.items()
            ],
            how_bounded=BoundingRecord(method="peel", steps=1, exchanges=1, evaluations=3, shards=SHARDS),
            input=InputRecord(files=files[:many], id_type="int64", source_column="src", target_column="dst"),
        )
    ten, eleven = (read_page(page(Result(tmp_path / name), name).decode()) for name in ("10", "11"))
    assert [row[:2] for row in ten.tables["Stages"][1:3]] == [["read", "2.00 s"], ["bound", "1.00 s"]]
    assert [row[0] for row in ten.tables["Groups, the largest first"][1:]] == ["1", "0", "2"]
    assert ("more file " in ten.text, "1 more file is in the manifest." in eleven.text) == (False, True)
    assert "of 5 rows" in ten.text


def test_many_groups_make_a_small_page(tmp_path: Path, write_result: WriteResult) -> None:
    names = ("owned", "inner", "cut", "vertices")
    write_result(
        tmp_path / "out",
        partitions=[PartitionRecord(partition=at, **dict.fromkeys(names, at)) for at in range(4096)],
        how_bounded=BoundingRecord(method="peel", steps=1, exchanges=1, evaluations=3, shards=SHARDS),
    )
    groups = read_page(page(Result(tmp_path / "out"), "out").decode()).tables["Groups, the largest first"][1:]
    assert len(groups) == 17
    assert sum(whole(group[1]) for group in groups) == sum(range(4096))


def test_dropped_rows_are_reported(tmp_path: Path, write_result: WriteResult) -> None:
    found = read_page(page(made(tmp_path / "out", {(1, 2): 1, (1, 3): 1, (2, 3): 1}), "out").decode())
    assert "of 3 rows" not in found.text
    assert "not used" not in found.text
    counts = Counts(rows=9, self_loops=1, duplicates=4, nulls_dropped=0, edges=4, vertices=4, triangles=1)
    write_result(tmp_path / "dropped", counts=counts)
    found = read_page(page(Result(tmp_path / "dropped"), "out").decode())
    told = "5 rows of 9 (55.6%) were not used: 4 repeat an edge, in either direction; 1 links a vertex to itself."
    assert told in found.text
    assert found.text.index(told) < found.text.index("The densest groups")


def test_notes_are_not_cut(tmp_path: Path, write_result: WriteResult) -> None:
    """A note ends with advice."""
    note = f"columns 'a' and 'b' are taken as the two ends of an edge{' and so on' * 20}: say --bipartite prefix"
    given = InputRecord(files=[], id_type="int64", source_column="src", target_column="dst", notes=[note])
    write_result(tmp_path / "out", input=given)
    found = read_page(page(Result(tmp_path / "out"), "out").decode())
    assert f"C{note[1:]}." in found.text.partition("The densest groups")[0]


def test_notice_of_a_graph_without_triangles(tmp_path: Path) -> None:
    found = read_page(page(made(tmp_path / "out", {(1, 2): 0, (2, 3): 0}), "out").decode())
    assert "The graph has no triangle, so λ of every edge is 0" in found.text
    assert "two kinds of things, such as people and films" in found.text


@pytest.mark.parametrize(
    ("place", "name"),
    [("s3://me:secret@bucket", "bucket"), ("s3://me:secret@bucket/a/out", "out"), ("/data/\udcff", r"\udcff")],
)
def test_locations_with_passwords_or_without_utf8(
    tmp_path: Path, write_result: WriteResult, place: str, name: str
) -> None:
    write_result(tmp_path / "out")
    found = read_page(page(Result(tmp_path / "out"), place).decode())
    assert found.headings[0][1].endswith(name)
    assert "secret" not in found.text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0.00 s"), (59.994, "59.99 s"), (60, "1 min 00 s"), (3599.6, "1 h 00 min"), (7265, "2 h 01 min")],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text
