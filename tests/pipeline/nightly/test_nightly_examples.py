"""configs/nightly.yaml and the schedules that run it: each is valid for its scheduler and names a valid command."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from configparser import ConfigParser
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import click
import kubernetes_validate
import pytest
import yaml

from edgemill.pipeline import Result, __version__, load_settings
from edgemill.pipeline.cli import edgemill
from edgemill.pipeline.settings import dates
from edgemill.pipeline.settings.models import Settings
from edgemill.tasks import errors
from edgemill.tasks.generate import generate

CONFIGS = Path(__file__).resolve().parents[3] / "configs"
NIGHTLY = CONFIGS / "nightly"
CODES = {kind.exit_code for kind in vars(errors).values() if isinstance(kind, type) and hasattr(kind, "exit_code")}
FINAL = {errors.UsageError.exit_code, errors.InputError.exit_code, errors.NotConverged.exit_code}
"""Exit codes after which a retry would fail again."""


def settings_of(command: Sequence[str], tmp_path: Path, text: str | None = None) -> Settings:
    """The parsed settings of a command line."""
    program, name, *arguments = command
    assert Path(program).name == "edgemill"
    called = edgemill.commands[name]
    context = called.make_context(name, [*arguments])
    given = {key: value for key, value in context.params.items() if value and value != "text"}
    assert given.keys() <= {"config", "date", "assignments"}
    config = tmp_path / "nightly.yaml"
    config.write_text(text or (CONFIGS / "nightly.yaml").read_text())
    assert Path(given["config"]).name == config.name
    return load_settings(config, {"nightly.date": given["date"]} if "date" in given else {})


STARTS = [
    datetime(2026, 11, 21, 2, 15, tzinfo=UTC),  # on time
    datetime(2026, 11, 21, 23, 45, tzinfo=UTC),  # late, or a retry
    datetime(2026, 11, 22, 0, 30, tzinfo=UTC),  # made up for after midnight
]
THE_SAME_DAY = ["2026-11-20"] * len(STARTS)


def days_of_starts(
    command: Sequence[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None = None
) -> list[str | None]:
    """The days that the command mines when it starts at these times."""
    days = []
    for start in STARTS:
        monkeypatch.setattr(dates, "datetime", clock_at(start))
        days.append(settings_of(command, tmp_path, text).nightly.date)
    monkeypatch.undo()
    return days


def clock_at(time: datetime) -> type[datetime]:
    class Clock(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Any:
            return time.astimezone(tz)

    return Clock


def expanded(container: dict[str, Any], **changed: str) -> list[str]:
    """The command of a container with its variables, some of them changed."""
    variables = {variable["name"]: variable["value"] for variable in container["env"]} | changed
    return [re.sub(r"\$\((\w+)\)", lambda found: variables[found[1]], word) for word in container["command"]]


def test_the_settings(tmp_path: Path) -> None:
    settings = settings_of(["edgemill", "run", "configs/nightly.yaml", "--date", "2026-11-20"], tmp_path)
    assert settings.input.path == "edges/2026-11-20"
    assert settings.output.path == "results/2026-11-20"
    assert (settings.input.complete_marker, settings.nightly.keep, settings.output.overwrite) == ("_SUCCESS", 14, True)


def test_another_command_would_be_noticed(tmp_path: Path) -> None:
    for command in (["edgemill", "run", "nightly.yaml", "--day", "x"], ["edgemill", "run", "nightly.yaml", "two"]):
        with pytest.raises(click.UsageError):
            settings_of(command, tmp_path)


def test_cron(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [line for line in (NIGHTLY / "crontab").read_text().splitlines() if line and not line.startswith("#")]
    variables = [line for line in lines if re.match(r"[A-Z]+=", line)]
    [entry] = [line for line in lines if line not in variables]
    *times, command = entry.split(None, 5)
    ranges = zip(times, ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7)), strict=True)
    for field, (low, high) in ranges:
        assert field == "*" or all(low <= int(number) <= high for number in re.split("[-,]", field))
    assert "%" not in command  # cron takes it for the end of the line
    words = shlex.split(command)
    settings_of(words[: words.index(">>")], tmp_path)
    assert days_of_starts(words[: words.index(">>")], tmp_path, monkeypatch) == THE_SAME_DAY


def unit(name: str) -> dict[str, dict[str, str]]:
    parser = ConfigParser(interpolation=None, comment_prefixes=("#",), strict=False)  # lists in several lines
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(NIGHTLY / name)
    return {section: dict(parser[section]) for section in parser.sections()}


def test_systemd_units(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service = unit("edgemill-nightly.service")["Service"]
    command = shlex.split(service["ExecStart"])
    assert days_of_starts(command, tmp_path, monkeypatch) == THE_SAME_DAY
    by_hand = re.search(
        r"^# An old day, by hand: .* (/opt/.*)$", (NIGHTLY / "edgemill-nightly.service").read_text(), re.M
    )
    assert by_hand is not None
    assert settings_of(shlex.split(by_hand[1]), tmp_path).nightly.date == "2026-11-20"
    assert {int(code) for code in service["RestartPreventExitStatus"].split()} == FINAL
    assert service["Type"] == "oneshot"
    assert service["Restart"] == "on-failure"
    assert unit("edgemill-nightly.timer")["Timer"]["OnCalendar"].endswith(" UTC")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd here")
def test_systemd_takes_them(tmp_path: Path) -> None:
    program = Path(sys.executable).with_name("edgemill")
    for name in ("edgemill-nightly.service", "edgemill-nightly.timer"):
        text = (NIGHTLY / name).read_text().replace("/opt/edgemill/bin/edgemill", str(program))
        (tmp_path / name).write_text(text)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *sorted(map(str, tmp_path.iterdir()))],
        capture_output=True,
        text=True,
        check=False,
    )
    ours = [line for line in done.stderr.splitlines() if "edgemill" in line]
    assert (done.returncode, ours) == (0, [])
    when = unit("edgemill-nightly.timer")["Timer"]["OnCalendar"]
    subprocess.run(["systemd-analyze", "calendar", when], check=True, capture_output=True)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd here")
def test_the_service_is_confined() -> None:
    """At most 3.0 of 10; more is worse."""
    unit = NIGHTLY / "edgemill-nightly.service"
    command = ["systemd-analyze", "security", "--no-pager", "--offline=true", "--threshold=30", str(unit)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"Overall exposure level for edgemill-nightly.service: [0-3]\.\d ", done.stdout)


def test_the_cron_job_of_kubernetes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config, job = yaml.safe_load_all((CONFIGS / "kubernetes/nightly-cronjob.yaml").read_text())
    for document in (config, job):
        kubernetes_validate.validate(document, "1.31", strict=True)
    assert job["spec"]["concurrencyPolicy"] == "Forbid"
    inner = job["spec"]["jobTemplate"]["spec"]
    pod = inner["template"]["spec"]
    assert pod["restartPolicy"] == "Never"
    [container] = pod["containers"]
    assert container["image"] == f"registry.example.com/edgemill:{__version__}-cpu"
    text = config["data"]["nightly.yaml"]
    settings = settings_of(expanded(container), tmp_path, text)
    assert days_of_starts(expanded(container), tmp_path, monkeypatch, text) == THE_SAME_DAY
    assert settings_of(expanded(container, DAY="2026-11-20"), tmp_path, text).nightly.date == "2026-11-20"
    places = tuple(f"{mount['mountPath']}/" for mount in container["volumeMounts"])
    assert all(path.startswith(places) for path in (settings.input.path, settings.output.path))
    assert all(variable["value"].startswith(places) for variable in container["env"] if variable["name"] != "DAY")
    rules = [rule["onExitCodes"] | {"action": rule["action"]} for rule in inner["podFailurePolicy"]["rules"][1:]]
    assert {rule["containerName"] for rule in rules} == {container["name"]}
    values = {rule["action"]: set(rule["values"]) for rule in rules}
    assert values["FailJob"] >= FINAL
    assert values["FailJob"] | values["Count"] == CODES - {1}
    volumes = {volume["name"] for volume in pod["volumes"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == volumes
    assert next(v["configMap"]["name"] for v in pod["volumes"] if "configMap" in v) == config["metadata"]["name"]
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(job | {"spec": job["spec"] | {"concurrency": 1}}, "1.31", strict=True)


def cron_job() -> tuple[dict[str, Any], dict[str, Any]]:
    """The pod, and its only container."""
    _, job = yaml.safe_load_all((CONFIGS / "kubernetes/nightly-cronjob.yaml").read_text())
    pod = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    return pod, pod["containers"][0]


def test_the_cron_job_writes_where_it_may(tmp_path: Path) -> None:
    """The image is read-only, so all other files must be on a writable volume."""
    config, _ = yaml.safe_load_all((CONFIGS / "kubernetes/nightly-cronjob.yaml").read_text())
    pod, container = cron_job()
    assert container["securityContext"]["readOnlyRootFilesystem"]
    image = dict(re.findall(r"(\w+)=(\S+)", (CONFIGS.parent / "docker" / "Dockerfile").read_text()))
    environment = image | {variable["name"]: variable["value"] for variable in container["env"]}
    output = settings_of(expanded(container), tmp_path, config["data"]["nightly.yaml"]).output.path
    written = [output, environment["EDGEMILL_CACHE_DIR"], environment["DASK_TEMPORARY_DIRECTORY"], "/tmp"]
    assert "TMPDIR" not in environment  # so temporary files are in /tmp
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    mounts = {mount["mountPath"]: mount for mount in container["volumeMounts"]}
    for path in written:
        mount = next(mounts[str(above)] for above in (Path(path), *Path(path).parents) if str(above) in mounts)
        assert not mount.get("readOnly"), path
        assert volumes[mount["name"]].keys() & {"persistentVolumeClaim", "emptyDir"}, path
    places = [(mount["name"], mount.get("subPath")) for mount in mounts.values()]
    assert len(set(places)) == len(places)  # none sees what another writes


@pytest.mark.slow
def test_a_night_writes_nowhere_else(tmp_path: Path) -> None:
    """A run writes only to the result and to the folders that image and job name; the rest of the disk is read-only."""
    can = subprocess.run(
        ["unshare", "--mount", "mount", "-o", "remount,ro,bind", "/"], capture_output=True, check=False
    )
    if can.returncode:
        pytest.skip("file systems cannot be mounted here")
    graphs, scratch, temporary = (tmp_path / name for name in ("graphs", "scratch", "tmp"))
    for folder in (graphs, scratch, temporary):
        folder.mkdir()
    generate("rmat", str(graphs / "edges" / "2026-11-20"), files=1, seed=4, scale=8, edge_factor=8)
    (graphs / "edges" / "2026-11-20" / "_SUCCESS").touch()
    config, _ = yaml.safe_load_all((CONFIGS / "kubernetes/nightly-cronjob.yaml").read_text())
    (tmp_path / "nightly.yaml").write_text(config["data"]["nightly.yaml"].replace("/graphs", str(graphs)))
    writable = " && ".join(f"mount --bind {folder} {folder}" for folder in (graphs, scratch, temporary))
    script = f'{writable} && mount -o remount,ro,bind / && ! touch /there && exec "$@"'
    command = [sys.executable, "-m", "edgemill.pipeline", "run", str(tmp_path / "nightly.yaml"), "--date", "2026-11-20"]
    places = {
        "EDGEMILL_CACHE_DIR": str(graphs / "cache"),
        "DASK_TEMPORARY_DIRECTORY": str(scratch),
        "TMPDIR": str(temporary),
        "HOME": "/nonexistent",
    }
    for more in ([], ["--workers", "1", "--fresh"]):
        done = subprocess.run(
            ["unshare", "--mount", "sh", "-c", script, "sh", *command, "--verbose", *more],
            capture_output=True,
            text=True,
            check=False,
            cwd="/",
            env=os.environ | places,
        )
        assert done.returncode == 0, done.stderr
        assert "arning" not in done.stderr
    assert Result(graphs / "results" / "latest").converged


def constants(tree: ast.Module) -> Iterator[tuple[str, Any]]:
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield name, ast.literal_eval(value)


@pytest.mark.parametrize("name", ["airflow_dag.py", "prefect_flow.py"])
def test_schedules_in_python(name: str, tmp_path: Path) -> None:
    """Their packages are not installed here, so the command is read from the source."""
    tree = ast.parse((NIGHTLY / name).read_text())
    known = dict(constants(tree))
    settings = settings_of([*known["COMMAND"], "2026-11-20"], tmp_path)
    assert settings.nightly.date == "2026-11-20"
    assert known["NO_RETRY"] == FINAL
    calls = [ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Call)]
    assert [call for call in calls if call.startswith("subprocess.run([*COMMAND, date], ")]
    assert "15 2 * * *" in {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}


class StandIn:
    """Airflow or Prefect as far as the examples use them: decorators that keep the functions, and arguments."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *modules: str) -> None:
        self.arguments: dict[str, Any] = {}
        """Of the decorator of the DAG or flow."""
        self.tasks: list[Callable[..., None]] = []
        self.runtime = SimpleNamespace(flow_run=SimpleNamespace(scheduled_start_time=None))
        own = {
            "dag": self.keep,
            "flow": self.keep,
            "task": self.task,
            "runtime": self.runtime,
            "Param": lambda default, **schema: default,
            "Cron": lambda cron, timezone: (cron, timezone),
            "CronDataIntervalTimetable": lambda cron, timezone: (cron, timezone),
            "AirflowException": RuntimeError,
            "AirflowFailException": RuntimeError,
        }
        for name in modules:
            module = ModuleType(name)
            vars(module).update(own)
            monkeypatch.setitem(sys.modules, name, module)
        self.called: list[list[str]] = []

        def called(command: list[str], check: bool) -> Any:
            self.called.append(command)
            return SimpleNamespace(returncode=0)

        monkeypatch.setattr(subprocess, "run", called)

    def keep(self, **arguments: Any) -> Callable[[Any], Any]:
        self.arguments = arguments
        return lambda function: function

    def task(self, function: Any = None, **arguments: Any) -> Any:
        def as_task(function: Callable[..., None]) -> Callable[..., None]:
            self.tasks.append(function)
            return (
                function if "airflow.sdk" not in sys.modules else lambda *_, **__: None
            )  # Airflow calls it when a run is due

        return as_task if function is None else as_task(function)


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, NIGHTLY / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_airflow_mines_the_days_of_a_backfill(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run has the parameters of the DAG, unless someone gives others, and its data interval, as from Airflow 3.3."""
    airflow = StandIn(monkeypatch, "airflow", "airflow.sdk", "airflow.sdk.exceptions")
    example("airflow_dag")
    [mine] = airflow.tasks
    given, (cron, timezone) = airflow.arguments["params"], airflow.arguments["schedule"]
    minute, hour, *_ = map(int, cron.split()[:2])
    assert (timezone, airflow.arguments["max_active_runs"]) == ("UTC", 1)
    for day in (17, 18, 19):
        start = datetime(2026, 11, day, hour, minute, tzinfo=UTC)
        run = SimpleNamespace(data_interval_start=start, run_after=start + timedelta(days=1))
        mine(params=given, dag_run=run)
    triggered = SimpleNamespace(data_interval_start=None, run_after=datetime(2026, 11, 21, 9, tzinfo=UTC))
    mine(params=given, dag_run=triggered)
    mine(params=given | {"date": "2026-11-01"}, dag_run=triggered)
    days = [command[command.index("--date") + 1] for command in airflow.called]
    assert days == [*(f"2026-11-{day}" for day in (17, 18, 19)), "2026-11-20", "2026-11-01"]


def test_prefect_mines_the_day_before_a_run_was_due(monkeypatch: pytest.MonkeyPatch) -> None:
    prefect = StandIn(monkeypatch, "prefect", "prefect.schedules")
    flow = example("prefect_flow").edgemill_nightly
    for day in (18, 19, 20):
        eastern = timezone(timedelta(hours=-5))
        prefect.runtime.flow_run.scheduled_start_time = datetime(2026, 11, day, 2, 15, tzinfo=UTC).astimezone(eastern)
        flow()
    flow("2026-11-01")
    days = [command[command.index("--date") + 1] for command in prefect.called]
    assert days == ["2026-11-17", "2026-11-18", "2026-11-19", "2026-11-01"]


def test_the_dag_takes_nothing_that_airflow_3_has_deprecated() -> None:
    tree = ast.parse((NIGHTLY / "airflow_dag.py").read_text())
    modules = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert {name for name in modules if name.startswith("airflow")} == {"airflow.sdk", "airflow.sdk.exceptions"}


def test_no_example_is_left_out() -> None:
    """Every file in the folder is tested."""
    assert sorted(path.name for path in NIGHTLY.iterdir() if path.name != "__pycache__") == [
        "airflow_dag.py",
        "crontab",
        "edgemill-nightly.service",
        "edgemill-nightly.timer",
        "prefect_flow.py",
    ]
