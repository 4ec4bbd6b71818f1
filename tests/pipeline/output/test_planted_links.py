"""Links and names that another user plants where edgemill writes: nothing outside its own folders changes."""

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from edgemill.pipeline import InputError, UsageError
from edgemill.pipeline.events import Events
from edgemill.pipeline.monitor.display import RunSummary
from edgemill.pipeline.nightly.retention import keep_newest
from edgemill.pipeline.output.lock import FolderLock, LockOwner, inspect_lock
from edgemill.pipeline.output.manifest import Manifest, is_result, read_manifest, write_manifest
from edgemill.pipeline.output.new_path import new_file, new_folder
from edgemill.pipeline.output.staging import LOG_NAME, FolderStaging, StoreStaging
from edgemill.pipeline.report.report import write_report
from edgemill.pipeline.results.series import Series
from edgemill.tasks.storage.folders import Folder, folder_at
from edgemill.tasks.storage.own_files import (
    open_own,
    plain_name,
    read_own,
    remove_busy_folder,
    remove_own,
)
from edgemill.tasks.storage.pointer import pointer_target
from planted import PLANTED, given_away, make_victim, rows, run, whole

WriteResult = Callable[..., Manifest]


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A folder of another user. The test fails if anything in it changes."""
    return make_victim(tmp_path)


def staging(out: Path) -> FolderStaging:
    return FolderStaging(out, overwrite=False, run_id="run")


def test_links_instead_of_leftovers_of_killed_runs(tmp_path: Path, victim: Path, write_result: WriteResult) -> None:
    """A link instead of an earlier result is not renamed to the output."""
    write_result(victim / "result")
    for name in ("killed", "killed.old", "other.old"):
        (tmp_path / f".out.edgemill-{name}").symlink_to(victim / "result")
    with staging(tmp_path / "out"):
        pass
    assert {path.name for path in tmp_path.iterdir()} == {"victim"}
    assert is_result(victim / "result")


def test_a_folder_that_was_replaced_is_not_published(tmp_path: Path, victim: Path, write_result: WriteResult) -> None:
    with (
        pytest.raises(UsageError, match="was replaced"),
        staging(tmp_path / "out") as made,
    ):
        os.rename(made.folder, tmp_path / "stolen")
        made.folder.symlink_to(victim)
        made.commit()
    assert whole(victim)
    assert not os.path.lexists(tmp_path / "out")


def test_a_link_to_the_output_of_another_user(tmp_path: Path, victim: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "out").symlink_to(victim / "new")
    assert staging(tmp_path / "out").out == victim / "new"
    given_away(tmp_path / "out", monkeypatch)
    with pytest.raises(UsageError, match="another user"):
        staging(tmp_path / "out")
    with pytest.raises(UsageError, match="another user"), new_folder(tmp_path / "out", ["a"]):
        pass


def modes(folder: Path) -> dict[str, int]:
    paths = [folder, *folder.rglob("*")]
    return {path.relative_to(folder).as_posix(): stat.S_IMODE(path.stat().st_mode) for path in paths}


@pytest.mark.parametrize("umask", [0o022, 0o027, 0o002, 0o077])
def test_a_result_is_private_until_it_is_published(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        with staging(tmp_path / "out") as made:
            with Events().recording(made.folder / LOG_NAME, {}):
                made.add("report.html", b"<html>")
            assert modes(made.folder) == {".": 0o700, "log.jsonl": 0o600, "report.html": 0o600}
            (made.folder / "edges").mkdir(0o700)
            made.commit()
        with new_folder(tmp_path / "changes", ["a"]) as folder, new_file(folder / "a") as file:
            assert {*modes(folder).values()} == {0o700, 0o600}
            file.write(b"a")
        with pytest.raises(RuntimeError), staging(tmp_path / "failed") as made:
            (made.folder / LOG_NAME).touch(0o600)
            raise RuntimeError
    finally:
        os.umask(before)
    folder_mode, file_mode = 0o777 & ~umask, 0o666 & ~umask
    assert modes(tmp_path / "out") == {
        ".": folder_mode,
        "log.jsonl": file_mode,
        "report.html": file_mode,
        "edges": folder_mode,
    }
    assert modes(tmp_path / "changes") == {".": folder_mode, "a": file_mode}
    assert modes(tmp_path)["failed.failed.log.jsonl"] == file_mode


def test_tables_are_private_while_a_run_writes_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows(tmp_path)
    seen: dict[str, int] = {}
    commit = FolderStaging.commit

    def look(self: FolderStaging) -> None:
        seen.update(modes(self.folder))
        commit(self)

    monkeypatch.setattr(FolderStaging, "commit", look)
    result = run(tmp_path, **{"output.report": True})
    assert {name: mode for name, mode in seen.items() if mode != (0o700 if "." not in name[1:] else 0o600)} == {}
    assert {"edges/part-00000.parquet", "manifest.json", "report.html", "log.jsonl"} <= {*seen}
    assert {*modes(result.path).values()} == {stat.S_IMODE((tmp_path / "rows").stat().st_mode), 0o666 & ~_umask()}


def _umask() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return umask


@pytest.mark.parametrize("end", [".checkpoint", "-x", "-x.old"])
def test_links_instead_of_results_to_remove(tmp_path: Path, victim: Path, write_result: WriteResult, end: str) -> None:
    for day in ("2026-11-01", "2026-11-02"):
        write_result(tmp_path / "series" / day)
    (tmp_path / "series" / f".2026-11-01.edgemill{end}").symlink_to(victim)
    events = Events(summary := RunSummary())
    series = Series.around(folder_at(tmp_path / "series/2026-11-02"), str(tmp_path / "series/{date}"), "2026-11-02")
    assert series is not None
    keep_newest(series, 1, "2026-11-02", events)
    assert (len(summary.removed), summary.not_removed) == (1, {})
    assert [path.name for path in (tmp_path / "series").iterdir()] == ["2026-11-02"]
    assert whole(victim)


@pytest.mark.parametrize("what", [kind for kind in PLANTED if kind != "file"])
def test_a_planted_path_of_a_lock(tmp_path: Path, victim: Path, what: str) -> None:
    lock = tmp_path / ".out.edgemill.lock"
    PLANTED[what](lock, victim)
    with pytest.raises(UsageError, match="lock file"):
        FolderLock(lock, str(tmp_path / "out"), "run").take()
    with pytest.raises(UsageError, match="lock file"):
        inspect_lock(lock)
    assert whole(victim)
    assert {path.name for path in tmp_path.iterdir()} == {"victim", lock.name}


def test_a_link_at_the_temporary_path_of_a_lock(tmp_path: Path, victim: Path) -> None:
    (tmp_path / "lock-run").symlink_to(victim / "letters")
    with pytest.raises(OSError, match="symbolic links"):
        FolderLock(tmp_path / "lock", "out", "run").take()
    assert whole(victim)


def test_a_log_that_became_a_link(tmp_path: Path, victim: Path, write_result: WriteResult) -> None:
    write_result(tmp_path / "out")
    (tmp_path / "out" / LOG_NAME).symlink_to(victim / "letters")
    with FolderStaging(tmp_path / "out", overwrite=False, run_id="run", or_same=True) as made:
        (made.folder / LOG_NAME).write_text("{}\n")
        with pytest.raises(OSError, match="symbolic links"):
            made.add_to_log()
    assert whole(victim)


def test_a_report_that_became_a_link(tmp_path: Path, victim: Path, write_result: WriteResult) -> None:
    write_result(tmp_path / "out")
    (tmp_path / "out/report.html").symlink_to(victim / "letters")
    write_report(tmp_path / "out")
    assert whole(victim)
    assert not (tmp_path / "out/report.html").is_symlink()


@pytest.mark.parametrize("target", ["letters", "nothing"])
def test_a_file_that_a_user_names(tmp_path: Path, victim: Path, target: str) -> None:
    (tmp_path / "page.html").symlink_to(victim / target)
    for overwrite in (True, False):
        refused = pytest.raises(UsageError, match="symbolic link")
        with refused, new_file(tmp_path / "page.html", overwrite):
            pass
    assert whole(victim)
    (tmp_path / "linked").symlink_to(victim / "inner")
    with new_file(tmp_path / "linked/page.html") as file:
        file.write(b"page")
    assert (victim / "inner/page.html").read_bytes() == b"page"


def test_a_performance_report_over_a_link(tmp_path: Path, victim: Path) -> None:
    rows(tmp_path)
    page = victim.parent / "page.html"
    page.write_text("<!doctype html>mine")
    (tmp_path / "performance.html").symlink_to(page)
    with pytest.raises(UsageError, match=r"performance_report.*symbolic"):
        run(tmp_path, performance_report=str(tmp_path / "performance.html"))
    assert page.read_text() == "<!doctype html>mine"


def test_scratch_behind_a_link(tmp_path: Path, victim: Path) -> None:
    rows(tmp_path)
    (tmp_path / "scratch").mkdir()
    (tmp_path / "scratch/dask-scratch-space").symlink_to(victim)
    with pytest.raises(UsageError, match="symbolic link"):
        run(tmp_path, cluster={"local_directory": str(tmp_path / "scratch")})
    assert whole(victim)


@pytest.mark.parametrize("path", ["../victim/letters", "edges/../../x", "/etc/passwd", "", "edges//x", "a\0b"])
def test_a_manifest_names_files_of_its_folder(tmp_path: Path, write_result: WriteResult, path: str) -> None:
    made = write_result(tmp_path / "out")
    (tmp_path / "out/manifest.json").unlink()
    forged = made.outputs[0].model_copy(update={"path": path})
    write_manifest(tmp_path / "out", made.model_copy(update={"outputs": [forged]}))
    with pytest.raises(InputError, match=r"damaged.*outputs\.0\.path"):
        read_manifest(tmp_path / "out")


def test_a_manifest_and_a_lock_name_a_plain_run(tmp_path: Path, write_result: WriteResult) -> None:
    made = write_result(tmp_path / "out")
    (tmp_path / "out/manifest.json").unlink()
    write_manifest(tmp_path / "out", made.model_copy(update={"run": "../../x"}))
    with pytest.raises(InputError, match=r"is damaged: run"):
        read_manifest(tmp_path / "out")
    holder = LockOwner.here("run")
    assert LockOwner.parse(holder.as_json()) == holder
    assert LockOwner.parse(holder.model_copy(update={"run": "../x"}).as_json()) is None


def test_names_in_a_store_stay_in_their_folder() -> None:
    place = Folder("memory://planted/out")
    for name in ("../other", "edges/../../other", "..", "/other"):
        for act in (place.read, place.remove, lambda name: place.write(name, b"")):
            with pytest.raises(UsageError, match="plain name"):
                act(name)


def test_a_forged_manifest_in_a_store_has_no_log_written_elsewhere() -> None:
    out = Folder("memory://forged/out")
    forged = {"format": "edgemill-result", "outputs": [{"path": "../victim/x"}, {"path": "other/x"}]}
    out.write("manifest.json", json.dumps(forged).encode())
    with StoreStaging(out, overwrite=False, run_id="run", or_same=True) as made:
        (made.scratch / LOG_NAME).write_text("{}\n")
        made.add_to_log()
    assert sorted(out.files.find("/forged")) == ["/forged/out/manifest.json"]


@pytest.mark.parametrize(
    ("target", "good"),
    [
        ("2026-11-20", True),
        ("../2026-11-20/out", True),
        ("../victim", False),
        ("../../victim/a", False),
        ("..", False),
        (".", False),
        ("", False),
        ("a/../../victim", False),
        ("a\0", False),
        ("a//b", False),
    ],
)
def test_a_pointer_may_only_point_beside_itself(target: str, good: bool) -> None:
    place = Folder("memory://pointers/series/latest")
    content = {"format": "edgemill-pointer", "format_version": 1, "result": target}
    Folder("memory://pointers/series").write("latest", json.dumps(content).encode())
    if good:
        assert pointer_target(place) is not None
        return
    with pytest.raises(InputError, match="not beside it"):
        pointer_target(place)


def test_plain_names() -> None:
    assert plain_name("a b\\c.é") == "a b\\c.é"
    for name in ("", ".", "..", "a/b", "/", "a\0"):
        with pytest.raises(ValueError, match="plain name"):
            plain_name(name)


def test_links_among_the_components_that_edgemill_chose(tmp_path: Path, victim: Path) -> None:
    """Links among the last `own` components are not followed; links before these are the user's."""
    (tmp_path / "ours").symlink_to(victim)
    for own in (2, 3):
        with pytest.raises(OSError, match="directory"):
            remove_own(tmp_path / "ours/inner", own)
        with pytest.raises(OSError, match="directory"):
            open_own(tmp_path / "ours/new", os.O_WRONLY | os.O_CREAT, own)
        with pytest.raises(OSError, match="directory"):
            read_own(tmp_path / "ours/letters", own)
    assert whole(victim)
    assert read_own(tmp_path / "ours/letters") == b"dear all"
    remove_own(tmp_path / "absent/at/all", 2)
    remove_own(tmp_path / "ours")
    assert whole(victim)
    assert not os.path.lexists(tmp_path / "ours")
    remove_own(victim)
    assert not victim.exists()


def test_links_in_a_removed_folder_are_not_followed(tmp_path: Path, victim: Path) -> None:
    (tmp_path / "ours" / "edges").mkdir(parents=True)
    (tmp_path / "ours" / "edges" / "part").write_bytes(b"rows")
    (tmp_path / "ours" / "edges" / "folder").symlink_to(victim)
    (tmp_path / "ours" / "file").symlink_to(victim / "letters")
    remove_own(tmp_path / "ours")
    assert not os.path.lexists(tmp_path / "ours")
    assert whole(victim)


def test_a_folder_that_a_task_still_writes_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task with the folder open creates files in it while it is removed."""
    (tmp_path / "gone" / "edges").mkdir(parents=True)
    opened = os.open(tmp_path / "gone" / "edges", os.O_RDONLY)
    rmdir, late = os.rmdir, iter(range(3))

    def and_one_more(name: str, *, dir_fd: int | None = None) -> None:
        for number in late:
            os.close(os.open(f"part-{number}", os.O_WRONLY | os.O_CREAT, dir_fd=opened))
            break
        rmdir(name, dir_fd=dir_fd)

    monkeypatch.setattr(os, "rmdir", and_one_more)
    with pytest.raises(OSError, match="not empty"):
        remove_own(tmp_path / "gone")
    remove_busy_folder(tmp_path / "gone")
    os.close(opened)
    assert not os.listdir(tmp_path)
    assert not list(late)
