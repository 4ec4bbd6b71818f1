"""What `mine` and the questions take from Python: paths and sections, settings by name, clients, ids."""

from __future__ import annotations

import copy
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any, cast, get_args, get_type_hints

import dask
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from distributed import Client

import edgemill
import keywords as maker
import runs
from edgemill import Group, Result, UsageError, edges_of, mine
from edgemill.pipeline.cluster.client import client_for, refuse_unseen
from edgemill.pipeline.python_api import keywords
from edgemill.pipeline.results import temporary
from edgemill.pipeline.results.temporary import TemporaryFolder
from edgemill.pipeline.settings.models import SECTIONS, ClusterSettings
from edgemill.pipeline.settings.sources import KEYWORDS, make_settings

CLIQUE = [(a, b) for a in range(5) for b in range(a + 1, 5)]
ROWS = [*CLIQUE, (4, 9), (9, 10)]


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return runs.write_rows(tmp_path_factory.mktemp("rows") / "rows.parquet", ROWS)


@pytest.fixture(scope="module")
def result(rows: Path, tmp_path_factory: pytest.TempPathFactory, client: Client) -> Result:
    return mine(rows, tmp_path_factory.mktemp("result") / "out", client=client, report=False)


def events_of(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (result.path / "log.jsonl").read_text().splitlines()]


def test_the_typed_keywords_are_those_of_the_settings() -> None:
    assert maker.FILE.read_text(encoding="utf-8") == maker.made(), "run python docs/making/keywords.py"
    hints = get_type_hints(keywords.Keywords)
    assert hints.keys() == {*SECTIONS, *KEYWORDS}
    for section, holder in SECTIONS.items():
        typed = next(kind for kind in get_args(hints[section]) if kind.__name__ == f"{section.capitalize()}Section")
        assert get_type_hints(typed).keys() == holder.model_fields.keys()
    assert {f"{section}.{name}" for section, holder in SECTIONS.items() for name in holder.model_fields} >= maker.PATHS


def test_the_public_names_are_those_of_the_pipeline() -> None:
    assert maker.PACKAGE.read_text(encoding="utf-8") == maker.package_with_names(), "run python docs/making/keywords.py"


def test_each_keyword_sets_what_it_names() -> None:
    """One that a single section has, by its own name; others by the name of the command's flag."""
    settings = make_settings("edges", "out", nulls="drop", compression="snappy", partitions=3, rows_per_block=10)
    assert (settings.input.nulls, settings.output.compression) == ("drop", "snappy")
    assert (settings.partitioning.count, settings.ingest.rows_per_block) == (3, 10)
    assert KEYWORDS["method"] == "bounding.method" and "storage_options" not in KEYWORDS and "path" not in KEYWORDS


@pytest.mark.parametrize(
    ("positional", "named"),
    [
        (("edges", "out"), {"input": {"nulls": "drop"}, "output": {"report": False}}),
        (("edges",), {"output": {"path": "out", "report": False}, "nulls": "drop"}),
        ((), {"input": {"path": Path("edges"), "nulls": "drop"}, "output": "out", "report": False}),
        ((), {"input": "edges", "output": Path("out"), "input.nulls": "drop", "output.report": False}),
        ((Path("edges"),), {"output": {"path": Path("out"), "report": False}, "nulls": "drop"}),
    ],
)
def test_input_and_output_are_paths_or_sections(positional: tuple[Any, ...], named: dict[str, Any]) -> None:
    settings = make_settings(*positional, **named)
    assert (settings.input.path, settings.input.nulls) == ("edges", "drop")
    assert (settings.output.path, settings.output.report) == ("out", False)


@pytest.mark.parametrize(
    ("positional", "named", "told"),
    [
        (("a", "b"), {"output": "c"}, "output is set twice: leave one out"),
        (("a", "b"), {"input": {"path": "c"}}, "input is set twice"),
        (("a", "b"), {"partitions": 2, "partitioning": {"count": 3}}, "partitions is set twice"),
        (("a", "b"), {"nuls": "drop"}, "unknown setting 'nuls'; did you mean nulls?"),
        (("a", "b"), {"n_workers": 2}, "unknown setting 'n_workers'; did you mean .*workers"),
        (("a", "b"), {"count": 2}, "unknown setting 'count'; did you mean partitions?"),
        (("a", "b"), {"zebra": 2}, "unknown setting 'zebra'; known: input, output"),
        (
            ("a", "b"),
            {"bounding": {"metod": "band"}},
            r"unknown setting bounding\.metod; did you mean method\?",
        ),
        (
            ("a", "b"),
            {"storage_options": {}},
            "storage_options is a setting of input, output and checkpoint: name the section",
        ),
        (("a", "b"), {"bounding": "band"}, "bounding takes a mapping of settings, got str"),
        ((), {}, r'mine needs an input: give a path or a frame first, as in mine\("edges.parquet", "out"\)'),
        ((3, "b"), {}, "mine cannot read a builtins.int: give a path"),
        (("a", 3), {}, "output: must be a valid string"),
        (
            ("a",),
            {"checkpoint": {"path": "kept"}},
            "checkpoint.path needs an output, with which a later run resumes",
        ),
        (
            ("a",),
            {"scheduler": "tcp://127.0.0.1:1"},
            "may not see a temporary result in .*: name an output in a folder",
        ),
    ],
)
def test_message_of_a_wrong_call(positional: tuple[Any, ...], named: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        mine(*positional, **named)


def test_a_temporary_result_goes_with_its_object(rows: Path, client: Client) -> None:
    result = mine(rows, client=client)
    path = result.path
    assert result.is_temporary and repr(result).endswith("temporary)") and not (path / "report.html").exists()
    with pytest.raises(UsageError, match="is inside it"):
        mine(path / "edges", path, client=client)
    del result
    assert not path.parent.exists()
    runs.assert_nothing_left(client)


def test_what_reads_a_temporary_result_keeps_it(rows: Path, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    removed, remove = Event(), temporary._remove

    def tell(path: str, owner: int) -> None:
        remove(path, owner)
        removed.set()

    monkeypatch.setattr(temporary, "_remove", tell)
    batches = mine(rows, client=client).edges.to_batches()
    assert sum(batch.num_rows for batch in batches) == len(ROWS)
    table = mine(rows, client=client).edges
    assert removed.wait(60)  # Arrow's threads may hold what they read for a moment longer
    removed.clear()
    assert table.to_table().num_rows == len(ROWS)
    fragments = list(table.get_fragments())
    del table
    assert fragments[0].to_table().num_rows and not removed.is_set()
    del fragments
    assert removed.wait(60)


def test_copies_of_a_temporary_result(rows: Path, client: Client) -> None:
    """The folder lasts as long as one of them needs it. A pickle would be of files that go with this process."""
    result = mine(rows, client=client)
    path, table = result.path, result.edges
    for copied in (copy.copy(result), copy.deepcopy(result)):
        assert copied.is_temporary and copied.edges.to_table() == table.to_table()
        copied.close()
        assert copied.is_removed and not result.is_removed and path.is_dir()
    for thing in (result, table, result.vertices.filter(pc.field("degree") > 1), edges_of(result, 0)):
        with pytest.raises(UsageError, match=r"(?s)temporary result in .*pickled.*(save\(path\)|to_arrow\(\))"):
            pickle.dumps(thing)
    assert pickle.loads(pickle.dumps(result.save(path.parent / "kept"))).manifest.run == result.manifest.run
    last, kept_table = copy.deepcopy(result), copy.deepcopy(table)
    result.close()
    assert result.is_removed and result.is_temporary and last.edges.to_table() == kept_table.to_table()
    with pytest.raises(UsageError, match="is removed"):
        _ = result.edges
    result.close()  # again: the other one still holds the folder
    assert path.is_dir()
    del result, table, kept_table, thing
    last.close()
    assert not path.exists()


def test_a_temporary_result_goes_with_its_block(rows: Path, client: Client, tmp_path: Path) -> None:
    with mine(rows, client=client, report=True) as result:
        assert (result.path / "report.html").exists()
        before = result.edges.to_table()
        kept = result.save(tmp_path / "kept")
    assert not result.path.exists() and "temporary: removed" in repr(result)
    with pytest.raises(UsageError, match="an output"):
        _ = result.edges
    with pytest.raises(UsageError, match="is removed"):
        result.save(tmp_path / "again")
    result.close()
    assert not kept.is_temporary and kept.edges.to_table() == before
    assert kept.manifest.settings["output"]["path"] == str(tmp_path / "kept")
    assert Result(tmp_path / "kept").manifest.counts == result.manifest.counts
    with kept:
        pass
    assert kept.path.exists()


def test_a_copy_replaces_results_alone(result: Result, tmp_path: Path) -> None:
    copy = result.save(tmp_path / "copy")
    with pytest.raises(UsageError, match="exists"):
        result.save(tmp_path / "copy")
    assert result.save(tmp_path / "copy", overwrite=True).edges.to_table() == copy.edges.to_table()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("kept")
    with pytest.raises(UsageError, match="edgemill result"):
        result.save(tmp_path / "mine", overwrite=True)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["copy", "mine"]
    in_store = result.save("memory://copies/one")
    assert in_store.edges.to_table() == result.edges.to_table()
    assert in_store.save(tmp_path / "back").vertices.to_table() == result.vertices.to_table()


def test_nothing_is_left_of_a_temporary_run_that_fails(
    rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, client: Client
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(edgemill.InputError) as caught:
        mine(tmp_path / "nowhere", client=client)
    assert not list(tmp_path.iterdir()) and not getattr(caught.value, "__notes__", [])
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
    with pytest.raises(UsageError, match="cannot make"):
        mine(rows, client=client)


def test_a_temporary_folder_goes_when_python_ends(tmp_path: Path) -> None:
    """Of the process that made it, and not of one that was forked from it."""
    code = """
import os
from edgemill.pipeline.results.temporary import TemporaryFolder
folder = TemporaryFolder()
folder.result.mkdir()
if (child := os.fork()) == 0:
    raise SystemExit
os.waitpid(child, 0)
print(folder.result.is_dir())
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=os.environ | {"TMPDIR": str(tmp_path)}, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("True\n", "") and not list(tmp_path.iterdir())


@pytest.fixture
def active(client: Client) -> Iterator[Client]:
    with client.as_current():
        yield client


def test_the_active_client_computes(active: Client, rows: Path, tmp_path: Path) -> None:
    result = mine(rows, tmp_path / "out", report=False)
    (told,) = (event for event in events_of(result) if event["event"] == "client")
    scheduler: Any = active.scheduler
    assert told["scheduler"] == scheduler.address
    runs.assert_nothing_left(active)


def test_which_client_computes(active: Client) -> None:
    none = ClusterSettings()
    assert client_for(none, None) is active and client_for(none, active) is active
    assert client_for(ClusterSettings(device="cpu", least_workers=2), None) is active
    for others in (
        ClusterSettings(workers=2),
        ClusterSettings(scheduler="tcp://h:1"),
        ClusterSettings(silence_seconds=9),
    ):
        assert client_for(others, None) is None
    with dask.config.set(scheduler="threads"):
        assert client_for(none, None) is None
    with dask.config.set(scheduler="distributed"):
        assert client_for(none, None) is active
    # Within a task it would wait for others on the thread that they may need.
    assert active.submit(lambda: client_for(ClusterSettings(), None) is None, pure=False).result()


def test_no_client_is_active(client: Client) -> None:
    """The one of the tests is nobody's default."""
    assert client_for(ClusterSettings(), None) is None


def test_a_client_beside_other_clusters_is_refused(client: Client, rows: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="exclude each"):
        mine(rows, tmp_path / "out", client=client, workers=2)
    with pytest.raises(UsageError, match=r"scheduler_file.*tls_ca_file.*tls_cert_file"):
        tls: Any = {"tls_ca_file": "a", "tls_cert_file": "b", "scheduler_file": "c"}
        mine(rows, tmp_path / "out", client=client, cluster=tls)
    wrong: Any = "tcp://127.0.0.1:8786"
    with pytest.raises(UsageError, match=r"distributed\.Client.*str"):
        mine(rows, tmp_path / "out", client=wrong)
    assert not list(tmp_path.iterdir())


def test_workers_must_see_a_temporary_result(two_workers: Client) -> None:
    """Those of another machine do not; here they do not see a folder that is gone."""
    folder = TemporaryFolder()
    refuse_unseen(folder.result.parent, ClusterSettings(), two_workers)
    folder.remove()
    with pytest.raises(UsageError, match=r"tcp://.*see"):
        refuse_unseen(folder.result.parent, ClusterSettings(), two_workers)


def test_questions_take_paths_and_ids(result: Result) -> None:
    path = str(result.path)
    best = edgemill.top(path, count=1)
    assert best == edgemill.top(result, count=1)
    for id in (best["id"][0], best["id"][0].as_py(), np.int64(best["id"][0].as_py())):
        group = edgemill.find_dn_graph(path, id)
        assert group == edgemill.find_group(result, id) == edgemill.groups_of(path, 0)[0]
        assert isinstance(group, Group)
        assert edgemill.member_ids(path, id).equals(edgemill.member_ids(result, group))
        assert edgemill.members_of(path, id) == edgemill.members_of(result, group)
        assert edgemill.edges_of(Path(path), id).read_all() == edgemill.edges_of(result, group).read_all()
        assert edgemill.ktruss(path, 5, id).read_all() == edgemill.ktruss(result, 5, group.component).read_all()
    assert edgemill.ktruss_groups(path, 3) == edgemill.ktruss_groups(result, 3)
    assert edgemill.group_at(path, 0, 3) == edgemill.group_at(result, 0, 3)
    assert edgemill.attributes_of(path, [0]) == edgemill.attributes_of(result, [0])
    assert edgemill.labels_of(path, [0]) == edgemill.labels_of(result, [0]) == [None]
    assert edgemill.find_vertex(path, pa.scalar(4)) == edgemill.find_vertex(result, "4")


@pytest.mark.parametrize(
    ("question", "told"),
    [
        (
            lambda result: edgemill.members_of(result, cast(Any, "88")),
            "the id of a component must be a whole number, .*, got '88'",
        ),
        (lambda result: edgemill.members_of(result, 10**6), "there is no component 1000000"),
        (lambda result: edgemill.find_dn_graph(result, cast(Any, 1.5)), "the id of a DN-graph must be a whole number"),
        (lambda result: edgemill.top(result.path / "none"), "there is no result at .*none"),
        (lambda result: edgemill.top(result.edges), "expected a Result or its path, got "),
    ],
)
def test_message_of_a_wrong_question(result: Result, question: Any, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        question(result)
