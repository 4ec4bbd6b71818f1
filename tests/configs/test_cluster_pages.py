"""What the pages on clusters tell a reader to type: commands are taken, names exist, and certificates serve."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import dask
import distributed
import pytest
import yaml
from distributed.cli import dask_scheduler, dask_worker

from commands import accepted, accepted_by_dask_cuda
from edgemill.pipeline.cli import edgemill
from edgemill.pipeline.cluster.connecting.tls import security
from edgemill.pipeline.settings.models import ClusterSettings
from in_process import call

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = [DOCS / name for name in ("clusters.md", "slurm.md", "kubernetes.md", "tls.md")]
OTHERS = [DOCS / name for name in ("one-gpu.md", "one-node.md", "object-storage.md")]


def blocks(page: Path, language: str) -> list[str]:
    """What stands between fences of a language, or of none."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)


COMMANDS = [
    [word for word in shlex.split(line, comments=True) if word != "…"]
    for page in (*PAGES, *OTHERS)
    for block in blocks(page, "(?:bash)?")
    for line in block.replace("\\\n", "").splitlines()
    if line.startswith(("dask ", "edgemill ", "sbatch "))
]


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words)[:40])
def test_commands(words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("ca.pem", "cert.pem", "key.pem"):
        Path(name).touch()  # Dask looks whether they are there
    Path("settings.yaml").write_text((DOCS.parent / "configs" / "laptop.yaml").read_text())
    match words:
        case "dask", "scheduler", *rest:
            accepted(dask_scheduler.main, rest)
        case "dask", "worker", *rest:
            accepted(dask_worker.main, rest)
        case "dask", "cuda", "worker", *rest:
            assert accepted_by_dask_cuda(rest)["--resources"] == "GPU=1"
        case "edgemill", "run", *rest:
            whole = rest if "settings.yaml" in rest or "--input" in rest else ["settings.yaml", *rest]
            assert call("run", *whole, "--print-config").exit_code == 0
        case "edgemill", name, *rest:
            accepted(edgemill.commands[name], rest)
        case _:
            script = next(place for place, word in enumerate(words) if word.endswith(".sbatch"))
            assert (DOCS.parent / words[script]).is_file()
            assert call("run", *words[script + 1 :], "--print-config").exit_code == 0


def test_there_are_such_commands() -> None:
    assert len(COMMANDS) >= 21


@pytest.mark.parametrize("text", [block for page in (*PAGES, *OTHERS) for block in blocks(page, "python")])
def test_python(text: str) -> None:
    """It parses; what it takes from edgemill is there, and `mine` is called as it may be."""
    tree = ast.parse(text)
    ours: dict[str, Any] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("edgemill"):
            module = importlib.import_module(node.module or "")
            ours |= {alias.name: getattr(module, alias.name) for alias in node.names}
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    called = [node for node in calls if isinstance(node.func, ast.Name) and node.func.id in ours]
    names = [node.func.id for node in called if isinstance(node.func, ast.Name)]
    assert set(names) == ours.keys()
    for name, node in zip(names, called, strict=True):
        given = {word.arg: word.value for word in node.keywords if word.arg is not None}
        inspect.signature(ours[name]).bind(*node.args, **given)
        assert name != "mine" or "client" in given or any(word.arg is None for word in node.keywords)


def test_settings_and_files_that_are_named() -> None:
    known = dask.config.collect([str(Path(distributed.__file__).parent)], env={})
    for page in (*PAGES, *OTHERS):
        text = page.read_text()
        for name in re.findall(r"\bcluster\.(\w+)\b(?!\()", text):
            assert name in ClusterSettings.model_fields, f"{page.name}: cluster.{name}"
        for name in re.findall(r"\bDASK_(DISTRIBUTED__[A-Z_]+[A-Z])\b", text):
            assert dask.config.get(name.lower().replace("__", "."), default=0, config=known) != 0, (
                f"{page.name}: {name}"
            )
        for link in re.findall(r"\]\((?!https:)([^)#]+)", text):
            assert (DOCS / link).exists(), f"{page.name}: {link}"
    (written,) = blocks(DOCS / "tls.md", "yaml")
    for key, value in flat(yaml.safe_load(written)):
        assert dask.config.get(key, default=0, config=known) != 0, f"Dask knows no {key}"
        assert value


def flat(found: dict[str, Any], before: str = "") -> list[tuple[str, Any]]:
    """Names of nested keys, joined by dots, and their values."""
    return [
        pair
        for key, value in found.items()
        for pair in (flat(value, f"{before}{key}.") if isinstance(value, dict) else [(before + key, value)])
    ]


@pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no command openssl")
def test_the_certificates(tmp_path: Path) -> None:
    text = blocks(DOCS / "tls.md", "bash")[0]
    assert text.startswith("umask 077\nopenssl req -x509")
    subprocess.run(["bash", "-euo", "pipefail", "-c", text], cwd=tmp_path, check=True, capture_output=True)
    files = {name: str(tmp_path / f"{part}.pem") for name, part in (("ca", "ca"), ("cert", "cert"), ("key", "key"))}
    made = security(ClusterSettings.model_validate({f"tls_{name}_file": file for name, file in files.items()}))
    assert made is not None
    assert made.get_connection_args("client")["ssl_context"] is not None
    subprocess.run(
        ["openssl", "verify", "-x509_strict", "-CAfile", files["ca"], files["cert"]], check=True, capture_output=True
    )
    assert all((tmp_path / name).stat().st_mode & 0o077 == 0 for name in ("key.pem", "ca-key.pem"))
