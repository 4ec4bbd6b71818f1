"""Runs into an object store, and out of one: a real S3 server on loopback, and fsspec's memory."""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from distributed import Client

import runs
from edgemill.pipeline import InputError, InputIncomplete, OutputLocked, Result, UsageError, mine
from edgemill.pipeline.events import Events
from edgemill.pipeline.monitor.status import status_of
from edgemill.pipeline.output.lock import LOCK_NAME, LockOwner, StoreLock
from edgemill.pipeline.output.new_path import new_file, new_folder
from edgemill.pipeline.plan.plan import Plan
from edgemill.pipeline.run import full
from edgemill.tasks.errors import EdgemillError, StoreLost
from edgemill.tasks.generate import generate
from edgemill.tasks.ingest.reading import read_rows
from edgemill.tasks.inputs.formats.parquet import open_parquet
from edgemill.tasks.inputs.open_source import open_source
from edgemill.tasks.inputs.sources import plan_blocks, refuse_changed_files
from edgemill.tasks.publish.tables import write_edges
from edgemill.tasks.storage.folders import Folder
from edgemill.tasks.verify.result import verify
from in_process import call
from s3_servers import s3_server

KEY, SECRET = "theaccesskey", "thesecretkey"
HOW: dict[str, Any] = {"device": "cpu", "partitions": 2, "output.report": False}
_numbers = itertools.count()


@pytest.fixture(scope="module")
def s3() -> Iterator[dict[str, Any]]:
    """Options for fsspec of a server with the bucket `bucket`."""
    with s3_server() as options:
        yield options


@pytest.fixture(params=["s3", pytest.param("memory", marks=pytest.mark.slow)])
def out(request: pytest.FixtureRequest) -> Folder:
    """A place for a result."""
    number = next(_numbers)
    if request.param == "s3":
        return Folder(f"s3://bucket/results/out {number}", request.getfixturevalue("s3"))
    return Folder(f"memory://results/out {number}")


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rows")
    generate("planted-cliques", str(folder), files=3, seed=2, vertices=80, edges=300, cliques=2, clique_size=7)
    return folder


@pytest.fixture(scope="module")
def plain(rows: Path, client: Client, tmp_path_factory: pytest.TempPathFactory) -> Result:
    return mine(rows, tmp_path_factory.mktemp("plain") / "out", client=client, **HOW)


def run(rows: Path | str, out: Folder, client: Client, **settings: Any) -> Result:
    how: dict[str, Any] = {"output.storage_options": dict(out.options)} | HOW | settings
    return mine(rows, out.url, client=client, **how)


def tables(result: Result) -> list[pa.Table]:
    return [result.edges.to_table(), result.vertices.to_table()]


def log(result: Result) -> list[dict[str, Any]]:
    content = result.place.read(f"edgemill-{result.manifest.run}/log.jsonl")
    assert content is not None
    return [json.loads(line) for line in content.decode().splitlines()]


def everything(out: Folder) -> dict[str, bytes]:
    files = out.files
    files.invalidate_cache()
    return {path: files.cat_file(path) for path in files.find(out.path())}


def start(s3: dict[str, Any], config: Path, script: str, *arguments: str) -> subprocess.Popen[str]:
    """A process of its own, to which the options come by fsspec's configuration in the folder `config`."""
    (config / "s3.json").write_text(json.dumps({"s3": s3}))
    pipe, environment = subprocess.PIPE, os.environ | {"FSSPEC_CONFIG_DIR": str(config), "TMPDIR": str(config)}
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environment)


def assert_one_result(out: Folder, *others: str) -> None:
    """Nothing is there but a manifest and the files of its run."""
    result = Result(out)
    assert out.names() == [f"edgemill-{result.manifest.run}", "manifest.json"]
    found = {path.removeprefix(out.path() + "/") for path in everything(out)}
    listed = {output.path for output in result.manifest.outputs}
    own = {f"edgemill-{result.manifest.run}/{name}" for name in ("log.jsonl", *others)}
    assert found == listed | own | {"manifest.json"}


def test_there_and_back(rows: Path, plain: Result, out: Folder, client: Client) -> None:
    result = run(rows, out, client, **{"output.report": True})
    assert tables(result) == tables(plain)
    assert result.manifest.counts == plain.manifest.counts
    assert_one_result(out, "report.html")
    again = Result(out.url, out.options)
    assert tables(again) == tables(plain)
    assert repr(again).startswith(f"Result('{out.url}': ")
    report = verify(out, rows)
    assert report.ok, report
    with pytest.raises(UsageError, match="object store"):
        _ = result.path


@pytest.mark.slow
def test_no_secret_is_written_or_shown(
    rows: Path, s3: dict[str, Any], client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    out = Folder("s3://bucket/secrets/out", s3)
    result = run(rows, out, client, checkpoint={"every_seconds": 0})
    shown = [repr(result), repr(out), str(out), caplog.text.encode(), *everything(out).values()]
    assert_one_result(out)
    assert not [text for text in shown if SECRET in str(text) or KEY in str(text)]


def test_new_files_and_folders(out: Folder) -> None:
    """What is asked of a result lies in a store as it would on a disk."""
    with new_file(out.subfolder("group.csv")) as file:
        file.write(b"first")
        assert "group.csv" not in out.names()
    with pytest.raises(UsageError, match=r"group\.csv exists"), new_file(out.subfolder("group.csv")):
        pass
    with pytest.raises(UsageError, match="is a folder: name a file"), new_file(out):
        pass
    with new_file(out.subfolder("group.csv"), overwrite=True) as file:
        file.write(b"second")
    assert out.read("group.csv") == b"second"
    folder, own = out.subfolder("changes"), ("a", "b")
    for names, overwrite in ((own, False), (("b",), True)):
        with new_folder(folder, own, overwrite) as filled:
            for name in names:
                (filled / name).write_text(name)
            assert folder.names() == ([] if not overwrite else ["a", "b"])
        assert folder.names() == list(names)
    with pytest.raises(UsageError, match="choose another"), new_folder(folder, own):
        pass


def test_a_folder_that_does_not_come_leaves_the_one_that_is_there(out: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, own = out.subfolder("changes"), ("a", "b")
    with new_folder(folder, own) as filled:
        (filled / "a").write_bytes(b"earlier")
    put = folder.files.put_file

    def fail(local: str, remote: str) -> None:
        if remote.endswith("/b"):
            raise OSError("the store is full")
        put(local, remote)

    monkeypatch.setattr(folder.files, "put_file", fail)
    with pytest.raises(UsageError, match="cannot write"), new_folder(folder, own, True) as filled:
        for name in own:
            (filled / name).write_bytes(b"later")
    assert (folder.names(), folder.read("a")) == (["a"], b"earlier")
    folder.write(".edgemill-0123abcd/a", b"of a call that was killed")
    monkeypatch.undo()
    with new_folder(folder, own, True) as filled:
        (filled / "b").write_bytes(b"later")
    assert (folder.names(), folder.read("b")) == (["b"], b"later")


def test_the_last_of_a_folder_stands_beside_what_it_belongs_to(monkeypatch: pytest.MonkeyPatch) -> None:
    folder, own = Folder(f"memory://the-last/{next(_numbers)}"), ("a", "b")
    for name in own:
        folder.write(name, b"earlier")
    remove, there = Folder.remove, []

    def look(place: Folder, name: str) -> None:
        remove(place, name)
        there.append([name for name in own if folder.read(name) is not None])

    monkeypatch.setattr(Folder, "remove", look)
    with new_folder(folder, own, True) as filled:
        for name in own:
            (filled / name).write_bytes(b"later")
    assert there == [["a"], [], ["a", "b"]]  # what came is removed last


def test_what_comes_into_a_folder_meanwhile_stays() -> None:
    folder = Folder(f"memory://meanwhile/{next(_numbers)}")
    folder.write("a", b"earlier")
    with pytest.raises(UsageError, match="another file"), new_folder(folder, ("a",), True) as filled:
        (filled / "a").write_bytes(b"later")
        folder.write("notes", b"mine")
    assert (folder.names(), folder.read("a")) == (["a", "notes"], b"earlier")


def test_the_log_is_put_once_if_nothing_follows(rows: Path, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    write, puts = Folder.write, []

    def count(place: Folder, name: str, content: bytes) -> None:
        puts.append(name.rpartition("/")[2])
        write(place, name, content)

    monkeypatch.setattr(Folder, "write", count)
    run(rows, Folder(f"memory://once/{next(_numbers)}"), client, overwrite=True)
    assert puts == ["log.jsonl", "manifest.json"]


def test_a_folder_in_a_store_that_does_not_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    folder, own = Folder(f"memory://does-not-copy/{next(_numbers)}"), ("a", "b")

    def refuse(*_: object, **__: object) -> None:
        raise NotImplementedError

    monkeypatch.setattr(folder.files, "cp_file", refuse)
    for content in (b"earlier", b"later"):
        with new_folder(folder, own, True) as filled:
            for name in own:
                (filled / name).write_bytes(content)
        assert ([folder.read(name) for name in own], folder.names()) == ([content, content], ["a", "b"])


@pytest.mark.slow
def test_worker_processes(rows: Path, plain: Result, s3: dict[str, Any]) -> None:
    out = Folder("s3://bucket/worker processes", s3)
    with runs.two_processes() as client:
        assert tables(run(rows, out, client)) == tables(plain)
    assert_one_result(out)


def test_a_file_is_made_once(out: Folder) -> None:
    assert out.create("name", b"first")
    assert not out.create("name", b"second")
    assert out.read("name") == b"first"
    assert (out.read("other"), out.names(), out.sizes(["name", "other"])) == (None, ["name"], [5, None])
    out.remove("name")
    out.remove("name")
    assert out.names() == []


def test_one_of_many_gets_the_lock(s3: dict[str, Any]) -> None:
    out = Folder("s3://bucket/many", s3)
    start = threading.Barrier(8)

    def take(number: int) -> StoreLock | None:
        lock = StoreLock(out, f"run {number}")
        start.wait()
        try:
            lock.take()
        except OutputLocked:
            return None
        return lock

    with ThreadPoolExecutor(8) as threads:
        for _ in range(5):
            (winner,) = [lock for lock in threads.map(take, range(8)) if lock is not None]
            assert winner.is_held()
            winner.release()
            assert out.names() == []


def test_edges_from_a_store(
    rows: Path, plain: Result, s3: dict[str, Any], client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, out = Folder("s3://bucket/edges", s3), Folder("s3://bucket/from edges", s3)
    for path in rows.iterdir():
        source.write(path.name, path.read_bytes())
    options = {"input.storage_options": s3}
    result = run(source.url, out, client, **options)
    assert tables(result) == tables(plain)
    files = [file.path for file in result.manifest.input.files]
    assert files == [f"s3://bucket/edges/{path.name}" for path in sorted(rows.iterdir())]
    with monkeypatch.context() as patch:
        patch.setattr(full, "_run", None)
        assert run(source.url, out, client, **options).manifest == result.manifest
    name = next(rows.iterdir()).name
    source.write(name, (source.read(name) or b"") * 1)
    source.remove(name)
    with pytest.raises(UsageError, match="choose another"):
        run(source.url, out, client, **options)


@pytest.mark.slow
def test_overwrite(rows: Path, plain: Result, out: Folder, client: Client) -> None:
    before = run(rows, out, client).manifest.run
    with pytest.raises(UsageError, match=f"{out} exists"):
        run(rows, out, client, partitions=1)
    assert Result(out).manifest.run == before
    after = run(rows, out, client, partitions=1, overwrite=True)
    assert after.manifest.run != before
    assert len(after.manifest.outputs) == 5
    assert tables(after) == tables(plain)
    assert_one_result(out)


def test_nothing_to_do(rows: Path, out: Folder, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    first = run(rows, out, client)
    monkeypatch.setattr(full, "_run", None)
    assert run(rows, out, client).manifest == first.manifest
    assert log(first)[-1]["event"] == "nothing_to_do"
    assert log(first)[-1]["result"] == first.manifest.run
    assert_one_result(out)


@pytest.mark.parametrize("overwrite", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_store_that_goes_away_while_it_is_asked_for_a_result(
    rows: Path, client: Client, monkeypatch: pytest.MonkeyPatch, overwrite: bool
) -> None:
    """Whichever read it is: that is for a retry, and neither another result that is in the way nor one to make anew."""
    out = Folder(f"memory://goes-away {next(_numbers)}/there")
    run(rows, out, client)
    monkeypatch.setattr(full, "_run", None)
    files, read = type(out.files), type(out.files).cat_file
    lost = 0
    for at in itertools.count(1):
        asked = itertools.count(1)

        def once(*arguments: Any, at: int = at, asked: Iterator[int] = asked, **more: Any) -> Any:
            if next(asked) == at:
                raise ConnectionResetError(104, "Connection reset by peer")
            return read(*arguments, **more)

        monkeypatch.setattr(files, "cat_file", once)
        try:
            run(rows, out, client, overwrite=overwrite)
        except StoreLost:
            lost += 1
        if next(asked) <= at:
            break
        out.remove(LOCK_NAME)  # it is left where that could not be read
    assert lost >= 2


@pytest.mark.parametrize("overwrite", [pytest.param(False, marks=pytest.mark.slow), True])
def test_a_failure_leaves_what_was_there(
    rows: Path, out: Folder, client: Client, monkeypatch: pytest.MonkeyPatch, overwrite: bool
) -> None:
    """It fails when tables of edges are written; a task that outlives it may leave some, which is in no result."""
    if overwrite:
        run(rows, out, client, partitions=1)
    before = everything(out)
    write = write_edges

    def fail(*arguments: Any, **how: Any) -> None:
        write(*arguments, **how)
        raise OSError("the store is gone")

    with monkeypatch.context() as patch:
        patch.setattr("edgemill.pipeline.stages.publishing.write_edges", fail)
        with pytest.raises(Exception, match="the store is gone") as caught:
            run(rows, out, client, overwrite=overwrite)
    assert any(f"{out}/failed.log.jsonl" in note for note in caught.value.__notes__)
    after = everything(out)
    failed = out.path("failed.log.jsonl")
    told = json.loads(after.pop(failed).splitlines()[-1])
    assert told["event"] == "run_failed"
    assert {path: content for path, content in after.items() if f"/edgemill-{told['run']}/" not in path} == before
    run(rows, out, client, overwrite=True)
    assert_one_result(out)


def test_status(rows: Path, out: Folder, client: Client) -> None:
    assert status_of(out).state == "none"
    result = run(rows, out, client)
    found = status_of(out)
    assert (found.state, found.result) == ("finished", result.manifest)
    assert found.log is not None
    assert (found.log.run, found.log.last_event) == (result.manifest.run, "run_finished")
    out.write(LOCK_NAME, LockOwner.here("dead", "/nowhere/log.jsonl").model_copy(update={"process_start": 1}).as_json())
    found = status_of(out)
    assert (found.state, found.log, found.result) == ("dead", None, result.manifest)


def test_a_failing_put_of_the_manifest(
    rows: Path, out: Folder, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it came through or not, what the manifest names is there."""
    write = Folder.write
    for comes_through in (False, True):
        before = everything(out)

        def put(self: Folder, name: str, content: bytes, comes_through: bool = comes_through) -> None:
            if name != "manifest.json" or comes_through:
                write(self, name, content)
            if name == "manifest.json":
                raise UsageError("the answer is lost")

        with monkeypatch.context() as patch:
            patch.setattr(Folder, "write", put)
            with pytest.raises(UsageError, match="the answer is lost"):
                run(rows, out, client, overwrite=True)
        if comes_through:
            assert Result(out).edges.count_rows() == Result(out).manifest.counts.edges
        else:
            after = everything(out)
            after.pop(out.path("failed.log.jsonl"))
            assert after == before


def test_what_a_killed_run_left(rows: Path, out: Folder, client: Client) -> None:
    first = run(rows, out, client)
    dead = LockOwner.here("dead").model_copy(update={"process_start": 1})
    out.write(LOCK_NAME, dead.as_json())
    out.write("edgemill-dead/edges/part-00000.parquet", b"half")
    assert tables(Result(out)) == tables(first)
    assert verify(out, rows).ok
    second = run(rows, out, client, partitions=1, overwrite=True)
    assert_one_result(out)
    assert [line["left_by"] for line in log(second) if line["event"] == "lock_taken_over"] == [str(dead)]


@pytest.mark.parametrize("content", [b"", LockOwner.here("other").as_json()], ids=["unreadable", "alive"])
def test_another_run_has_the_lock(rows: Path, out: Folder, client: Client, content: bytes) -> None:
    out.write(LOCK_NAME, content)
    before = everything(out)
    with pytest.raises(OutputLocked, match=rf"{out}.*{out}/{LOCK_NAME}"):
        run(rows, out, client)
    assert everything(out) == before


def test_a_lock_that_was_removed(rows: Path, out: Folder, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    emit = Events.emit

    def remove(self: Events, event: str, /, **fields: object) -> None:
        emit(self, event, **fields)
        if event == "run_finished":
            out.remove(LOCK_NAME)

    monkeypatch.setattr(Events, "emit", remove)
    with pytest.raises(OutputLocked, match="removed during"):
        run(rows, out, client)
    assert out.names() == ["failed.log.jsonl"]


def test_what_is_not_ours_is_left_alone(rows: Path, out: Folder, client: Client) -> None:
    out.write("thesis.tex", b"mine")
    before = everything(out)
    for overwrite, text in ((False, "exists: choose another"), (True, "is not an edgemill result")):
        with pytest.raises(UsageError, match=text):
            run(rows, out, client, overwrite=overwrite)
    assert everything(out) == before


@pytest.mark.parametrize(
    ("source", "out", "text"),
    [
        ("memory://a/in", "memory://a/in/out", "is inside the input"),
        ("memory://a/in", "memory://a/in", "the input memory://a/in is inside it"),
        ("memory://a/in/x.parquet", "memory://a", "is inside it"),
        ("memory://a/**/*.parquet", "memory://a/out", "is inside the input"),
        ("memory://a/*.parquet", "memory://a/out", "does not exist|no file matches"),
        ("memory://a/in", "memory://a/inn", "does not exist"),
    ],
)
def test_output_is_kept_apart_from_the_input(source: str, out: str, text: str) -> None:
    with pytest.raises(Exception, match=text):
        mine(source, out, device="cpu")
    assert Folder(out).names() in ([], ["failed.log.jsonl"])
    Folder("memory://a").remove("")


def test_stores_that_cannot_be_written(rows: Path, s3: dict[str, Any]) -> None:
    nowhere = {"client_kwargs": {"endpoint_url": "http://127.0.0.1:1"}, "key": KEY, "secret": SECRET}
    quickly = {"config_kwargs": {"retries": {"max_attempts": 0}, "connect_timeout": 1}}
    places: list[tuple[str, Any, type[EdgemillError]]] = [
        ("s3://no-such-bucket/out", s3, UsageError),
        ("s3://bucket/out", nowhere | quickly, StoreLost),
    ]
    for url, options, kind in places:
        with pytest.raises(kind, match=f"cannot (write|list|read) {url}") as caught:
            mine(rows, url, client=None, device="cpu", **{"output.storage_options": options})
        assert SECRET not in str(caught.value)


def test_inputs_in_stores_that_cannot_be_read(
    rows: Path, tmp_path: Path, s3: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that does not answer is no bad input: a retry may succeed. Keys that are missing are the user's to set."""
    quickly = {"config_kwargs": {"retries": {"max_attempts": 0}, "connect_timeout": 1}}
    nowhere = {"client_kwargs": {"endpoint_url": "http://127.0.0.1:1"}}
    known = {"key": KEY, "secret": SECRET}
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for more, kind, why in ((known, StoreLost, "Could not connect"), ({}, UsageError, "Unable to locate credentials")):
        with pytest.raises(kind, match=rf"s3://bucket/edges.*{why}"):
            mine(
                "s3://bucket/edges",
                tmp_path / "out",
                client=None,
                input={"storage_options": nowhere | quickly | more},
            )
    assert os.listdir(tmp_path) == ["out.failed.log.jsonl"]


@pytest.mark.parametrize("at", [1, 3])
def test_a_store_that_goes_away_while_it_is_read(
    rows: Path, tmp_path: Path, client: Client, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    """While footers are read, and while rows are."""
    source = Folder(f"memory://goes-away {next(_numbers)}/edges")
    for part in rows.iterdir():
        source.files.pipe_file(source.path(part.name), part.read_bytes())
    opened, fetched = itertools.count(1), type(source.files)._open

    def fetch(self: Any, *arguments: Any, **more: Any) -> Any:
        if next(opened) >= at:
            raise ConnectionResetError(104, "Connection reset by peer")
        return fetched(self, *arguments, **more)

    monkeypatch.setattr(type(source.files), "_open", fetch)
    with pytest.raises(StoreLost, match=r"memory:/.*reset"):
        mine(source.url, tmp_path / "out", client=client, device="cpu")


@pytest.mark.parametrize(
    ("command", "at"),
    [
        ("top", 3),
        ("verify", 30),
        *(pytest.param("top", at, marks=pytest.mark.slow) for at in (1, 2, 4)),
        *(pytest.param("verify", at, marks=pytest.mark.slow) for at in (1, 2)),
    ],
)
def test_a_store_that_goes_away_while_a_result_is_read(
    rows: Path, client: Client, monkeypatch: pytest.MonkeyPatch, command: str, at: int
) -> None:
    """Its manifest, a footer, or rows: no answer is no damage, and no mistake that `verify` finds."""
    out = Folder(f"memory://goes-away {next(_numbers)}/result")
    monkeypatch.setattr(Plan, "buckets", 2)  # files enough
    run(rows, out, client)
    files = type(out.files)
    asked = itertools.count(1)

    def gone(answer: Callable[..., Any]) -> Callable[..., Any]:
        def ask(*arguments: Any, **more: Any) -> Any:
            if next(asked) >= at:
                raise ConnectionResetError(104, "Connection reset by peer")
            return answer(*arguments, **more)

        return ask

    monkeypatch.setattr(files, "_open", gone(files._open))
    monkeypatch.setattr(files, "cat_file", gone(files.cat_file))
    done = call(command, out.url)
    assert done.exit_code == 4
    assert re.match(
        r"Error: .*memory://goes-away \d+/result.*Connection reset|Error: no answer from an object store", done.stderr
    )


@pytest.mark.parametrize("what", ["find", "_open"])
def test_a_store_that_goes_away_while_its_edges_are_compared(
    rows: Path, plain: Result, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    source = Folder(f"memory://goes-away {next(_numbers)}/compared")
    for part in rows.iterdir():
        source.files.pipe_file(source.path(part.name), part.read_bytes())

    def gone(*_: object, **__: object) -> None:
        raise ConnectionResetError(104, "Connection reset by peer")

    monkeypatch.setattr(type(source.files), what, gone)
    with pytest.raises(
        StoreLost, match=r"^cannot (list|read) memory://goes-away \d+/compared: .*Connection reset by peer"
    ):
        verify(plain.place, source.url)


def test_what_to_install(rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)
    monkeypatch.delitem(vars(import_module("fsspec.registry"))["_registry"], "s3", raising=False)
    here = tmp_path / "out"
    for source, out in ((rows, "s3://bucket/out"), ("s3://bucket/in", here)):
        with pytest.raises(UsageError, match=r"package.*'edgemill\[s3\]'"):
            mine(source, out, device="cpu")
    assert not here.exists()


COMMAND = "import sys; from edgemill.pipeline.cli import edgemill; edgemill(sys.argv[1:])"
GATED = """
import sys
from edgemill.pipeline.cli import edgemill
from edgemill.pipeline.opening import input as run_input
opened = run_input.open_input
run_input.open_input = lambda settings: (sys.stdin.readline(), opened(settings))[1]
print("ready", flush=True)
sys.stdin.readline()
edgemill(sys.argv[1:])
"""
KILLED = """
import os, signal, sys
from edgemill.pipeline.cli import edgemill
from edgemill.pipeline.events import Events
exchange = Events.exchange
def kill(self, record):
    exchange(self, record)
    if record.exchange == 5:
        os.kill(os.getpid(), signal.SIGKILL)
Events.exchange = kill
edgemill(sys.argv[1:])
"""


@pytest.mark.slow
def test_two_runs_of_the_command(rows: Path, plain: Result, s3: dict[str, Any], tmp_path: Path) -> None:
    out = "s3://bucket/two runs"
    run = (s3, tmp_path, GATED, "run", "--input", str(rows), "--output", out, "--device", "cpu")
    with start(*run) as first, start(*run) as second:
        for started in (first, second):
            assert started.stdin is not None
            assert started.stdout is not None
            assert started.stdout.readline() == "ready\n"
            started.stdin.write("go\n")
            started.stdin.flush()
        while first.poll() is None and second.poll() is None:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
        loser, winner = (first, second) if first.poll() is not None else (second, first)
        _, told = loser.communicate()
        assert loser.returncode == OutputLocked.exit_code, told
        assert f"process {winner.pid} on " in told
        _, told = winner.communicate("go\n")
    assert winner.returncode == 0, told
    place = Folder(out, s3)
    assert tables(Result(place)) == tables(plain)
    assert_one_result(place, "report.html")
    for arguments in (["show", out], ["top", out], ["diff", out, out], ["verify", out, "--input", str(rows)]):
        with start(s3, tmp_path, COMMAND, *arguments) as done:
            shown, told = done.communicate()
        assert done.returncode == 0, shown + told


def test_an_object_that_is_replaced_or_removed_is_not_read(rows: Path, s3: dict[str, Any]) -> None:
    """As a block is read, while it is read, and where all blocks have been read."""
    folder = Folder(f"s3://bucket/replaced {next(_numbers)}", s3)
    for path in rows.iterdir():
        folder.write(path.name, path.read_bytes())
    source = open_source(folder.url, storage_options=s3)
    file, names = source.files[0], folder.names()
    block, whole = plan_blocks(source, 1)[0], (rows / names[0]).read_bytes()
    assert len(read_rows(source, block)) == file.rows
    folder.write(names[0], whole)  # the same content has the same ETag
    refuse_changed_files(source)
    other = bytearray(whole)
    other[20] ^= 1
    with pytest.raises(InputError, match="changed during"), open_parquet(file.path, file.version, s3) as opened:
        folder.write(names[0], bytes(other))
        opened.read()
    for ask in (lambda: read_rows(source, block), lambda: refuse_changed_files(source)):
        with pytest.raises(InputError, match=rf"{names[0]} changed"):
            ask()
    folder.remove(names[0])
    for ask in (lambda: read_rows(source, block), lambda: refuse_changed_files(source)):
        with pytest.raises(InputError, match=rf"{names[0]} was removed"):
            ask()


@pytest.mark.slow
def test_an_object_that_is_replaced_during_a_run(
    rows: Path, out: Folder, s3: dict[str, Any], client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Folder(f"s3://bucket/replaced {next(_numbers)}", s3)
    for path in rows.iterdir():
        folder.write(path.name, path.read_bytes())
    emit = Events.emit

    def replace(self: Events, event: str, /, **fields: object) -> None:
        emit(self, event, **fields)
        if (event, fields.get("stage")) == ("stage_started", "publish"):
            folder.write(folder.names()[0], (rows / folder.names()[1]).read_bytes())

    monkeypatch.setattr(Events, "emit", replace)
    with pytest.raises(InputError, match="changed during"):
        run(folder.url, out, client, **{"input.storage_options": s3})
    assert out.names() == ["failed.log.jsonl"]


@pytest.mark.slow
def test_a_killed_driver(rows: Path, plain: Result, s3: dict[str, Any], tmp_path: Path) -> None:
    """The same command follows the dead run's lock, clears what it left, and goes on from its checkpoint."""
    place, settings = Folder("s3://bucket/killed", s3), ["--method", "band"]
    settings += ["--set", "checkpoint.every_exchanges=2"]
    command = ["run", "--input", str(rows), "--output", place.url, "--device", "cpu", *settings]
    with start(s3, tmp_path, KILLED, *command) as killed:
        killed.communicate()
    assert killed.returncode == -signal.SIGKILL
    assert place.names() == [".edgemill.checkpoint", LOCK_NAME]
    with start(s3, tmp_path, COMMAND, *command) as again:
        _, told = again.communicate()
    assert again.returncode == 0, told
    assert_one_result(place, "report.html")
    result = Result(place)
    assert tables(result) == tables(plain)
    events = log(result)
    assert next(line["exchange"] for line in events if line["event"] == "exchange") == 5
    assert [line for line in events if line["event"] == "lock_taken_over"]


@pytest.mark.slow
def test_nights(rows: Path, plain: Result, s3: dict[str, Any], client: Client) -> None:
    """Four nights of which two stay, with the pointer that readers follow; nothing of the others is left."""
    series = Folder(f"s3://bucket/nights {next(_numbers)}", s3)
    days = [f"2026-11-{day}" for day in (17, 19, 18, 20)]
    for day in days:
        run(rows, series.subfolder("{date}"), client, date=day, nightly={"keep": 2})
        latest = Result(f"{series.url}/latest", s3)
        assert str(latest.place).endswith(max(days[: days.index(day) + 1]))
    assert tables(latest) == tables(plain)
    assert verify(series.subfolder("latest"), rows).ok
    assert series.names() == ["2026-11-19", "2026-11-20", "latest"]
    assert_one_result(series.subfolder("2026-11-19"))
    again = run(rows, series.subfolder("{date}"), client, date="2026-11-20", nightly={"keep": 1})
    assert again.manifest.run == latest.manifest.run
    assert series.names() == ["2026-11-20", "latest"]
    marker = "s3://bucket/marked"
    with pytest.raises(InputIncomplete, match=r"marked/_SUCCESS.*there"):
        mine(marker, "memory://x", client=client, input={"storage_options": s3, "complete_marker": "_SUCCESS"})
