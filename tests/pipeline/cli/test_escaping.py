"""Names with terminal escapes, markup or text direction overrides are shown as text and have no effect."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from rich.table import Table

from edgemill.pipeline import Result, mine
from edgemill.pipeline.events import Events, as_line
from edgemill.pipeline.messages.terminal import EscapedStream, console_on, escaping
from edgemill.pipeline.messages.wording import escaped, has_controls, in_json, one_line
from edgemill.pipeline.monitor.display import LineDisplay, LiveDisplay
from edgemill.pipeline.settings.sources import as_yaml, make_settings
from in_process import call

EVIL = "\x1b[31m[red]\x07\x7f\x9b2J\u202e\u2066\r\nerror: fake"
SHOWN = r"\x1b[31m[red]\x07\x7f\x9b2J\u202e\u2066\x0d\x0aerror: fake"
FORBIDDEN = [chr(code) for code in (*range(9), *range(11, 32), *range(0x7F, 0xA0), *range(0x202A, 0x202F))]
FORBIDDEN += [chr(code) for code in (*range(0x2066, 0x206A), 0xD800, 0xDFFF)]
OF_RICH = re.compile(r"\x1b\[(\d+(;\d+)*m|\?25[lh]|2K|\d*A)|\r")
"""Control sequences for colours and cursor movements."""


@pytest.mark.parametrize("control", FORBIDDEN)
def test_each_of_them(control: str) -> None:
    code = ord(control)
    expected = f"a\\x{code:02x}b" if code < 256 else f"a\\u{code:04x}b"
    assert has_controls(control)
    assert escaped(f"a{control}b") == one_line(f"a{control}b") == expected
    text = in_json(json.dumps({control: control}, ensure_ascii=False))
    assert not has_controls(text)
    assert json.loads(text) == {control: control}


def test_what_stays() -> None:
    text = "é λ\u200d\u05d0 \\x1b [red]\t\n"
    assert (escaped(text), has_controls(text), in_json(text)) == (text, False, text)
    assert one_line("a\tb\n") == r"a\x09b\x0a"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """A run with such names of columns, file, vertices and output."""
    folder = tmp_path_factory.mktemp("evil")
    ids = [f"{EVIL}{number}" for number in range(4)]
    ends = [(a, b) for a in ids for b in ids if a < b]
    table = pa.table({f"source{EVIL}": [a for a, _ in ends], f"target{EVIL}": [b for _, b in ends]})
    pq.write_table(table, folder / f"edges{EVIL.replace('/', '')}.parquet")
    return mine(folder, folder.with_name(f"{folder.name} out {EVIL}"), device="cpu", partitions=1)


def commands(result: Result) -> dict[str, list[str]]:
    out, rows = str(result.path), str(result.path).replace(" out " + EVIL, "")
    return {
        "show": ["show", out],
        "status": ["status", out],
        "top": ["top", out],
        "of": ["of", out, f"{EVIL}0"],
        "of none": ["of", out, f"nobody{EVIL}"],
        "diff": ["diff", out, out],
        "verify": ["verify", out],
        "report": ["report", out],
        "plan": ["plan", "--input", rows, "--output", out],
        "no column": ["plan", "--input", rows, "--output", out, "--source-column", EVIL, "--target-column", "b"],
        "no input": ["plan", "--input", f"{rows}{EVIL}", "--output", out],
        "run": ["run", "--input", rows, "--output", out, "--device", "cpu", "--set", "partitioning.count=1"],
        "refused": ["run", "--input", rows, "--output", out, "--set", "partitioning.count=3", "--verbose"],
        "set": ["run", "--set", f"{EVIL}=1"],
        "config": ["run", "--input", rows, "--output", out, "--print-config"],
        "option": ["run", f"--{EVIL}"],
        "command": [EVIL],
        "debug": ["show", f"{out}/{EVIL}", "--debug"],
    }


NAMES = ["show", "status", "top", "of", "of none", "diff", "verify", "report", "plan", "no column", "no input", "run"]
NAMES += ["refused", "set", "config", "option", "command", "debug"]


@pytest.mark.parametrize("name", NAMES)
def test_what_a_command_prints(made: Result, name: str) -> None:
    ended = call(*commands(made)[name])
    assert ended.exit_code in (0, 1, 2, 3)  # 1: the status of an output after a run that was refused
    assert not has_controls(ended.output), ended.output
    if name not in ("top", "diff", "verify"):
        assert "\\x1b" in ended.output.replace("\\e", "\\x1b")
    if name not in ("config", "debug"):
        assert not re.search("^error: fake", ended.output, re.MULTILINE)


@pytest.mark.parametrize("name", ["show", *(pytest.param(name, marks=pytest.mark.slow) for name in ("status", "of"))])
def test_what_reaches_a_terminal(made: Result, name: str) -> None:
    terminal, end = pty.openpty()
    command = [sys.executable, "-m", "edgemill.pipeline", *commands(made)[name]]
    given = os.environ | {"TERM": "xterm-256color", "COLUMNS": "250"}
    with subprocess.Popen(command, stdin=end, stdout=end, stderr=end, env=given) as running:
        os.close(end)
        content = b""
        while chunk := _read(terminal):
            content += chunk
        assert running.wait() in (0, 1)
    os.close(terminal)
    text = OF_RICH.sub("", content.decode())
    assert not has_controls(text), text
    assert r"\x1b[31m[red]\x07" in text.replace("\n", "")


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # the other end is closed
        return b""


@pytest.mark.parametrize("name", ["status", "of"])
def test_json_is_escaped_as_json(made: Result, name: str) -> None:
    ended = call(*commands(made)[name], "--json")
    assert ended.exit_code in (0, 1)
    assert not has_controls(ended.output)
    for line in ended.stdout.splitlines():
        json.loads(line)
    if name == "status":
        assert json.loads(ended.stdout)["output"] == str(made.path)


def test_files_of_a_result(made: Result) -> None:
    for name in ("report.html", "log.jsonl", "manifest.json"):
        text = (made.path / name).read_text("utf-8")
        start = text.index("<header>") if name == "report.html" else 0  # Bokeh's scripts come after the page
        end = text.index("<footer>") if name == "report.html" else None
        assert not has_controls(text[start:end]), name
    page = (made.path / "report.html").read_text("utf-8")
    assert SHOWN in page
    assert page.index(r"\x1b[31m") < page.index("<header>")  # the title
    assert made.manifest.input.source_column == f"source{EVIL}"


def test_events_are_lines_of_json_whatever_they_hold() -> None:
    line = as_line({"path": f"{EVIL}\ud800"})
    assert not has_controls(line)
    assert line.count("\n") == 1
    assert json.loads(line) == {"path": f"{EVIL}\ud800"}
    line.encode()


@pytest.mark.parametrize("verbose", [True, False])
def test_displays(verbose: bool) -> None:
    told, live = io.StringIO(), io.StringIO()
    for listener in (LineDisplay(told, verbose), LiveDisplay(console_on(live, 200))):
        with Events(listener) as events:
            with events.stage(EVIL, 1):
                events.emit("serving", what="metrics", address=EVIL)
            events.emit("performance_report_failed", reason=EVIL)
    for text in (told.getvalue(), live.getvalue()):
        assert not has_controls(OF_RICH.sub("", text)), text
        assert f"metrics: {SHOWN}" in text


def test_a_console_takes_names_for_text() -> None:
    file = io.StringIO()
    console, table = console_on(file, 100), Table()
    table.add_row("[red]a[/red]", ":smile:", "\x1b[2Jb")
    console.print(table)
    console.print("[bold]c[/nonsense]", "\x9bd")
    assert not has_controls(file.getvalue())
    for text in ("[red]a[/red]", ":smile:", r"\x1b[2Jb", "[bold]c[/nonsense]", r"\x9bd"):
        assert text in file.getvalue()


def test_streams_are_escaped_for_whoever_writes(capsys: pytest.CaptureFixture[str]) -> None:
    with escaping():
        print("\x1b[2Jout")
        sys.stdout.writelines(["\x9ba", "\u202eb\n"])
        print("\x07err", file=sys.stderr)
        stream: Any = sys.stdout
        assert isinstance(stream, EscapedStream)
        assert not hasattr(stream, "buffer")
        with escaping():
            print("\\x1b\x1b")
    assert tuple(capsys.readouterr()) == ("\\x1b[2Jout\n\\x9ba\\u202eb\n\\x1b\\x1b\n", "\\x07err\n")
    assert not isinstance(sys.stdout, EscapedStream)


def test_settings_are_read_again_as_they_are() -> None:
    for column in (EVIL, "\u202e", "é"):
        text = as_yaml(make_settings("edges", "out", source_column=column, target_column="b"))
        assert not has_controls(text)
        assert yaml.safe_load(text)["input"]["source_column"] == column
    assert "é" in text


def test_a_group_on_a_terminal_and_in_a_pipe(made: Result, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (group,) = made.dn_graphs.to_table().column("id").to_pylist()
    command = ["subgraph", str(made.path), "--dn-graph", str(group)]
    piped = call(*command)
    assert EVIL.encode() in piped.stdout_bytes
    monkeypatch.setattr("edgemill.pipeline.messages.terminal.EscapedStream.isatty", lambda stream: True, raising=False)
    shown = call(*command)
    assert (shown.exit_code, has_controls(shown.output)) == (0, False)
    assert r"\x1b[31m[red]" in shown.output
