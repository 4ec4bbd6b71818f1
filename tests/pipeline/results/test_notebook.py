"""Notebook output: results, records and progress. Names are escaped, and there are no scripts."""

from __future__ import annotations

import itertools
import re
import shutil
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from distributed import Client

import edgemill
import runs
from edgemill import Result, mine
from edgemill.pipeline.messages.html import shows_html
from edgemill.pipeline.notebook.page import MOST_BARS, bars
from edgemill.pipeline.notebook.progress import NotebookDisplay
from edgemill.pipeline.output.manifest import Manifest
from made import made

CLIQUE = [(a, b) for a in range(6) for b in range(a + 1, 6)]


class Text(HTMLParser):
    """The tags of a page, which must all be closed, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text: list[str] = []
        self._open: list[str] = []
        self.feed(page)
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not [name for name, _ in attrs if name.startswith("on") or name in ("src", "href")]
        self.tags.append(tag)
        self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open[-1:] != ["style"]:
            self.text.append(data)


def html(shown: Any) -> Text:
    return Text(shown._repr_html_())


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    edges = [*CLIQUE, *((a + 10, b + 10) for a in range(4) for b in range(a + 1, 4)), (5, 10), (7, 7)]
    return runs.write_rows(tmp_path_factory.mktemp("rows") / "rows.parquet", edges)


@pytest.fixture(scope="module")
def result(rows: Path, tmp_path_factory: pytest.TempPathFactory, client: Client) -> Result:
    return mine(rows, tmp_path_factory.mktemp("result") / "out", client=client, report=False)


def test_a_result_shows_counts_groups_and_a_histogram(result: Result) -> None:
    shown = html(result)
    whole = " ".join(shown.text)
    for fact in ("edgemill result", str(result.path), "left out: 1 self-loop", "0, 1, 2, 3, …", "10, 11, 12, 13"):
        assert fact in whole
    cells = [cell.strip() for cell in shown.text]
    assert cells[cells.index("edges") :][:5] == ["edges", "vertices", "triangles", "highest λ", "DN-graphs"]
    assert cells[cells.index("DN-graphs") + 1 :][:5] == ["22", "11", "24", "4", "2"]
    first = cells.index("some members of all DN-graphs")
    assert cells[first + 1 :][:4] == ["4", "6", "15", "100%"]
    assert "λ 4: 15 edges" in cells and "λ 0: 1 edge" in cells and "svg" in shown.tags
    assert "script" not in shown.tags


def test_names_of_users_are_escaped(tmp_path: Path, client: Client) -> None:
    names = ["<script>alert(1)</script>", "<b>&\u202e", "x" * 100]
    pairs = [(a, b) for a in names for b in names if a < b]
    edges = runs.write_rows(tmp_path / "rows.parquet", pairs, id_type=pa.string())
    shown = html(mine(edges, client=client))
    whole = " ".join(shown.text)
    assert "<script>alert(1)</scrip…" in whole and r"<b>&\u202e" in whole and "x" * 23 + "…" in whole
    assert "script" not in shown.tags and shown.tags.count("b") == 1 and "\u202e" not in whole


def test_a_result_without_groups_says_why(tmp_path: Path, rows: Path, client: Client) -> None:
    path = runs.write_rows(tmp_path / "path.parquet", [(1, 2), (2, 3)])
    with mine(path, client=client) as result:
        assert "No edge is in a triangle" in " ".join(html(result).text)
    assert "temporary, removed from" in " ".join(html(result).text)
    empty = runs.write_rows(tmp_path / "empty.parquet", [])
    assert "svg" not in html(mine(empty, client=client)).tags
    limited = mine(rows, client=client, method="band", max_exchanges=1)
    whole = " ".join(html(limited).text)
    assert (
        "edges have an interval instead of lambda" in whole
        and "highest λ, at least" in whole
        and "DN-graphs" not in whole
    )


def test_damage_is_shown_instead_of_groups(result: Result, tmp_path: Path) -> None:
    copy = result.save(tmp_path / "copy")
    (file,) = (copy.path / "dn_graph_members").glob("*.parquet")
    content = bytearray(file.read_bytes())
    content[8:40] = bytes(32)
    file.write_bytes(content)
    assert "The groups cannot be read: the result is damaged" in " ".join(html(copy).text)


def test_records_show_their_fields(result: Result) -> None:
    assert result.counts is result.manifest.counts and result.plan is result.manifest.plan
    shown = html(result.counts)
    assert [text for text in shown.text if text.strip()][:3] == ["Counts", "rows", "23"]
    manifest = html(result.manifest)
    assert "details" in manifest.tags and result.manifest.run in manifest.text
    assert repr(result.manifest) == str(result.manifest)
    assert len(repr(result.manifest)) < 250 and "22 edges" in repr(result.manifest)
    assert isinstance(result.manifest, Manifest)
    many = result.manifest.lam.model_copy(update={"histogram": [(k, 1) for k in range(100)]})
    assert "and 80 more" in " ".join(html(many).text)


def test_bars_are_as_high_as_their_logarithms() -> None:
    drawn = bars([(0, 1), (1, 9), (399, 99)], "edges")
    assert len(re.findall("<rect ", drawn)) == 2 and "λ 0 to 9: 10 edges" in drawn and "λ 390 to 399: 99 edges" in drawn
    heights = [float(height) for height in re.findall(r'height="([\d.]+)"><title', drawn)]
    assert heights[1] > heights[0] > heights[1] / 3
    wide = bars([(k, 1) for k in range(1000)], "edges")
    assert len(re.findall("<rect ", wide)) <= MOST_BARS
    assert bars([], "edges") == ""


class Shell(list[str]):
    """Replaces IPython in a kernel. Records the last state of each output."""

    def display(self, shown: SimpleNamespace, display_id: bool) -> SimpleNamespace:
        assert display_id
        self.append(shown.data)
        return SimpleNamespace(update=lambda shown: self.__setitem__(-1, shown.data))


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Iterator[Shell]:
    """IPython's display and shell as in a kernel, without the kernel's sockets."""
    kernel = pytest.importorskip("ipykernel.zmqshell")
    import IPython
    import IPython.display

    shell = Shell()
    monkeypatch.setattr(IPython, "get_ipython", lambda: object.__new__(kernel.ZMQInteractiveShell))
    monkeypatch.setattr(IPython.display, "display", shell.display)
    yield shell


def test_a_kernel_is_detected_by_its_shell(notebook: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shows_html()
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: None)
    assert not shows_html()
    monkeypatch.delitem(sys.modules, "IPython")
    assert not shows_html()


def test_a_run_shows_its_progress(notebook: Shell, rows: Path, tmp_path: Path, client: Client) -> None:
    mine(rows, tmp_path / "out", client=client, report=False)
    (ending,) = notebook
    assert "edgemill found λ of 22 edges in" in ending and "publish" in Text(ending).text
    edgemill.pagerank(rows, client=client)
    assert "λ" not in "".join(Text(notebook.pop()).text)
    mine(rows, tmp_path / "quiet", client=client, report=False, progress=False)
    mine(rows, tmp_path / "out", client=client, report=False)  # up to date
    assert len(notebook) == 1
    with pytest.raises(edgemill.InputError):
        mine(tmp_path / "none", tmp_path / "failed", client=client)
    assert len(notebook) == 1


def test_output_during_a_run(notebook: Shell) -> None:
    display = NotebookDisplay()
    display.show({"event": "stage_started", "stage": "read", "tasks": 4})
    display.show({"event": "task_done", "stage": "read", "done": 3, "tasks": 4})
    assert '<progress value="3" max="4"></progress> 3/4' in display.html()
    display.show({"event": "stage_finished", "stage": "read", "seconds": 1.25})
    display.show({"event": "stage_started", "stage": "bound", "tasks": 0})
    display.show({"event": "level", "level": 7, "unsettled": 12345, "edges": 20000})
    shown = Text(display.html())
    assert {"read", "1.25 s", "bound"} <= set(shown.text)
    assert "7,655 of 20,000 edges settled" in " ".join(shown.text)
    display.show({"event": "run_failed", "error": "x", "exit_code": 1})
    display.close()
    assert len(notebook) == 1 and "the run failed" in notebook[0]


def test_progress_on_stderr(rows: Path, client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    mine(rows, client=client)
    assert capsys.readouterr().err == ""
    mine(rows, client=client, progress=True)
    assert re.search(r"^read: [\d.]+ s, 1 task$", capsys.readouterr().err, re.MULTILINE)


def test_an_error_shows_only_the_users_call_and_the_message() -> None:
    """In the traceback that IPython requests from the error. A bug is shown with its whole traceback."""
    settings: Any = {"nuls": "drop"}
    with pytest.raises(edgemill.UsageError) as caught:
        mine("edges.parquet", **settings)
    caught.value.add_note("a note")
    call, message, note = caught.value._render_traceback_()
    assert Path(__file__).name in call and 'mine("edges.parquet", **settings)' in call
    assert (message, note) == ("KeywordError: unknown setting 'nuls'; did you mean nulls?", "a note")
    with pytest.raises(edgemill.InternalError) as bug:
        raise edgemill.InternalError("rows do not add up")
    whole = bug.value._render_traceback_()
    assert whole[0].startswith("Traceback") and whole[-1].endswith("InternalError: rows do not add up")


def test_previews_of_tables(tmp_path: Path) -> None:
    """Ten rows at most, whole columns, escaped text."""
    levels = dict.fromkeys(itertools.combinations(range(5), 2), 3) | dict.fromkeys(((4, 5), (5, 6), (6, 7)), 0)
    result = made(tmp_path / "out", levels, alone=[77])
    told = " ".join(html(result.edges).text)
    assert "edges 13 rows" in " ".join(told.split()) and told.count("…") == len(result.edges.schema)
    assert "null" in html(result.vertices).text and "…" not in html(result.vertices).text  # 9 rows, one without edges
    some = " ".join(html(result.edges.filter(pc.field("lambda") == 0)).text)
    assert "some of 13 rows" in " ".join(some.split()) and "…" not in some
    told = " ".join(html(edgemill.edges_of(result, edgemill.top(result, count=1)["id"][0])).text)
    assert "edges of a group" in told and "…" not in told
    named = made(tmp_path / "named", {("<b>a", "b\n&"): 0}, id_type=pa.string())
    shown = named.edges._repr_html_()
    assert "&lt;b&gt;a" in shown and "&amp;" in shown and "<b>a" not in shown and "b\n" not in shown


def test_a_preview_of_a_damaged_table(tmp_path: Path) -> None:
    result = made(tmp_path / "out", {(1, 2): 0})
    table = result.edges
    shutil.rmtree(result.path / "edges")
    assert "cannot be read" in "".join(html(table).text)
