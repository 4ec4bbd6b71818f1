"""Secrets in storage options and URLs appear neither in files, nor in the log, nor on the terminal."""

from __future__ import annotations

import errno
import logging
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import fsspec
import pytest
import yaml
from distributed import Client, LocalCluster
from fsspec.implementations.local import LocalFileSystem

import in_process
import runs
from edgemill.pipeline import InputError, OutOfRoom, mine
from edgemill.pipeline.plan.choice import plan_run
from edgemill.pipeline.plan.plan import Plan

# Secrets to search for in all files of a run: two tokens of storage options, two passwords of URLs.
TOKEN, OTHER, *PASSWORDS = SECRETS = "7f3c-token", "91ab-token", "5d2e-password", "c80d-password"
ROWS = [(a, b) for a in range(30) for b in range(a) if (a * b) % 3]


class Vault(LocalFileSystem):  # type: ignore[misc]
    """A file system over local files that requires a token."""

    protocol = "vault"
    full = False

    def __init__(self, token: str = "", **options: Any) -> None:
        super().__init__(**options)
        if token not in (TOKEN, OTHER):
            raise PermissionError("the vault is shut")

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return str(super()._strip_protocol(re.sub(r"me:.*@", "", path)))

    def _open(self, path: str, mode: str = "rb", block_size: int | None = None, **options: Any) -> Any:
        if self.full and path.endswith(".zip"):
            raise OSError(errno.ENOSPC, "the vault is full", path)
        return super()._open(path, mode, block_size, **options)


fsspec.register_implementation("vault", Vault, clobber=True)


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, Any]:
    runs.write_rows(tmp_path / "rows.parquet", ROWS)
    return {
        "input": {"path": f"vault://me:{PASSWORDS[0]}@{tmp_path}/rows.parquet", "storage_options": {"token": TOKEN}},
        "output": {"path": str(tmp_path / "out")},
        "bounding": {"method": "band"},
        "checkpoint": {
            "path": f"vault://me:{PASSWORDS[1]}@{tmp_path}/kept",
            "storage_options": {"token": OTHER},
            "every_exchanges": 1,
            "every_seconds": 0,
        },
        "cluster": {"device": "cpu"},
    }


def call(tmp_path: Path, settings: dict[str, Any], *arguments: str, command: str = "run") -> tuple[int, str]:
    """Exit code and all output."""
    (tmp_path / "settings.yaml").write_text(yaml.safe_dump(settings))
    result = in_process.call("--debug", command, str(tmp_path / "settings.yaml"), *arguments)
    return result.exit_code, result.output


def assert_untold(folder: Path, *texts: str) -> None:
    for secret in SECRETS:
        assert not [text for text in texts if secret in text]
        for file in filter(Path.is_file, folder.rglob("*")):
            assert file.name == "settings.yaml" or secret.encode() not in file.read_bytes(), file


def test_a_run_that_succeeds(tmp_path: Path, settings: dict[str, Any]) -> None:
    code, printed = call(tmp_path, settings, "--verbose")
    assert code == 0
    assert_untold(tmp_path, printed)
    assert (tmp_path / "out" / "manifest.json").exists()
    for arguments, command in ((["--print-config"], "run"), ([], "plan")):
        settings["output"]["path"] = str(tmp_path / command)
        code, printed = call(tmp_path, settings, *arguments, command=command)
        assert code == 0
        assert_untold(tmp_path, printed)


def lose_the_input(tmp_path: Path, settings: dict[str, Any]) -> None:
    (tmp_path / "rows.parquet").unlink()


def damage_the_input(tmp_path: Path, settings: dict[str, Any]) -> None:
    content = bytearray((tmp_path / "rows.parquet").read_bytes())
    content[4:200] = bytes(196)
    (tmp_path / "rows.parquet").write_bytes(content)


def give_a_wrong_token(tmp_path: Path, settings: dict[str, Any]) -> None:
    settings["input"]["storage_options"]["token"] = f"not {TOKEN}"


def give_a_wrong_token_to_the_checkpoint(tmp_path: Path, settings: dict[str, Any]) -> None:
    settings["checkpoint"]["storage_options"]["token"] = f"not {OTHER}"


def give_an_option_that_there_is_not(tmp_path: Path, settings: dict[str, Any]) -> None:
    settings["input"]["storage_options"] = TOKEN


def keep_where_a_file_is(tmp_path: Path, settings: dict[str, Any]) -> None:
    (tmp_path / "kept").write_text("in the way")


@pytest.mark.parametrize(
    "mischief",
    [
        lose_the_input,
        damage_the_input,
        give_a_wrong_token,
        give_a_wrong_token_to_the_checkpoint,
        give_an_option_that_there_is_not,
        keep_where_a_file_is,
    ],
)
def test_a_run_that_fails(
    tmp_path: Path, settings: dict[str, Any], mischief: Callable[[Path, dict[str, Any]], None]
) -> None:
    mischief(tmp_path, settings)
    code, printed = call(tmp_path, settings)
    assert code != 0
    assert "Error: " in printed
    assert_untold(tmp_path, printed)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_checkpoint_that_is_refused(
    tmp_path: Path, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch, pytest.raises(InterruptedError):
        patch.setattr("edgemill.pipeline.run.tables.bound", Mock(side_effect=InterruptedError))
        mine(settings["input"]["path"], tmp_path / "out", **without_paths(settings))
    assert_untold(tmp_path)
    for file in (tmp_path / "kept").rglob("*.zip"):
        file.write_bytes(b"")
    code, printed = call(tmp_path, settings, "--verbose")
    assert code == 0
    assert "checkpoint_refused" in (tmp_path / "out" / "log.jsonl").read_text()
    assert_untold(tmp_path, printed)


def without_paths(settings: dict[str, Any]) -> dict[str, Any]:
    """Arguments of `mine` beside the paths."""
    given = {name: section for name, section in settings.items() if name not in ("input", "output")}
    return given | {"input.storage_options": settings["input"]["storage_options"]}


@pytest.fixture
def talkative() -> Iterator[Client]:
    """A cluster whose worker logs what it does, as in other deployments."""
    with (
        LocalCluster(
            n_workers=1,
            processes=False,
            silence_logs=False,
            dashboard_address=None,
            scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.mark.parametrize("full", [False, True])
def test_what_workers_log(
    tmp_path: Path,
    settings: dict[str, Any],
    talkative: Client,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    full: bool,
) -> None:
    """A worker logs the arguments of a failed task: one that reads, or one that writes a checkpoint."""
    monkeypatch.setattr(Vault, "full", full)
    settings |= {"partitioning": {"count": 3}, "bounding": {}}  # one partition would be planned without a sample

    def plan_and_damage(*arguments: Any) -> Plan:
        plan = plan_run(*arguments)
        if not full:
            damage_the_input(tmp_path, settings)  # after planning, which would find it
        return plan

    monkeypatch.setattr("edgemill.pipeline.run.full.plan_run", plan_and_damage)
    with caplog.at_level(logging.DEBUG, "distributed"), pytest.raises(OutOfRoom if full else InputError):
        mine(settings["input"]["path"], tmp_path / "out", client=talkative, **without_paths(settings))
    assert "Compute Failed" in caplog.text
    assert_untold(tmp_path, caplog.text)
