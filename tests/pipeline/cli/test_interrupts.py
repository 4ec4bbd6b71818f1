"""Signals at any moment of a command's start: its documented exit code, and no exception that a package replaces."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import runs
from edgemill.pipeline.messages import exits
from edgemill.pipeline.messages.exits import Terminated, interrupts

SIGNALS = {signal.SIGTERM: Terminated, signal.SIGINT: KeyboardInterrupt}
IN_A_CLASS = """
import os, signal
class Named:
    def __set_name__(self, owner, name):
        os.kill(os.getpid(), {number})
        for _ in range(1000):
            pass
class Model:
    field = Named()
done = True
"""
IN_A_MODULE = """
import os, signal
try:
    os.kill(os.getpid(), {number})
    for _ in range(1000):
        pass
except BaseException as error:
    raise ImportError("as pydantic does") from error
done = True
"""


@pytest.fixture(autouse=True)
def _default_handlers() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def wait() -> None:
    """Until a signal comes; the alarm of a test that hangs is one."""
    while True:
        signal.pause()


@pytest.mark.parametrize("text", [IN_A_CLASS, IN_A_MODULE], ids=["a class", "a module"])
@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_during_an_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals, text: str
) -> None:
    """The module is imported whole, and the exception follows."""
    name = f"interrupted_{number}_{'class' in text}"
    (tmp_path / f"{name}.py").write_text(text.format(number=int(number)))
    monkeypatch.syspath_prepend(str(tmp_path))
    module = None
    with pytest.raises(SIGNALS[number]), interrupts():
        module = import_module(name)
        wait()
    assert module is not None and module.done


@pytest.mark.parametrize("number", SIGNALS)
def test_an_import_that_does_not_end_is_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    (tmp_path / f"endless_{number}.py").write_text("import signal\nwhile True:\n    signal.pause()\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(exits, "_MOST_SECONDS", 0.15)
    with pytest.raises(SIGNALS[number]), interrupts():
        import_with_signal(f"endless_{number}", number)


def import_with_signal(name: str, number: signal.Signals) -> None:
    """Import a module in which the signal comes."""
    reader, writer = os.pipe()
    script = f"import os, signal; os.read({reader}, 1); os.kill({os.getpid()}, {int(number)})"
    with subprocess.Popen([sys.executable, "-c", script], pass_fds=[reader]):
        os.write(writer, b"1")
        os.close(reader)
        os.close(writer)
        import_module(name)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_outside_of_imports_is_raised_at_once(number: signal.Signals) -> None:
    with pytest.raises(SIGNALS[number]), interrupts():
        signal.raise_signal(number)
        raise AssertionError("it was not raised")


def test_a_second_sigterm_is_ignored_and_nothing_stays() -> None:
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGURG)}
    with interrupts():
        with pytest.raises(Terminated):
            signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
    assert before == {number: signal.getsignal(number) for number in before}


COMMAND = [sys.executable, "-c", "from edgemill.pipeline.cli import main; main()"]
CODES = {signal.SIGTERM: (0, 143, -15), signal.SIGINT: (0, 130, -2)}
"""Before the command has begun, and after its end, a signal ends the process itself: 143 and 130 in a shell."""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("trials", [1, pytest.param(150, marks=[pytest.mark.slow, pytest.mark.timeout(1200)])])
def test_signals_at_random_moments_of_the_start(tmp_path: Path, number: signal.Signals, trials: int) -> None:
    edges = runs.write_rows(tmp_path / "rows.parquet", [(1, 2), (2, 3), (1, 3)])
    words = [
        "run",
        "--input",
        str(edges),
        "--output",
        str(tmp_path / "out"),
        "--device",
        "cpu",
        "--fresh",
        "--overwrite",
    ]
    drawn = random.Random(int(number))
    for trial in range(trials):
        command = [*COMMAND, *words, "--set", "output.report=false"]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, preexec_fn=_default) as child:
            try:
                child.wait(0.05 + drawn.random() * 1.2)
            except subprocess.TimeoutExpired:
                child.send_signal(number)
            _, err = child.communicate()
        assert child.returncode in CODES[number], (trial, err)
        assert "unexpected" not in err, (trial, err)
        assert child.returncode == -2 or "Traceback" not in err, (trial, err)


def _default() -> None:
    """A background job of a shell ignores SIGINT."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
