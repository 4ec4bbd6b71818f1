"""The explorer's page in a browser, from a click to the shown elements."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from distributed import Client

import runs
from chromium import Navigated, Page, chromium, page
from edgemill.pipeline import Result, groups_of, mine, top
from edgemill.pipeline.explorer import api
from known_graphs import FACEBOOK
from made import made
from serving import serving

HOSTILE = ["</script><img src=x onerror=alert(1)>", "<b>bold</b>", "a=b&c#d", "javascript:alert(1)", "ä \U0001f41f"]
IDLE = "document.querySelector('#icicle .rows') && !document.body.hasAttribute('aria-busy')"
DRAWN = f"!document.querySelector('#drawing').hidden && {IDLE}"

pytestmark = pytest.mark.skipif(chromium() is None, reason="no Chromium here")


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with page(tmp_path_factory.mktemp("browser")) as tab:
        yield tab


@pytest.fixture(autouse=True)
def nothing_wrong(tab: Page) -> Iterator[None]:
    """No test leaves an error in the page's log, or sends a request to another host."""
    tab.errors.clear()
    tab.requests.clear()
    tab.size(1300, 900)
    yield
    assert not tab.errors
    assert {url.split("/")[2].split(":")[0] for url in tab.requests if url.startswith("http")} <= {"127.0.0.1"}


@pytest.fixture(scope="module")
def facebook(client: Client, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a page with the ego-Facebook graph."""
    with serving(mine(FACEBOOK, tmp_path_factory.mktemp("facebook") / "out", client=client, device="cpu")) as served:
        yield served.address


def opened(tab: Page, address: str) -> None:
    tab.open(address)
    tab.until(IDLE)


def until_replaced(tab: Page, condition: str) -> None:
    """Wait until an expression is true in the page that replaces this one."""
    while True:
        try:
            return tab.until(condition)
        except Navigated:  # it was evaluated in the previous page
            continue


def text(tab: Page, selector: str) -> str:
    return str(tab.run(f"document.querySelector({json.dumps(selector)}).innerText"))


def focus(tab: Page) -> str:
    return str(tab.run("document.activeElement.getAttribute('aria-label') ?? document.activeElement.id"))


def found(tab: Page, wanted: str) -> None:
    """Type into the search field, and press Enter."""
    tab.run("document.querySelector('#vertex').select()")
    tab.type(wanted)
    tab.press("Enter")


def ink(tab: Page, path: Path) -> int:
    """Size in bytes of a screenshot of the drawing; it grows with the content."""
    tab.run("new Promise(seen => requestAnimationFrame(() => requestAnimationFrame(seen)))")
    box = tab.run("(({x, y, width, height}) => ({x, y, width, height, scale: 1}))(canvas.getBoundingClientRect())")
    tab.picture(path, clip=box)
    return path.stat().st_size


def test_it_opens_on_the_densest_group(tab: Page, facebook: str) -> None:
    opened(tab, facebook)
    tab.until(DRAWN)
    assert tab.run("location.hash") == tab.run("document.querySelector('#largest tbody a').getAttribute('href')")
    assert text(tab, "#chosen-title") == "DN-graph of 139 vertices"
    assert text(tab, "#largest tbody tr[aria-current]").startswith("λ 95 · id ")
    assert "1912, 1917, 1918, 1929, 1938, 1943, …" in text(tab, "#largest tbody tr[aria-current]")
    assert text(tab, "#facts .names .left") == "127 more"
    tab.run("document.querySelector('#path a').click()")
    tab.until(f"location.hash === '#graph' && document.querySelector('#drawing').hidden && {IDLE}")
    assert text(tab, "#chosen-title") == "The whole graph"
    assert tab.run("document.querySelectorAll('#largest [aria-current]').length") == 0
    tab.run("document.querySelector('h1 a').click()")
    tab.until(f"location.hash.startsWith('#dn-graph') && {DRAWN}")


def test_the_whole_graph(tab: Page, facebook: str) -> None:
    opened(tab, f"{facebook}#graph")
    assert tab.run("document.title") == "out · edgemill explorer"
    assert text(tab, "#counts") == "4,039 vertices, 88,234 edges, 7 DN-graphs, λ up to 95"
    assert text(tab, "#icicle [role=treeitem]") == "The whole graph: 88,234 edges"
    assert tab.run("document.querySelectorAll('#largest tbody tr').length") == 7
    assert tab.run("document.querySelector('#drawing').hidden")
    assert len(tab.run("[...document.querySelectorAll('.ticks span')].map(tick => tick.textContent)")) >= 4


def test_a_dn_graph_is_drawn_with_its_surroundings(tab: Page, facebook: str, tmp_path: Path) -> None:
    opened(tab, f"{facebook}#graph")
    tab.run("document.querySelector('#largest tbody a').click()")
    tab.until(DRAWN)
    assert text(tab, "#chosen-title") == "DN-graph of 139 vertices"
    assert tab.run("document.querySelectorAll('#canvas canvas').length") > 3
    assert "139 vertices of it" in tab.run("canvas.getAttribute('aria-label')")
    assert "200 of 617 neighbours are drawn" in text(tab, "#notices")
    assert text(tab, "#icicle [aria-selected]") in ("", "95", "◆ 95")
    assert text(tab, "#readout") == "DN-graph, λ 95: 139 vertices, 8,987 edges"
    drawn = ink(tab, tmp_path / "drawn.png")
    tab.run("document.querySelectorAll('#canvas canvas').forEach(canvas => canvas.style.visibility = 'hidden')")
    assert drawn > 10 * ink(tab, tmp_path / "empty.png")
    tab.run("history.back()")
    tab.until("document.querySelector('#drawing').hidden")


@pytest.mark.parametrize("width", [360, 1300])
def test_no_cell_of_the_icicle_is_cut_off(tab: Page, facebook: str, width: int) -> None:
    """There is room for an outline on both sides, and cells do not overlap."""
    tab.size(width, 900)
    opened(tab, facebook)
    tab.run(
        "new Promise(seen => requestAnimationFrame(() => requestAnimationFrame(seen)))"
    )  # a scroll bar has appeared
    left, right, wider, narrowest = tab.run(
        """(() => {
            const box = document.querySelector("#icicle");
            const cells = [...box.querySelectorAll("[role=treeitem]")];
            const boxes = cells.map((cell) => cell.getBoundingClientRect());
            const start = box.getBoundingClientRect().left;
            return [
                Math.min(...boxes.map((cell) => cell.left)) - start,
                start + box.clientWidth - Math.max(...boxes.map((cell) => cell.right)),
                Math.max(...cells.map((cell, at) => boxes[at].width - parseFloat(cell.style.width))),
                Math.min(...boxes.map((cell) => cell.width)),
            ];
        })()"""
    )
    assert left == 4
    assert 4 <= right <= 6
    assert wider < 0.1
    assert narrowest > 2.9  # narrower components share a cell
    assert tab.run("document.querySelectorAll('#icicle .rest').length") > 0


def test_the_icicle_by_keyboard(tab: Page, facebook: str) -> None:
    opened(tab, f"{facebook}#graph")
    tab.run("document.querySelector('#icicle [tabindex=\"0\"]').focus()")
    assert focus(tab).startswith("The whole graph")
    tab.press("ArrowDown")
    assert focus(tab) == "λ 0 or more, one group up to λ 2: 4,039 vertices, 88,234 edges; 2 groups in it"
    tab.press("ArrowDown")
    first = focus(tab)
    tab.press("End")
    assert focus(tab) != first
    tab.press("Home")
    assert focus(tab) == first
    tab.press("ArrowRight")
    assert focus(tab) != first
    tab.press("ArrowLeft")
    assert focus(tab) == first
    assert tab.run("document.activeElement.matches(':focus-visible')")
    assert tab.run("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    tab.press("ArrowUp")
    tab.press("Enter")
    tab.until(f"document.querySelector('#icicle [role=treeitem]').ariaLabel.startsWith('λ 0 or more') && {IDLE}")
    assert tab.run("location.hash").startswith("#component=")
    assert focus(tab).startswith("λ 0 or more")
    while not focus(tab).startswith("DN-graph"):
        before = focus(tab)
        tab.press("ArrowDown")
        assert focus(tab) != before
    tab.press("Enter")
    tab.until(f"location.hash.startsWith('#dn-graph=') && {DRAWN}")
    assert focus(tab).startswith("DN-graph")
    tab.press("Escape")
    tab.until("document.querySelector('#drawing').hidden")
    assert not tab.run("location.hash").startswith("#dn-graph=")


def test_resizing_keeps_the_focus(tab: Page, facebook: str) -> None:
    opened(tab, facebook)
    tab.run("document.querySelector('#icicle [tabindex=\"0\"]').focus()")
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        tab.press(key)
    at, first = focus(tab), "document.querySelector('#icicle [role=treeitem]').getBoundingClientRect().width"
    assert not at.startswith("The whole graph")
    width = tab.run(first)
    tab.size(900, 900)
    tab.until(f"{first} !== {width}")
    assert focus(tab) == at


def test_tab_reaches_everything(tab: Page, facebook: str) -> None:
    opened(tab, f"{facebook}#vertex=1912")
    tab.until(DRAWN)
    reached = []
    for _ in range(60):
        tab.press("Tab")
        reached.append(tab.run("document.activeElement.id || document.activeElement.getAttribute('role') || ''"))
        if reached[-1] == "treeitem":
            break
    expected = ["vertex", "by", "zoom-in", "zoom-out", "whole", "canvas", "treeitem"]
    assert [name for name in reached if name in expected] == expected


def test_the_drawing_by_keyboard(tab: Page, facebook: str, tmp_path: Path) -> None:
    opened(tab, f"{facebook}#vertex=1912")
    tab.until(DRAWN)
    tab.run("canvas.focus()")
    pictures = []
    for number, key in enumerate(["", "ArrowLeft", "ArrowUp"]):
        if key:
            tab.press(key)
        ink(tab, tmp_path / f"{number}.png")
        pictures.append((tmp_path / f"{number}.png").read_bytes())
    assert len(set(pictures)) == 3
    assert text(tab, "#picked").startswith("Vertex 1912: in the DN-graph, with ")
    tab.run("document.querySelector('#listed summary').click()")
    tab.until("document.querySelectorAll('#listed tbody tr').length === 339")
    where = tab.run("[...document.querySelectorAll('#listed tbody td:nth-child(2)')].map(cell => cell.innerText)")
    assert where == ["inside"] * 139 + ["neighbour"] * 200
    tab.run("document.querySelectorAll('#listed tbody button')[338].click()")
    tab.until("document.querySelector('#picked').innerText.includes('outside')")


def test_a_vertex_is_found_by_typing(tab: Page, facebook: str) -> None:
    opened(tab, facebook)
    found(tab, "107")
    tab.until(f"location.hash === '#vertex=107' && {DRAWN}")
    assert text(tab, "#chosen-title") == "Vertex 107"
    assert text(tab, "#facts tbody a").startswith("DN-graph, λ 45")
    found(tab, "403")
    tab.until("document.querySelector('#chosen-title').innerText === 'Vertex 403'")
    found(tab, "5000")
    tab.until("document.querySelector('#status').innerText === \"no vertex has '5000' in its id\"")
    assert text(tab, "#chosen-title") == "Not found"
    assert tab.run("document.querySelector('#drawing').hidden")  # the earlier drawing is hidden
    assert tab.run("location.hash") == "#search=5000"
    found(tab, "1912, 107")
    tab.until("document.querySelector('#chosen-title').innerText === '2 vertices together'")
    assert text(tab, "#facts p a") == "λ 11: 1,354 vertices, 54,243 edges"
    assert tab.run("document.querySelectorAll('#facts tbody tr').length") == 2
    found(tab, "-3")
    tab.until("document.querySelectorAll('#facts a').length === 5")
    tab.run("document.querySelector('#facts a').click()")
    tab.until("document.querySelector('#chosen-title').innerText === 'Vertex 0'")
    tab.errors.clear()  # the browser logs each 404


def test_vertices_are_found_by_a_part_of_their_name(tab: Page, tmp_path: Path) -> None:
    levels = dict.fromkeys(combinations(range(1, 6), 2), 3)
    names = {1: "Ada Berg", 2: "Bela <b>Berg</b>", 3: "Chen", 4: "Dora", 5: None}
    result = made(tmp_path / "out", levels, attributes={"name": (pa.string(), names)}, label="name")
    with serving(result) as served:
        opened(tab, served.address)
        tab.until(DRAWN)
        assert text(tab, "#largest .some") == "Ada Berg, Bela <b>Berg</b>, Chen, Dora, 5"
        found(tab, "BERG")
        tab.until("document.querySelectorAll('#facts tbody tr').length === 2")
        assert text(tab, "#chosen-title") == "Vertices with “BERG” in their id or label"
        assert tab.run("document.querySelector('#drawing').hidden")
        assert tab.run("[...document.querySelectorAll('#facts tbody a')].map(link => link.textContent)") == [
            "Ada Berg (1)",
            "Bela <b>Berg</b> (2)",
        ]
        opened(tab, f"{served.address}#search=chen")  # a single match is shown itself
        tab.until(f"document.querySelector('#chosen-title').innerText === 'Vertex Chen (3)' && {DRAWN}")
        assert tab.run("location.hash") == "#vertex=3"


def test_the_groups_of_programs(tab: Page, with_programs: Result) -> None:
    chosen = "document.querySelector('#chosen-title').innerText"
    choose = "kind.value = 'leiden', kind.dispatchEvent(new Event('change'))"
    with serving(with_programs) as served:
        opened(tab, f"{served.address}#vertex=107")
        tab.until(DRAWN)
        assert tab.run("[...kind.options].map(option => option.text)") == ["λ", "leiden", "core_groups"]
        with suppress(Navigated):
            tab.run(choose)
        until_replaced(tab, "location.search === '?groups=leiden' && document.readyState === 'complete'")
        tab.until(DRAWN)
        assert text(tab, "#largest-title") == "Groups of leiden"
        assert text(tab, "#chosen-title") == "Vertex 107"  # it stays selected
        community = groups_of(with_programs, 107, groups="leiden")[-2]  # the last one is the component
        row = ["level", str(community.k), f"{community.vertices:,}", f"{community.edges:,}"]
        assert text(tab, "#facts tbody tr:nth-child(4)").split() == row
        assert f"{community.vertices:,} vertices of it" in tab.run("canvas.getAttribute('aria-label')")
        assert tab.run("[...by.options].map(option => option.text)") == ["vertices", "edges", "density"]
        communities = top(with_programs, groups="leiden", count=50).to_pylist()
        largest = f"Group of {communities[0]['vertices']} vertices"
        assert tab.run("document.querySelectorAll('#largest tbody tr').length") == len(communities) > 10
        tab.run("document.querySelector('#largest tbody a').click()")
        tab.until(f"{chosen} === '{largest}' && {DRAWN}")
        assert tab.run("document.querySelectorAll('#largest tr[aria-current]').length") == 1
        inside = with_programs.community_groups.to_table()["parent"].to_pylist().count(communities[0]["id"])
        sizes = f"{communities[0]['vertices']} vertices, {communities[0]['edges']:,} edges"
        assert text(tab, "#readout") == f"level {communities[0]['k']}: {sizes}; {inside} groups in it"
        csv = tab.run("fetch(document.querySelector('#csv').href).then(answer => answer.text())")
        assert len(csv.splitlines()) == 1 + communities[0]["vertices"]
        tab.run("document.querySelector('#icicle [tabindex=\"0\"]').focus()")
        tab.press("ArrowDown")
        inner = focus(tab)
        tab.press("Enter")
        tab.until(f"{chosen} !== '{largest}' && {DRAWN}")
        assert text(tab, "#readout") == inner
        outer = f"level {communities[0]['k']} · {communities[0]['vertices']} v"
        assert text(tab, "#icicle [role=treeitem]").startswith(outer)
        tab.press("Escape")
        tab.until(f"{chosen} === '{largest}' && {DRAWN}")
        assert text(tab, "#icicle [role=treeitem]").startswith("level 0 · 4,039 v")
        opened(tab, f"{served.address}?groups=core_groups#search=1912,107")
        assert text(tab, "#facts p a") == "level 70: 470 vertices, 28,738 edges"
        tab.run("document.querySelector('#facts p a').click()")
        tab.until(f"{chosen} === 'Group of 470 vertices' && {DRAWN}")
        opened(tab, f"{served.address}?groups=core_groups#vertex=0")
        assert "It is in none of the groups of the list." in text(tab, "#facts")


def test_a_result_without_groups_of_programs_shows_no_choice(tab: Page, facebook: str) -> None:
    opened(tab, facebook)
    assert tab.run("kinds.hidden && kind.offsetParent === null")
    tab.open(f"{facebook}?groups=leiden")
    tab.until("document.querySelector('#status').innerText === 'groups is one of lambda'")
    tab.errors.clear()  # the browser logs the refusal


def test_members_are_copied_and_saved(tab: Page, facebook: str) -> None:
    opened(tab, facebook)
    tab.until(DRAWN)
    tab.send("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    tab.run("document.querySelector('#copy').click()")
    tab.until("document.querySelector('#status').innerText.includes('139 ids were copied')")
    assert tab.run("navigator.clipboard.readText().then(text => text.split('\\n').length)") == 139
    csv = tab.run("fetch(document.querySelector('#csv').href).then(answer => answer.text())")
    assert (csv.splitlines()[0], len(csv.splitlines())) == ("id,degree_inside,degree,triangles,lambda", 140)


def test_names_do_not_overlap(tab: Page, facebook: str) -> None:
    """Of forty vertices close together, some have names, which cover no other name and no vertex."""
    opened(tab, facebook)
    tab.until(DRAWN)
    boxes = """new Promise((done) => import("./labels.js").then(({ Labels }) => {
        const context = document.createElement("canvas").getContext("2d");
        const font = { labelSize: 12, labelFont: "sans-serif", labelWeight: "normal" };
        const nodes = [...Array(40).keys()].map((at) => (
            { key: `${at}`, x: 20 + (at * 37) % 260, y: 20 + (at * 53) % 160, size: 5, label: `name ${at}` }
        ));
        const sigma = {
            getDimensions: () => ({ width: 300, height: 200 }),
            getGraph: () => ({ forEachNode: (each) => nodes.forEach((node) => each(node.key)) }),
            getNodeDisplayData: (key) => nodes[key],
            framedGraphToViewport: ({ x, y }) => ({ x, y }),
            scaleSize: (size) => size,
        };
        const drawn = [];
        context.fillText = (text, left, line) => {
            const right = left + Math.ceil(context.measureText(text).width);
            drawn.push({ key: text.slice(5), left, right, top: line - 11, bottom: line + 3 });
        };
        const labels = new Labels(() => sigma);
        labels.begin();
        nodes.forEach((node) => labels.draw(context, node, font));
        const discs = nodes.map(({ key, x, y, size }) => (
            { key, left: x - size, right: x + size, top: y - size, bottom: y + size }
        ));
        const over = (one, other) => one.key !== other.key && one.left < other.right && one.right > other.left
            && one.top < other.bottom && one.bottom > other.top;
        const collide = drawn.filter((name, at) => (
            [...drawn.slice(at + 1), ...discs].some((other) => over(name, other))
        ));
        const outside = drawn.filter((name) => (
            name.left < 0 || name.right > 300 || name.top < 0 || name.bottom > 200
        ));
        done([drawn.length, collide.length, outside.length]);
    }))"""
    drawn, collisions, outside = tab.run(boxes)
    assert 5 < drawn < 40
    assert (collisions, outside) == (0, 0)


def test_groups_that_are_left_out_are_counted(tab: Page, facebook: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "_MOST_PATH", 90)
    opened(tab, f"{facebook}#vertex=1912")
    tab.until(DRAWN)
    assert text(tab, "#facts summary") == "84 more groups"
    tab.run("document.querySelector('#facts summary').click()")
    assert text(tab, "#facts details caption") == "Further groups, without the 6 largest"
    assert tab.run("document.querySelectorAll('#facts details tbody tr').length") == 78


def test_an_unknown_address_shows_the_graph(tab: Page, facebook: str) -> None:
    for choice, said in [("vertex=x", "is not"), ("dn-graph=-1", "no such"), ("component=-1", "no such comp")]:
        opened(tab, f"{facebook}#{choice}")
        assert said in text(tab, "#status")
        assert text(tab, "#icicle [role=treeitem]") == "The whole graph: 88,234 edges"
    opened(tab, f"{facebook}#nonsense=%FF")
    assert text(tab, "#status") == ""
    tab.errors.clear()  # the browser logs each refusal


def test_only_the_last_selection_is_shown(tab: Page, facebook: str) -> None:
    """Five selections at once: answers may come in any order."""
    opened(tab, facebook)
    tab.run("[...document.querySelectorAll('#largest tbody a')].slice(0, 5).forEach(link => link.click())")
    tab.until("document.querySelector('#chosen-title').innerText === 'DN-graph of 20 vertices'")
    tab.until(IDLE)
    assert text(tab, "#readout") == "DN-graph, λ 16: 20 vertices, 186 edges"
    assert text(tab, "#status") == ""


def test_light_and_dark(tab: Page, facebook: str) -> None:
    opened(tab, f"{facebook}#vertex=1912")
    tab.until(DRAWN)
    ask = (
        "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color,"
        " document.querySelector('#icicle [aria-selected]').style.background]"
    )
    light = tab.run(ask)
    tab.size(1300, 900, dark=True)
    tab.until(f"document.querySelector('#icicle [aria-selected]').style.background !== {json.dumps(light[2])}")
    dark = tab.run(ask)
    assert all(one != other for one, other in zip(light, dark, strict=True))


def test_a_narrow_window_does_not_scroll_sideways(tab: Page, facebook: str) -> None:
    tab.size(360, 700)
    opened(tab, f"{facebook}#vertex=1912")
    tab.until(DRAWN)
    assert tab.run("document.documentElement.scrollWidth") <= 360
    tab.run("document.querySelectorAll('#largest tbody a')[2].click()")
    tab.until(f"document.querySelector('#chosen-title').innerText === 'DN-graph of 46 vertices' && {DRAWN}")
    assert 0 <= tab.run("document.querySelector('#chosen').getBoundingClientRect().top") < 350


def test_hostile_ids_are_text(tab: Page, client: Client, tmp_path: Path) -> None:
    pairs = [(a, b) for a in HOSTILE for b in HOSTILE if a < b]
    rows = runs.write_rows(tmp_path / "rows.parquet", pairs, pa.string())
    with serving(mine(rows, tmp_path / "<img src=x onerror=alert(1)>", client=client, device="cpu")) as served:
        for id in HOSTILE:
            opened(tab, served.address)
            tab.run("document.querySelector('#vertex').focus()")
            tab.type(id)
            tab.press("Enter")
            tab.until(
                f"document.querySelector('#chosen-title').textContent === {json.dumps(f'Vertex {id}')} && {DRAWN}"
            )
            tab.run("document.querySelector('#listed summary').click()")
            tab.until("document.querySelectorAll('#listed tbody tr').length === 5")
            assert tab.run("[...document.querySelectorAll('#listed tbody button')].map(b => b.textContent).sort()") == (
                sorted(HOSTILE, key=lambda one: one.encode("utf-16-be"))
            )
            assert tab.run("document.querySelectorAll('img, b, body script').length") == 0
            assert text(tab, "#name") == "<img src=x onerror=alert(1)>"


CONTROLS = "\x1b[31m\x07\x7f\x9b2J\u202e\u2066\n"
VISIBLE = r"\x1b[31m\x07\x7f\x9b2J\u202e\u2066\x0a"


def test_controls_in_names_are_shown(tab: Page, client: Client, tmp_path: Path) -> None:
    ids = [f"{CONTROLS}{number}" for number in range(4)]
    rows = runs.write_rows(tmp_path / "rows.parquet", [(a, b) for a in ids for b in ids if a < b], pa.string())
    raw = "[...document.body.textContent].filter(c => /[^\\P{Cc}\\n]|[\\u202a-\\u202e\\u2066-\\u2069]/u.test(c)).length"
    with serving(mine(rows, tmp_path / f"out{CONTROLS}", client=client, device="cpu")) as served:
        opened(tab, served.address)
        tab.run(f"location.hash = 'vertex=' + encodeURIComponent({json.dumps(ids[1])})")
        tab.until(
            f"document.querySelector('#chosen-title').textContent === {json.dumps(f'Vertex {VISIBLE}1')} && {DRAWN}"
        )
        tab.run("document.querySelector('#listed summary').click()")
        tab.until("document.querySelectorAll('#listed tbody tr').length === 4")
        assert text(tab, "#name") == f"out{VISIBLE}"
        assert tab.run("document.title") == f"out{VISIBLE} · edgemill explorer"
        assert VISIBLE in text(tab, "#listed")
        assert tab.run(raw) == 0


def test_long_ids_have_short_labels(tab: Page, facebook: str) -> None:
    """Sigma writes a label in one line and covers what is below it."""
    opened(tab, facebook)
    expected = {"x" * 40: "x" * 40, "x" * 41: f"{'x' * 39}…", "\U0001f41f" * 300: f"{chr(0x1F41F) * 39}…", "": ""}
    shown = tab.run(f"import('./page.js').then(page => {json.dumps(list(expected))}.map(id => page.short(id)))")
    assert shown == list(expected.values())
    drawn = tab.run("fetch('drawing.js').then(answer => answer.text())")
    assert "label: short(vertices.label[at] ?? id, LETTERS)" in drawn


def test_a_stopped_server_is_reported(tab: Page, client: Client, tmp_path: Path) -> None:
    rows = runs.write_rows(tmp_path / "rows.parquet", [(1, 2), (2, 3), (1, 3)])
    with serving(mine(rows, tmp_path / "out", client=client, device="cpu")) as served:
        opened(tab, f"{served.address}#graph")
    tab.run("document.querySelector('#largest a').click()")
    tab.until("document.querySelector('#status').innerText.includes('does not answer')")
    tab.errors.clear()  # the browser logs the connection refused


def test_a_thousand_vertices_are_all_drawn(tab: Page, client: Client, tmp_path: Path) -> None:
    """Each vertex of a ring is linked to the next 20: one DN-graph of λ = 19 with 20,000 edges."""
    source = np.repeat(np.arange(1000), 20)
    target = (source + np.tile(np.arange(1, 21), 1000)) % 1000
    pq.write_table(pa.table({"src": source, "dst": target}), tmp_path / "rows.parquet")
    with serving(mine(tmp_path / "rows.parquet", tmp_path / "out", client=client, device="cpu")) as served:
        opened(tab, served.address)
        tab.run("document.querySelector('#largest tbody a').click()")
        tab.until(DRAWN)
        assert text(tab, "#chosen-title") == "DN-graph of 1,000 vertices"
        assert text(tab, "#notices") == ""
        assert ink(tab, tmp_path / "ring.png") > 50_000
