"""Runs what the tutorial and other pages say, and puts what comes out in its place.

python docs/making/tutorial.py

Blocks of `console` hold commands after `$ `, blocks of `pycon` statements after `>>> `, and below each what it printed.
"""

from __future__ import annotations

import code
import io
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from doctest import DocTestParser
from pathlib import Path
from tempfile import TemporaryDirectory

from click.testing import CliRunner

from edgemill.pipeline.cli import edgemill

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "tutorial.md"
PAGES = PAGE, ROOT / "docs" / "two-sided-tables.md"
HOME = "/home/you/edgemill"
"""What the page calls the folder that the commands run in."""
BLOCK = re.compile(r"(?<=```)(console|pycon)\n(.*?)(?=```)", re.DOTALL)
COMMAND = re.compile(r"^\$ ((?:.*\\\n)*.*)\n", re.MULTILINE)
VARIES = re.compile(
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d|(?<=127\.0\.0\.1:)\d+|(?<=^seconds )[ \d.]+$"
    r"|\d+ threads?|~?[\d.]+ [kMGT]iB(?!; columns)",
    re.MULTILINE,
)
"""Times, ports and what depends on the machine: not compared."""


def rerun(page: str, folder: Path) -> str:
    """The page with what its commands print now, in the order in which they stand there.

    They run in `folder`, which becomes the process's own, and must have the `tests/graphs` of the repository.
    """
    os.chdir(folder)
    python = code.InteractiveInterpreter()
    runs: Mapping[str, Callable[[str], Iterator[str]]] = {
        "console": _console,
        "pycon": lambda block: _statements(block, python),
    }
    return BLOCK.sub(lambda block: f"{block[1]}\n{''.join(runs[block[1]](block[2]))}", page)


def same(one: str, other: str) -> bool:
    """Whether two pages say the same but for what varies."""
    return VARIES.sub("…", one) == VARIES.sub("…", other)


def _console(block: str) -> Iterator[str]:
    for command in COMMAND.findall(block):
        yield f"$ {command}\n"
        yield _tidy(_output(command))


def _output(command: str) -> str:
    words = command.replace("\\\n", " ").split()
    if words[0] == "edgemill" and not {"|", ">", "&&"} & set(words):
        if words[1] == "explore":
            return _first_line(words)
        called = CliRunner().invoke(edgemill, words[1:], catch_exceptions=False)  # faster than a process
        if called.exit_code:
            raise RuntimeError(f"{command}: {called.stderr}")
        return called.stdout
    done = subprocess.run(["bash", "-c", command], env=_environment(), capture_output=True, text=True, check=True)
    return done.stdout


def _first_line(words: list[str]) -> str:
    """What a command that goes on until Ctrl-C says at first."""
    with subprocess.Popen(
        words, env=_environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        process.terminate()  # Ctrl-C is switched off for what a shell runs in the background
    return line


def _environment() -> dict[str, str]:
    return {**os.environ, "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}


def _statements(block: str, python: code.InteractiveInterpreter) -> Iterator[str]:
    for example in DocTestParser().get_examples(block):
        first, *more = example.source.splitlines()
        yield "".join([f">>> {first}\n", *(f"... {line}\n" for line in more)])
        printed = io.StringIO()
        with redirect_stdout(printed), redirect_stderr(printed):
            python.runsource(example.source, symbol="single")
        yield _tidy(printed.getvalue())


def _tidy(output: str) -> str:
    lines = output.replace(str(Path.cwd()), HOME).rstrip().splitlines()
    return "".join(f"{line.rstrip()}\n" for line in lines)


def main() -> None:
    """Write the pages anew."""
    for path in PAGES:
        with TemporaryDirectory() as folder:
            Path(folder, "tests").symlink_to(ROOT / "tests")
            page = rerun(path.read_text(encoding="utf-8"), Path(folder).resolve())
            os.chdir(ROOT)
        path.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
