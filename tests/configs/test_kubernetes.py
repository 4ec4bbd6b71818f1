"""What lies in configs/kubernetes goes by Kubernetes' schemas, and its commands and settings are ours and Dask's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import distributed
import kubernetes_validate
import pytest
import yaml
from dask.utils import parse_bytes
from distributed.cli import dask_scheduler, dask_worker

from commands import accepted, accepted_by_dask_cuda
from edgemill.pipeline import __version__
from in_process import call

FOLDER = Path(__file__).resolve().parents[2] / "configs" / "kubernetes"
OPERATOR = sorted(FOLDER.glob("dask*.yaml"))
HELM = sorted(FOLDER.glob("helm-*.yaml"))
IMAGE = f"registry.example.com/edgemill:{__version__}"
OF_THE_OPERATOR = {"DASK_WORKER_NAME", "DASK_SCHEDULER_ADDRESS"}
"""Variables that it adds."""
CHART = {
    "scheduler": {"image", "securityContext", "resources", "readinessProbe"},
    "worker": {"image", "securityContext", "replicas", "resources", "extraArgs", "mounts"},
    "jupyter": {"enabled"},
}
"""What we use of the chart's values."""
USER = {"runAsNonRoot": True, "runAsUser": 10001, "runAsGroup": 10001, "fsGroup": 10001}
"""The image's, to whose group the volumes belong."""


def manifest(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(path.read_text())
    return found


def cluster_of(found: dict[str, Any]) -> dict[str, Any]:
    """The specification of the cluster, alone or with its job."""
    spec: dict[str, Any] = found["spec"]
    return spec if found["kind"] == "DaskCluster" else dict(spec["cluster"]["spec"])


def pods(found: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """All specifications of pods."""
    cluster = cluster_of(found)
    yield from (cluster["scheduler"]["spec"], cluster["worker"]["spec"])
    if found["kind"] == "DaskJob":
        yield found["spec"]["job"]["spec"]


def validate(kind: str, spec: dict[str, Any]) -> None:
    whole = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "it"}, "spec": spec}
    kubernetes_validate.validate(whole, "1.31.0", strict=True)


def test_all_are_looked_at() -> None:
    assert [path.name for path in OPERATOR] == ["daskcluster.yaml", "daskjob-gpu.yaml", "daskjob.yaml"]
    assert [path.name for path in HELM] == ["helm-cpu.yaml", "helm-gpu.yaml"]


@pytest.mark.parametrize("path", OPERATOR, ids=lambda path: path.name)
def test_the_schemas(path: Path) -> None:
    found = manifest(path)
    assert found["apiVersion"] == "kubernetes.dask.org/v1"
    assert found["kind"] in {"DaskCluster", "DaskJob"}
    cluster = cluster_of(found)
    assert (set(cluster), set(cluster["scheduler"]), set(cluster["worker"])) == (
        {"scheduler", "worker"},
        {"spec", "service"},
        {"replicas", "spec"},
    )
    for spec in pods(found):
        validate("Pod", spec)
        with pytest.raises(kubernetes_validate.ValidationError):
            validate("Pod", spec | {"container": []})
    validate("Service", cluster["scheduler"]["service"])


@pytest.mark.parametrize("path", OPERATOR, ids=lambda path: path.name)
def test_what_refers_to_what(path: Path) -> None:
    found = manifest(path)
    name, cluster = found["metadata"]["name"], cluster_of(found)
    service = cluster["scheduler"]["service"]
    assert service["selector"] == {"dask.org/cluster-name": name, "dask.org/component": "scheduler"}
    ports = {port["name"]: port["containerPort"] for port in cluster["scheduler"]["spec"]["containers"][0]["ports"]}
    assert {port["targetPort"]: port["port"] for port in service["ports"]} == ports
    kind = "gpu" if "gpu" in path.name else "cpu"
    for spec in pods(found):
        (container,) = spec["containers"]
        assert container["image"] == f"{IMAGE}-{kind}"
        assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in spec["volumes"]}
        asked = container["resources"]["limits"].get("nvidia.com/gpu")
        assert asked == ("1" if kind == "gpu" and "worker" in container["command"] else None)


def made_by(found: dict[str, Any]) -> Iterator[str]:
    """What a manifest of ours has made of it, each with its kind: by the operator's rules, and by itself."""
    kind, name = found["kind"], found["metadata"]["name"]
    yield f"{kind} {name}"
    if kind in {"DaskCluster", "DaskJob"}:
        yield from (f"Deployment {name}-scheduler", f"Service {name}-scheduler", f"DaskWorkerGroup {name}-default")
    if kind == "DaskJob":
        yield from (f"DaskCluster {name}", f"Pod {name}-runner")


def test_manifests_are_not_in_each_others_way() -> None:
    """A job whose cluster has the name of one that stays would run on that, and take it away at the end."""
    files = sorted(FOLDER.glob("[!h]*.yaml"))
    assert len(files) == 4
    made = [name for path in files for found in yaml.safe_load_all(path.read_text()) for name in made_by(found)]
    for path in HELM:
        (release,) = re.findall(r"^#     helm install (\S+) dask ", path.read_text(), re.MULTILINE)
        made += [f"{kind} {release}-dask-scheduler" for kind in ("Deployment", "Service")]
        assert f"--scheduler tcp://{release}-dask-scheduler:8786" in path.read_text()
    assert sorted(set(made)) == sorted(made)


def test_what_is_said_of_names() -> None:
    """Commands on the page, and at the head of each file, name what is made."""
    made: dict[str, set[str]] = {}
    for path in OPERATOR:
        for kind, name in (entry.split() for entry in made_by(manifest(path))):
            made.setdefault(kind.lower(), set()).add(name)
    texts = [path.read_text() for path in (*OPERATOR, FOLDER.parent.parent / "docs" / "kubernetes.md")]
    called = re.compile(r"kubectl (?:get|delete|scale|logs)(?: --\S+)* (?:(pod|daskjob|daskworkergroup) )?([\w-]+)")
    said = [found for text in texts for found in called.findall(text)]
    assert len(said) >= 8
    for kind, name in said:
        assert name in made[kind or "pod"], (kind, name)


@pytest.mark.parametrize("path", OPERATOR, ids=lambda path: path.name)
def test_a_restricted_namespace_takes_the_pods(path: Path) -> None:
    """By Kubernetes' Pod Security Standards; and they may write to their volumes."""
    for spec in pods(manifest(path)):
        assert spec["securityContext"] == USER | {"seccompProfile": {"type": "RuntimeDefault"}}
        (container,) = spec["containers"]
        assert container["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


@pytest.mark.parametrize("path", OPERATOR, ids=lambda path: path.name)
def test_the_environment(path: Path) -> None:
    known = dask.config.collect([str(Path(distributed.__file__).parent)], env={})
    for spec in pods(manifest(path)):
        (container,) = spec["containers"]
        mounts = [mount["mountPath"] for mount in container["volumeMounts"]]
        for name, value in ((entry["name"], entry["value"]) for entry in container["env"]):
            key = name.removeprefix("DASK_").lower().replace("__", ".")
            assert name.startswith("DASK_")
            assert dask.config.get(key, default=0, config=known) != 0, f"Dask knows no {key}"
            assert not value.startswith("/") or any(value.startswith(mount) for mount in mounts)
        encrypted = dask.config.collect(
            [str(Path(distributed.__file__).parent)], {e["name"]: e["value"] for e in container["env"]}
        )
        assert dask.config.get("distributed.comm.require-encryption", config=encrypted) is True


@pytest.mark.parametrize("path", OPERATOR, ids=lambda path: path.name)
def test_the_commands(path: Path) -> None:
    found = manifest(path)
    cluster, address = cluster_of(found), f"tls://{found['metadata']['name']}-scheduler:8786"
    scheduler, worker, *run = (
        [*spec["containers"][0]["command"], *map(str, spec["containers"][0]["args"])] for spec in pods(found)
    )
    assert scheduler[:2] == ["dask", "scheduler"]
    options = accepted(dask_scheduler.main, scheduler[2:])
    assert (options["protocol"], options["port"], options["dashboard_address"]) == ("tls", "8786", ":8787")

    limits = cluster["worker"]["spec"]["containers"][0]["resources"]["limits"]
    if "cuda" in worker:
        assert worker[:3] == ["dask", "cuda", "worker"]
        taken = accepted_by_dask_cuda(worker[3:])
        assert taken["--resources"] == "GPU=1"
    else:
        assert worker[:2] == ["dask", "worker"]
        accepted(dask_worker.main, worker[2:])
        taken = dict(word.partition("=")[::2] for word in worker[3:])
    assert address in worker
    assert taken["--preload"] == "edgemill.pipeline.preload"
    assert taken["--nthreads"] == limits["cpu"]
    assert parse_bytes(taken["--memory-limit"]) == parse_bytes(limits["memory"])
    for words in run:
        settings = settings_of(words)
        assert settings["cluster"]["scheduler"] == address
        assert settings["cluster"]["least_workers"] == cluster["worker"]["replicas"]
        assert settings["cluster"]["device"] == ("gpu" if "cuda" in worker else "cpu")


def settings_of(words: list[str]) -> dict[str, Any]:
    """What our command makes of its arguments."""
    assert words[:2] == ["edgemill", "run"]
    done = call(*words[1:], "--print-config")
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = yaml.safe_load(done.output)
    return found


@pytest.mark.parametrize("path", HELM, ids=lambda path: path.name)
def test_helm(path: Path) -> None:
    """Arguments as the chart puts them together (its templates for scheduler and worker)."""
    values, kind = manifest(path), path.stem.removeprefix("helm-")
    assert {section: set(own) for section, own in values.items()} == CHART
    worker, limits = values["worker"], values["worker"]["resources"]["limits"]
    for part in (values["scheduler"], worker):
        assert f"{part['image']['repository']}:{part['image']['tag']}" == f"{IMAGE}-{kind}"
        assert part["securityContext"] == USER
    accepted(dask_scheduler.main, ["--port=8786", "--dashboard-address=:8787"])
    words = ["edgemill-dask-scheduler:8786", "--nthreads", limits["cpu"], "--memory-limit", limits["memory"]]
    words += ["--no-dashboard", "--dashboard-address", "8790", *worker["extraArgs"]]
    if kind == "gpu":
        assert accepted_by_dask_cuda(words)["--resources"] == "GPU=1"
        assert (worker["image"]["dask_worker"], limits["nvidia.com/gpu"]) == ("dask-cuda-worker", "1")
    else:
        assert accepted(dask_worker.main, words)["nthreads"] == 8
        assert worker["image"]["dask_worker"] == "dask-worker"
    assert parse_bytes(limits["memory"]) >= 2**35
    container = {"name": "worker", "resources": worker["resources"], "volumeMounts": worker["mounts"]["volumeMounts"]}
    pod = {"containers": [container], "volumes": worker["mounts"]["volumes"]}
    validate("Pod", pod | {"securityContext": worker["securityContext"]})
    scheduler = {"name": "scheduler"} | {key: values["scheduler"][key] for key in ("resources", "readinessProbe")}
    validate("Pod", {"containers": [scheduler]})
