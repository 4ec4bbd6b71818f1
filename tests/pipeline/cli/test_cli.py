"""The command: output and exit codes, with a stand-in for the run."""

from __future__ import annotations

import errno
import io
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from click.testing import Result
from rich.console import Console

from edgemill.kernels.runtime.device import Device
from edgemill.pipeline.cli import edgemill
from edgemill.pipeline.cli.show import print_result
from edgemill.pipeline.messages.exits import Terminated
from edgemill.pipeline.output.manifest import ExchangeRecord, Manifest, StageRecord
from edgemill.pipeline.settings.sources import SHORT_NAMES
from edgemill.tasks import errors
from in_process import call

WriteResult = Callable[..., Manifest]
NO_PIPE = "Error: no answer from an object store or the cluster: [Errno 32] a connection; run again\n"
PATHS = ["--input", "edges", "--output", "out"]


def stand_in(monkeypatch: pytest.MonkeyPatch, module: str, **functions: Callable[..., Any]) -> None:
    stand_in = ModuleType(module)
    vars(stand_in).update(functions)
    monkeypatch.setitem(sys.modules, module, stand_in)


def runs(monkeypatch: pytest.MonkeyPatch, outcome: Callable[..., Any]) -> None:
    stand_in(monkeypatch, "edgemill.pipeline.run.mining", mine_settings=outcome)


def test_run_prints_a_summary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write_result: WriteResult) -> None:
    from edgemill.pipeline.results.result import Result

    def mine_settings(settings: Any, *, client: object, events: Any, given: object) -> Result:
        assert (settings.input.path, settings.partitioning.count, client, given) == ("edges", 2, None, None)
        with events.stage("read", 3):
            pass
        (tmp_path / "manifest.json").unlink(missing_ok=True)
        write_result(tmp_path, run=events.run_id)
        return Result(tmp_path)

    runs(monkeypatch, mine_settings)
    result = call("run", *PATHS, "--partitions", "2", "--verbose")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "edges       3",
        "vertices    3",
        "triangles   1",
        "lambda max  1",
        "dropped     1 duplicate, 1 self-loop",
        "seconds     1.50",
        f"output      {tmp_path}",
        "",
        "next",
        "  edgemill show out   details: groups, counts, edges by lambda",
    ]
    assert result.stderr.startswith("read: ")
    assert call("run", *PATHS, "--partitions", "2", "--overwrite").stderr == ""


def test_run_cut_short_exits_5(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write_result: WriteResult) -> None:
    from edgemill.pipeline.results.result import Result

    write_result(tmp_path, converged=False, unsettled=2)
    runs(monkeypatch, lambda *_, **__: Result(tmp_path))
    result = call("run", *PATHS)
    assert result.exit_code == 5
    assert "output" in result.stdout
    assert re.search(r"^Error: a limit ended the run .*2 edges are unsettled", result.stderr, re.MULTILINE)


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (errors.UsageError("no"), 2, "Error: no\n"),
        (errors.InputError("no"), 3, "Error: no\n"),
        (errors.ClusterLost("no"), 4, "Error: no\n"),
        (errors.OutputLocked("no"), 6, "Error: no\n"),
        (errors.OutOfRoom("no"), 7, "Error: no\n"),
        (MemoryError(), 7, "Error: out of memory: start workers on more machines, or use a machine with more memory\n"),
        (OSError(errno.ENOSPC, "full", "f"), 7, "Error: no room left on the disk: f\n"),
        (BrokenPipeError(errno.EPIPE, "a connection"), 4, NO_PIPE),
        (KeyboardInterrupt(), 130, "Error: interrupted\n"),
        (Terminated(), 143, "Error: terminated\n"),
        (errors.InternalError("rows"), 1, "Error: rows\nrun with --debug for a traceback\n"),
        (errors.UsageError("no https://me:hunter2@host/e"), 2, "Error: no https://***@host/e\n"),
        (ValueError("odd"), 1, "Error: unexpected ValueError: odd\nrun with --debug for a traceback\n"),
    ],
)
def test_exit_code_and_message(monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, text: str) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    runs(monkeypatch, fail)
    result = call("run", *PATHS)
    assert (result.exit_code, result.stderr, result.stdout) == (code, text, "")


@pytest.mark.parametrize("arguments", [["--debug", "run", *PATHS], ["run", *PATHS, "--debug"]])
def test_debug_shows_the_traceback(monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> None:
    runs(monkeypatch, lambda *_, **__: 1 // 0)
    result = call(*arguments)
    assert result.exit_code == 1
    assert "Traceback" in result.stderr
    assert re.search(r"^Error: unexpected ZeroDivisionError: .* by zero\n\Z", result.stderr, re.MULTILINE)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["run"], "Error: --input and --output are required: give them, or set them in the settings file"),
        (["run", "absent.yaml"], "Error: cannot read the settings file absent.yaml"),
        (["run", *PATHS, "--partitions", "0"], "Error: --partitions: must be auto or a whole number"),
        (["run", *PATHS, "--partitions", "-1"], "got -1"),
        (["run", *PATHS, "--partitions", "many"], "got 'many'"),
        (["run", *PATHS, "--set", "cluster.gpus=1"], "Error: unknown setting cluster.gpus; known: device"),
        (["run", *PATHS, "--method", "guess"], "'guess' is not one of"),
        (["run", *PATHS, "--colour"], "No such option"),
        (["show", "absent"], "Error: there is no result at absent"),
        (["generate", "rmat", "--output", "x"], "Missing option '--scale'"),
    ],
)
def test_wrong_arguments_exit_2(arguments: list[str], text: str) -> None:
    result = call(*arguments)
    assert result.exit_code == 2
    assert text in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("command", ["run", "plan"])
def test_a_gpu_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("edgemill.kernels.runtime.device.device", lambda: Device("", 0, 0, "no CUDA driver"))
    result = call(command, *PATHS, "--device", "gpu")
    assert result.exit_code == 2
    first, *more = result.stderr.splitlines()
    assert re.fullmatch(r"Error: --device is gpu.* has none: no CUDA driver", first)
    assert [line.partition(": ")[2] for line in more] == [f"{tmp_path}/out.failed.log.jsonl"] * (command == "run")


def test_print_config_gives_the_settings_in_effect(pytestconfig: pytest.Config) -> None:
    config = str(pytestconfig.rootpath / "configs/laptop.yaml")
    for command in ("run", "plan"):
        result = call(command, config, "--partitions", "auto", "--workers", "2", "--set", "a=1", "--print-config")
        assert (result.exit_code, "unknown setting a" in result.stderr) == (2, True)
        result = call(command, config, "--partitions", "7", "--workers", "2", "--print-config")
        printed = yaml.safe_load(result.stdout)
        assert (printed["partitioning"]["count"], printed["cluster"]["workers"]) == (7, 2)


def test_every_short_name_has_a_flag() -> None:
    for command in ("run", "plan"):
        given = {parameter.name for parameter in edgemill.commands[command].params}
        assert set(SHORT_NAMES) <= given


@pytest.mark.parametrize(("fits", "code"), [(True, 0), (False, 7)])
def test_plan_prints_the_plan_and_refuses(monkeypatch: pytest.MonkeyPatch, fits: bool, code: int) -> None:
    def refusal(plan: object) -> errors.OutOfRoom | None:
        return None if fits else errors.OutOfRoom("5 of 4 GiB")

    stand_in(monkeypatch, "edgemill.pipeline.plan.choice", make_plan=lambda settings: object())
    stand_in(monkeypatch, "edgemill.pipeline.plan.fit", refusal=refusal, describe=lambda plan: "4 partitions")
    result = call("plan", *PATHS)
    assert (result.stdout, result.exit_code) == ("4 partitions\n", code)
    assert result.stderr == ("" if fits else "Error: 5 of 4 GiB\n")


def test_show_prints_the_summary(tmp_path: Path, write_result: WriteResult) -> None:
    write_result(tmp_path)
    result = call("show", str(tmp_path))
    assert result.exit_code == 0
    assert "3 edges, 3 vertices, 1 triangles" in result.stdout


@pytest.mark.parametrize("columns", [30, 60, 80, 120])
def test_show_cuts_no_digit_off(tmp_path: Path, write_result: WriteResult, columns: int) -> None:
    """In a narrow terminal bars and texts shrink; the rest may be wider than the terminal."""
    one, many = write_result(tmp_path), 10**13
    sizes = dict.fromkeys(("owned", "inner", "cut", "vertices"), many)
    manifest = one.model_copy(
        update={
            "partitions": [part.model_copy(update=sizes) for part in one.partitions],
            "how_bounded": one.bounding.model_copy(update={"evaluations": many}),
            "stages": [StageRecord(stage="triangulate", seconds=123456.78)] * 12,
            "lambda_low": one.lam.model_copy(update={"histogram": [(value, many) for value in range(3)]}),
        }
    )
    written = io.StringIO()
    print_result(manifest, "out", Console(width=columns, file=written), detail=True)
    shown, big = written.getvalue(), f"{many:,}"
    assert "…" not in shown
    lines = [line.split() for line in shown.splitlines()]
    assert [line for line in lines if line[1:] == [big] * 4] == [[str(part), *[big] * 4] for part in range(2)]
    assert [line[:3] for line in lines if line[1:2] == [big]][:3] == [
        [str(value), big, f"{many * (3 - value):,}"] for value in range(3)
    ]
    assert ["evaluations", big] in lines
    assert lines.count(["triangulate", "123456.78"]) == 12


def shown(manifest: Manifest) -> list[list[str]]:
    written = io.StringIO()
    print_result(manifest, "out", Console(width=100, file=written), detail=True)
    return [line.split() for line in written.getvalue().splitlines()]


def test_show_has_stages_that_add_up_to_the_run(tmp_path: Path, write_result: WriteResult) -> None:
    stages = [StageRecord(stage="bound", seconds=0.9), StageRecord(stage="publish", seconds=0.25)]
    lines = shown(write_result(tmp_path).model_copy(update={"stages": stages}))
    assert lines[-4:] == [
        ["bound", "0.90"],
        ["publish", "0.25"],
        ["outside", "of", "stages", "0.35"],
        ["the", "run", "1.50"],
    ]


def test_show_tells_no_figures_of_exchanges_that_are_not_recorded(tmp_path: Path, write_result: WriteResult) -> None:
    """Peeling records no exchanges, and 0.00 seconds would contradict the stage `bound`."""
    lines = shown(write_result(tmp_path).model_copy(update={"exchanges": []}))
    at = lines.index(["bounding"])
    assert [line[0] for line in lines[at + 1 : lines.index([], at)]] == ["method", "steps", "exchanges", "evaluations"]
    record = ExchangeRecord(1, 1, 0, 3, 0, messages=4, bytes=50, evaluations=3, seconds=0.5)
    lines = shown(write_result(tmp_path / "other").model_copy(update={"exchanges": [record]}))
    assert ["seconds", "in", "exchanges", "0.50"] in lines


@pytest.mark.parametrize(("ok", "code"), [(True, 0), (False, 1)])
def test_verify_prints_each_check(monkeypatch: pytest.MonkeyPatch, ok: bool, code: int) -> None:
    class Report:
        checks = (("manifest", True, ""), ("support", ok, "edge (1, 2) has 3"))

        def __init__(self) -> None:
            self.ok = ok

    asked: list[Any] = []

    def check(*arguments: Any) -> Report:
        asked.append(arguments)
        return Report()

    stand_in(monkeypatch, "edgemill.tasks.verify.result", verify=check)
    result = call("verify", "out", "--input", "edges", "--table-version", "3")
    assert result.exit_code == code
    assert asked == [("out", "edges", None, 3)]
    assert result.stdout.splitlines()[0] == "ok      manifest"
    assert ("1 of 2 checks failed" in result.stderr) is not ok


SIDES = "--left", "10", "--right", "8", "--edges", "5"


@pytest.mark.parametrize(
    ("kind", "parameters", "rows"),
    [
        ("rmat", ["--scale", "4", "--edge-factor", "2", "--permute"], 32),
        ("erdos-renyi", ["--vertices", "10", "--edges", "20"], 20),
        ("planted-cliques", ["--vertices", "10", "--edges", "5", "--cliques", "2", "--clique-size", "4"], 17),
        ("two-sided", [*SIDES, "--groups", "2", "--group-left", "3", "--group-right", "2"], 17),
        ("communities", ["--vertices", "50", "--communities", "4", "--community-size", "4", "--permute"], 24),
        ("grid", ["--width", "4", "--height", "3"], 23),
        ("chain", ["--triangles", "3"], 7),
        ("star", ["--leaves", "3"], 3),
        ("clique", ["--vertices", "5"], 10),
    ],
)
def test_generate_writes_every_kind(tmp_path: Path, kind: str, parameters: list[str], rows: int) -> None:
    out = tmp_path / "graph"
    result = call("generate", kind, *parameters, "--seed", "2", "--files", "2", "--output", str(out))
    assert (result.exit_code, result.stdout) == (0, f"{kind}: 2 files in {out}\n")
    assert sum(pq.read_metadata(file).num_rows for file in out.glob("*.parquet")) == rows


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_imports_stay_light() -> None:
    heavy = {"numba", "distributed", "dask", "pyarrow", "pandas", "numpy", "pydantic", "rich"}
    for module in ("edgemill", "edgemill.pipeline", "edgemill.pipeline.cli"):
        assert python(f"import sys, {module}; print({heavy} & set(sys.modules))").stdout == "set()\n"


@pytest.mark.parametrize("module", [pytest.param("edgemill", marks=pytest.mark.slow), "edgemill.pipeline"])
def test_public_names(module: str) -> None:
    code = f"""
import edgemill.pipeline.results.result  # submodules first: they must not take the place of what is exported
import {module} as pipeline
"""
    code += """
assert pipeline.load_settings(None, {"input.path": "a", "output.path": "b"}).input.path == "a"
assert pipeline.UsageError.exit_code == 2 and pipeline.__version__ and issubclass(pipeline.Result, object)
assert set(pipeline.__all__) <= set(dir(pipeline)) and not hasattr(pipeline, "nothing")
try:
    import edgemill.pipeline.run.mining
    assert callable(pipeline.mine)
except ImportError as error:
    assert error.name.startswith("edgemill.")
"""
    result = python(code)
    assert result.stderr == ""


def test_module_runs_as_the_command() -> None:
    command = [sys.executable, "-m", "edgemill.pipeline", "--version"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.startswith("edgemill ")


@pytest.mark.parametrize(
    ("closed", "told"), [(">&-", True), pytest.param("2>&-", False, marks=pytest.mark.slow), (">&- 2>&-", False)]
)
def test_streams_that_are_closed(tmp_path: Path, write_result: WriteResult, closed: str, told: bool) -> None:
    write_result(tmp_path / "out")
    for out, code in (("out", 0), ("none", 2)):
        command = f"{shlex.quote(sys.executable)} -m edgemill.pipeline show {shlex.quote(str(tmp_path / out))} {closed}"
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
        assert (done.returncode, bool(done.stderr)) == (code, told and code > 0), done.stderr


@pytest.mark.parametrize("cupy", [False, True])
def test_warm(cupy: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []

    def compile_part(name: str) -> float:
        called.append(name)
        return 1.25

    parts = {name: partial(compile_part, name) for name in ("lambda", "updates", "gpu")}
    monkeypatch.setattr("edgemill.pipeline.run.compiling.PARTS", parts)
    monkeypatch.setattr("edgemill.pipeline.stages.kernels.has_cupy", lambda: cupy)
    assert call("warm", "updates").output == "kernels of updates ready in 1.2 s\n"
    assert call("warm").exit_code == 0
    assert called == ["updates", "lambda", "updates", *["gpu"] * cupy]
    refused = call("warm", "lambda", "nothing")
    assert refused.exit_code == 2 and "'nothing'" in refused.output
    assert called == ["updates", "lambda", "updates", *["gpu"] * cupy]


def test_warm_gpu_without_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edgemill.pipeline.stages.kernels.has_cupy", lambda: False)
    refused = call("warm", "gpu")
    assert refused.exit_code == 2
    assert re.match(r"Error: kernels of gpu .*CuPy, which is not installed: install ", refused.stderr)


def test_warm_gpu_without_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("EDGEMILL_CACHE_DIR", str(tmp_path / "file"))
    refused = call("warm", "gpu")
    assert refused.exit_code == 2
    assert re.match(r"Error: .*folder for compiled kernels: Not a directory; set EDGEMILL_CACHE_DIR", refused.stderr)
