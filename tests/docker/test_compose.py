"""compose.yaml against what it starts: commands, settings, ports, folders, volumes and certificates."""

from __future__ import annotations

import re
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
import dask
import distributed  # noqa: F401 -- brings its part of Dask's configuration
import pytest
import yaml
from distributed.cli import dask_scheduler, dask_worker

from containers import DOCKER, ROOT, compose, variables
from in_process import call

FILES = [("compose.yaml",), ("compose.yaml", "compose.dashboard.yaml"), ("compose.yaml", "compose.gpu.yaml")]
DOCKERFILE = (DOCKER / "Dockerfile").read_text()


@pytest.fixture(params=FILES, ids=lambda names: names[-1])
def project(request: pytest.FixtureRequest) -> dict[str, Any]:
    return compose(*request.param)


def parsed(command: click.Command, arguments: list[str]) -> dict[str, Any]:
    """The arguments as the command takes them; what it does not know would be left over."""
    context = command.make_context("it", list(arguments), ignore_unknown_options=False)
    assert not context.args
    return context.params


def scheduler(project: dict[str, Any]) -> dict[str, Any]:
    dask_command, name, *arguments = project["services"]["scheduler"]["command"]
    assert (dask_command, name) == ("dask", "scheduler")
    return parsed(dask_scheduler.main, arguments)


def worker(project: dict[str, Any]) -> dict[str, Any]:
    command = project["services"]["worker"]["command"]
    if command[:3] == ["dask", "cuda", "worker"]:
        try:
            return parsed(import_module("dask_cuda.cli").worker, command[3:])
        except ImportError:  # its options here are those of `dask worker`
            return parsed(dask_worker.main, command[3:])
    assert command[:2] == ["dask", "worker"]
    return parsed(dask_worker.main, command[2:])


def test_parts_of_dask_find_each_other(project: dict[str, Any]) -> None:
    started, joined = scheduler(project), worker(project)
    assert joined["scheduler"] == f"{started['protocol']}://scheduler:{started['port']}"
    for name, options, path in (("scheduler", started, "health"), ("worker", joined, "ready")):
        served = options["dashboard_address"].rpartition(":")[2]
        assert project["services"][name]["environment"]["HEALTH_URL"] == f"http://127.0.0.1:{served}/{path}"
        assert project["services"][name]["healthcheck"]["test"] == ["CMD", "healthcheck.sh"]
        words = project["services"][name]["command"]
        assert all(find_spec(module) for option, module in pairwise(words) if option == "--preload")


def test_the_command_takes_the_job(project: dict[str, Any]) -> None:
    command = project["services"]["job"]["command"]
    shown = call(*command, "--print-config")
    assert shown.exit_code == 0, shown.output
    settings = yaml.safe_load(shown.output)
    assert settings["cluster"]["scheduler"] == worker(project)["scheduler"]
    volumes = dict(mount.split(":")[:2] for mount in project["services"]["job"]["volumes"] if ":" in mount)
    folder, _, name = settings["input"]["path"].removeprefix("/").partition("/")
    [source] = [source for source, target in volumes.items() if target == f"/{folder}"]
    assert (DOCKER / source / name).is_file()
    assert str(Path(settings["output"]["path"]).parent) == volumes["results"]


def test_dask_knows_the_settings(project: dict[str, Any]) -> None:
    given = {
        name: value
        for service in project["services"].values()
        for name, value in service.get("environment", {}).items()
        if name.startswith("DASK_")
    }
    here: dict[str, Any] = {}
    without: dict[str, Any] = {}
    dask.config.refresh(config=here, paths=[], env=given)
    dask.config.refresh(config=without, paths=[], env={})
    assert paths(here) == paths(without), "a setting that Dask does not have"
    comm = here["distributed"]["comm"]
    assert comm["require-encryption"] is True
    assert comm["tls"]["ca-file"] == "/certificates/ca.pem"
    for role in ("scheduler", "worker", "client"):
        assert comm["tls"][role] == {"cert": "/certificates/node.pem", "key": "/certificates/node-key.pem"}


def paths(config: Any, before: str = "") -> set[str]:
    """The names of all settings, with dots."""
    if not isinstance(config, dict) or not config:
        return {before}
    return {path for key, value in config.items() for path in paths(value, f"{before}.{key}" if before else key)}


def test_who_may_do_what(project: dict[str, Any]) -> None:
    services = project["services"]
    for name, service in services.items():
        assert service["read_only"] and service["cap_drop"] == ["ALL"] and service["init"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert re.fullmatch(r"\d+[mg]", service["deploy"]["resources"]["limits"]["memory"])
        assert service["restart"] == ("unless-stopped" if name in {"scheduler", "worker"} else "no")
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))
        writes = [mount for mount in service["volumes"] if mount.startswith("certificates:") and mount[-3:] != ":ro"]
        assert bool(writes) == (name == "certificates")
    assert [name for name, service in services.items() if "ports" in service] in ([], ["scheduler"])
    assert "ports" not in str(compose("compose.yaml"))


def test_what_is_named_is_there(project: dict[str, Any]) -> None:
    services = project["services"]
    folders = set(re.findall(r"(?<=\s)/\w[\w/]*", " ".join(re.findall(r"install --directory.*", DOCKERFILE))))
    assert folders == {"/certificates", "/results", "/scratch", "/var/cache/edgemill"}
    used = set()
    for service in services.values():
        for before, how in service.get("depends_on", {}).items():
            ends = services[before]["restart"] == "no"
            meanwhile = "service_started" if before == "worker" else "service_healthy"
            assert how["condition"] == ("service_completed_successfully" if ends else meanwhile)
        for mount in service["volumes"]:
            source, _, target = mount.removesuffix(":ro").rpartition(":")
            assert target in folders or (target == "/input" and mount.endswith(":ro"))
            used.add(source) if re.fullmatch(r"\w*", source) else None
        place = service["build"]
        assert (DOCKER / place["context"]).resolve() == ROOT
        assert (ROOT / place["dockerfile"]).is_file()
        assert f" AS {place['target']}\n" in DOCKERFILE
        assert service["image"] == f"edgemill:{place['target']}"
        for script in (service.get("entrypoint", []), service.get("healthcheck", {}).get("test", ["CMD"])[1:]):
            assert all((DOCKER / name).stat().st_mode & 0o111 for name in script)
    assert used - {""} == set(project["volumes"])


def test_a_slow_worker_does_not_refuse_the_job(project: dict[str, Any]) -> None:
    """Compose never starts what depends on a container that was unhealthy once; the run itself waits for workers."""
    job = project["services"]["job"]
    assert job["depends_on"]["worker"] == {"condition": "service_started"}
    assert any(word.startswith("--set=cluster.least_workers=") for word in job["command"])
    for name in ("scheduler", "worker"):
        assert project["services"][name]["healthcheck"]["start_period"] == "300s"


def test_every_variable_is_documented() -> None:
    page = (ROOT / "docs" / "containers.md").read_text()
    named = set().union(*(variables(name) for names in FILES for name in names))
    assert named == set(re.findall(r"^\| `(EDGEMILL_\w+)` \|", page, re.MULTILINE))


def test_an_unknown_option_would_be_noticed() -> None:
    with pytest.raises(click.NoSuchOption):
        parsed(dask_worker.main, ["tls://scheduler:8786", "--no-such-option", "1"])
    shown = call("run", "--no-such-option")
    assert shown.exit_code == 2
