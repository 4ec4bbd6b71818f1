"""Links and names that another user plants at the path of a checkpoint."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from edgemill.pipeline import ClusterLost, Result, UsageError
from edgemill.pipeline.checkpoint.checkpoint import FORMAT_VERSION
from edgemill.pipeline.events import Events
from edgemill.pipeline.output.checkpoint_files import checked, clear_earlier, files_at, opened, seal
from edgemill.pipeline.output.staging import LOG_NAME
from edgemill.tasks.storage.folders import folder_at
from edgemill.tasks.storage.own_files import (
    is_own_folder,
)
from planted import ALWAYS, PLANTED, given_away, make_victim, rows, run, whole


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A folder of another user. The test fails if anything in it changes."""
    return make_victim(tmp_path)


@pytest.mark.parametrize(
    "what",
    [what if what in ("link", "pipe") else pytest.param(what, marks=pytest.mark.slow) for what in PLANTED],
)
def test_a_planted_path_of_a_checkpoint(tmp_path: Path, victim: Path, what: str) -> None:
    rows(tmp_path)
    place = tmp_path / ".out.edgemill.checkpoint"
    PLANTED[what](place, victim)
    with pytest.raises(UsageError, match=r"\.out\.edgemill\.checkpoint.*made"):
        run(tmp_path)
    assert whole(victim)
    assert os.path.lexists(place)
    run(tmp_path, fresh=True)
    assert whole(victim)
    assert not os.path.lexists(place)


def test_a_checkpoint_of_another_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / ".out.edgemill.checkpoint"
    place.mkdir()
    assert is_own_folder(place)
    given_away(place, monkeypatch)
    with pytest.raises(UsageError, match="belongs to another user"):
        files_at(str(place), {}).make("graph-1")
    assert list(place.iterdir()) == []


def test_a_checkpoint_in_a_linked_folder_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder that the user names may be a link or be inside of a linked folder, like the output."""
    rows(tmp_path)
    (tmp_path / "mnt/deep").mkdir(parents=True)
    (tmp_path / "scratch").symlink_to("mnt")
    kept = {"path": f"{tmp_path}/scratch/deep", **ALWAYS}
    ended(monkeypatch, tmp_path, out=tmp_path / "scratch/out", checkpoint=kept)
    (place,) = (tmp_path / "mnt/deep").iterdir()
    assert {stat.S_IMODE(path.stat().st_mode) for path in [place, *place.rglob("*")] if path.is_dir()} == {0o700}
    assert {stat.S_IMODE(path.stat().st_mode) for path in place.rglob("*") if path.is_file()} == {0o600}
    result = run(tmp_path, out=tmp_path / "scratch/out", checkpoint=kept)
    assert "restore" in [stage.stage for stage in result.manifest.stages]
    assert list((tmp_path / "mnt/deep").iterdir()) == []
    assert (tmp_path / "mnt/out/manifest.json").exists()


INDEX = {"format": FORMAT_VERSION, "folder": "graph-1", "files": {}, "made_of": {}}


@pytest.mark.parametrize("folder", ["../victim", "..", ".", "", "a/b", "/etc", "a\0b", 3, None])
def test_an_index_names_a_plain_folder(folder: object) -> None:
    assert checked(opened(seal(INDEX))) == INDEX
    with pytest.raises(ValueError, match="folder"):
        checked(opened(seal(INDEX | {"folder": folder})))


@pytest.mark.parametrize("what", ["folder", "url"])
def test_a_forged_index_removes_and_reads_nothing(
    tmp_path: Path, victim: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The progress is forged. The graph is from an earlier run, and is used."""
    rows(tmp_path)
    ended(monkeypatch, tmp_path)
    place = tmp_path / ".out.edgemill.checkpoint"
    forged: dict[str, Any] = INDEX | {"folder": "../victim"}
    if what == "url":
        forged = INDEX | {"files": {"states": [{"url": f"file://{victim}/letters", "bytes": 8, "sha256": "0" * 64}]}}
    for name in ("progress.json", "progress.before.json"):
        (place / name).write_bytes(seal(forged))
    result = run(tmp_path, checkpoint=ALWAYS | {"every_exchanges": 1})
    assert "restore" in [stage.stage for stage in result.manifest.stages]
    assert whole(victim)
    reasons = [line["reason"] for line in logged(result) if line["event"] == "checkpoint_refused"]
    expected = {"folder": "folder: Value error, '../victim' is not a plain name", "url": "refers to files outside"}
    assert len(reasons) == 2
    assert all(expected[what] in reason for reason in reasons)


def ended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, **settings: Any) -> None:
    """Fail a run after it has stored the graph."""

    def lose(*_: object) -> None:
        raise ClusterLost("planted")

    with monkeypatch.context() as patch:
        patch.setattr("edgemill.pipeline.run.tables.bound", lose)
        with pytest.raises(ClusterLost, match="planted"):
            run(tmp_path, **settings)


def logged(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (result.path / LOG_NAME).read_text().splitlines()]


def test_a_link_in_a_checkpoint_is_not_followed(tmp_path: Path, victim: Path) -> None:
    files = files_at(str(tmp_path / "kept"), {})
    files.make("graph-1")
    (tmp_path / "kept/graph.json").symlink_to(victim / "letters")
    with pytest.raises(OSError, match="symbolic links"):
        files.read("graph.json")
    files.write("graph.json", b"mine")  # replaces the link, not its target
    assert files.read("graph.json") == b"mine"
    (tmp_path / "kept/graph-2").symlink_to(victim)
    files.remove("graph-2")
    assert sorted(files.names()) == ["graph-1", "graph.json"]
    files.clear()
    assert whole(victim)
    assert not (tmp_path / "kept").exists()


def test_an_old_checkpoint_that_is_a_link(tmp_path: Path, victim: Path) -> None:
    (tmp_path / "kept").symlink_to(victim / "inner")
    clear_earlier(folder_at(tmp_path / "kept"), Events().started.replace(year=2100))
    assert whole(victim)
    assert not os.path.lexists(tmp_path / "kept")
