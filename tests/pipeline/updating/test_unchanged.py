"""A night whose input and settings are those of an earlier result takes all its files over, and computes nothing."""

from __future__ import annotations

import json
import re
import shutil
from concurrent.futures import Future
from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import runs
from edgemill.pipeline import Result, mine
from edgemill.pipeline.inputs.input_object import open_input
from edgemill.pipeline.plan.seconds import START_SECONDS
from edgemill.pipeline.settings.models import InputSettings, Settings
from edgemill.pipeline.settings.sources import settings_of
from edgemill.pipeline.updating import beginning, deciding
from edgemill.pipeline.updating.planning import UpdatePlan, plan_update
from edgemill.pipeline.updating.unchanged import Digests, digests_of, is_same
from edgemill.tasks.errors import InputError
from edgemill.tasks.inputs.open_source import open_source
from edgemill.tasks.inputs.sources import SourceFile, file_digests

CLIQUES = [(9 * c + u, 9 * c + v) for c in range(4) for u, v in combinations(range(8), 2)]
OPTIONS: dict[str, Any] = {"device": "cpu", "incremental": "auto", "programs": "lambda,components"}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """Of two files, with a vertex program, which a night with changes would run on a cluster."""
    folder = tmp_path_factory.mktemp("base")
    (folder / "monday").mkdir()
    runs.write_rows(folder / "monday" / "a.parquet", CLIQUES[:50])
    runs.write_rows(folder / "monday" / "b.parquet", CLIQUES[50:])
    return mine(folder / "monday", folder / "out", **OPTIONS)


@pytest.fixture
def tuesday(base: Result, tmp_path: Path) -> Path:
    """The same files under other names."""
    (tmp_path / "tuesday").mkdir()
    for old, new in (("a", "z"), ("b", "y")):
        shutil.copyfile(base.path.parent / "monday" / f"{old}.parquet", tmp_path / "tuesday" / f"{new}.parquet")
    return tmp_path / "tuesday"


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Computation raises an error."""

    def refuse(*arguments: object) -> None:
        raise AssertionError("a night without change must not compute")

    monkeypatch.setattr(beginning, "begin", refuse)


def page(result: Result) -> str:
    return (result.path / "report.html").read_text("utf-8")


@pytest.mark.usefixtures("computed")
def test_all_files_are_taken_over(base: Result, tuesday: Path, tmp_path: Path) -> None:
    second = mine(tuesday, tmp_path / "second", previous=str(base.path), **OPTIONS)
    third = mine(tuesday, tmp_path / "third <3>", previous=str(second.path), **OPTIONS)
    for made, before, nights in ((second, base, 1), (third, second, 2)):
        record, then = made.manifest.update, before.manifest
        assert record is not None and (record.reason, record.nights) == ("nothing has changed", nights)
        assert (record.base_run, record.full_run, record.changed) == (then.run, base.manifest.run, 0)
        assert [(o.path, o.sha256) for o in made.manifest.outputs] == [(o.path, o.sha256) for o in then.outputs]
        assert all(made.path.joinpath(o.path).samefile(before.path / o.path) for o in made.manifest.outputs)
        assert record.files_kept == len(then.outputs) and made.manifest.programs == then.programs
        assert made.manifest.tracks is not None and made.manifest.tracks.continued == then.dense.dn_graphs  # type: ignore[union-attr]
        assert runs.flaws(made.path) == []
        state = json.loads((made.path / "state" / "index.json").read_text("utf-8").partition("\n")[2])
        assert state["run"] == made.manifest.run
        assert page(made).count("Nothing has changed") == 1 and f"run {made.manifest.run} took" in page(made)
    assert [Path(file.path).name for file in second.manifest.input.files] == ["y.parquet", "z.parquet"]
    for made, name in ((second, "second"), (third, "third &lt;3&gt;")):
        commands = re.findall(r"<code>edgemill (?:explore|members|subgraph) (.*?)</code>", page(made))
        assert len(commands) == 3 and all(f"/{name}" in command for command in commands)
    assert "<h1>third &lt;3&gt;</h1>" in page(third) and "<title>third &lt;3&gt;: " in page(third)


@pytest.mark.parametrize(
    "other",
    [{"compression": "snappy"}, {"full_every": 1}, {"nulls": "drop"}, {"programs": "lambda"}],
    ids=["format", "full run due", "rows", "programs"],
)
def test_other_settings_compute(
    base: Result, tuesday: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: dict[str, Any]
) -> None:
    class Computed(Exception):
        pass

    def begin(*arguments: object) -> None:
        raise Computed

    monkeypatch.setattr(beginning, "begin", begin)
    with pytest.raises(Computed):
        mine(tuesday, tmp_path / "out", previous=str(base.path), **{**OPTIONS, **other})


def test_other_rows_compute(base: Result, tuesday: Path, tmp_path: Path) -> None:
    runs.write_rows(tuesday / "z.parquet", [*CLIQUES[:49], (500, 501)])
    made = mine(tuesday, tmp_path / "out", previous=str(base.path), **{**OPTIONS, "programs": "lambda"}, report=False)
    assert made.manifest.update is not None and made.manifest.update.inserted == 1
    assert {file.sha256 for file in made.manifest.input.files} == {*file_digests(open_files(tuesday))}  # type: ignore[misc]


def open_files(folder: Path) -> tuple[SourceFile, ...]:
    return open_source(str(folder), None, None, {}).files


def test_digests(tuesday: Path) -> None:
    files = open_files(tuesday)
    first, second = file_digests(files) or ("", "")
    assert first != second and len(first) == 64
    pq.write_table(pq.read_table(files[0].path), files[1].path)
    assert file_digests([SourceFile("s3://bucket/a", 1, (1,), None)]) is None
    (tuesday / "y.parquet").unlink()
    with pytest.raises(InputError, match=r"read.*y\.parquet"):
        file_digests(files)


def test_inputs_without_digests(tuesday: Path) -> None:
    settings = InputSettings(path=str(tuesday), where="src > 3")
    source = open_source(str(tuesday), None, None, {}, form=settings.form)
    assert source.where is not None and digests_of(source).result() is None


def test_digests_are_waited_for_if_the_files_have_the_same_sizes(base: Result, tuesday: Path) -> None:
    class Asked(Exception):
        pass

    digests: Digests = Future()
    digests.set_exception(Asked())
    settings, source = settings_for(base, tuesday), open_source(str(tuesday), None, None, {})
    with pytest.raises(Asked):
        is_same(settings, base, source, None, digests)
    runs.write_rows(tuesday / "z.parquet", CLIQUES[:30])
    assert not is_same(settings, base, open_source(str(tuesday), None, None, {}), None, digests)


def settings_for(base: Result, folder: Path, **other: Any) -> Settings:
    options = {"cluster.device": "cpu", "nightly.incremental": "auto", "nightly.previous": str(base.path)}
    paths = {"input.path": str(folder), "output.path": str(folder.parent / "out")}
    programs = {"programs.run": ("lambda", "components")}
    return settings_of(options | paths | programs | other)


def planned(base: Result, folder: Path, **other: Any) -> UpdatePlan | None:
    own = settings_for(base, folder, **other)
    return plan_update(own, open_input(own))


def test_plans(base: Result, tuesday: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = START_SECONDS, deciding.WORK_SECONDS
    monkeypatch.setattr(
        deciding, "predicted_seconds", lambda edges, triangles, threads: seconds[0] + seconds[1] * triangles
    )
    found = planned(base, tuesday)
    assert found == UpdatePlan(str(base.path), "unchanged", "nothing has changed", 0, 0)
    assert all(fact in found.describe() for fact in ("all files", "nothing has changed", f"(since {base.path})"))
    runs.write_rows(tuesday / "z.parquet", [*CLIQUES[:49], (500, 501)])
    expected: dict[str, dict[str, Any]] = {
        "betweenness runs on workers": {"programs.run": ("lambda", "components", "betweenness")},
        "programs has a limit of its own": {"programs.max_supersteps": 3},
        "several workers compute": {"programs.run": ("lambda",), "cluster.workers": 2},
    }
    for reason, other in expected.items():
        assert planned(base, tuesday, **other) == UpdatePlan(str(base.path), "run", reason)
    changed = planned(base, tuesday, **{"programs.run": ("lambda",)})
    assert changed is not None and (changed.way, changed.inserted, changed.deleted) == ("whole", 1, 1)
    assert re.fullmatch(r"2 of 2 changed edges, .* over \d+ triangles; the budget is 56", changed.reason)
    due = planned(base, tuesday, **{"programs.run": ("lambda",), "nightly.full_every": 1})
    assert due is not None and due.way == "whole" and "full_every" in due.reason
    runs.write_rows(tuesday / "z.parquet", [*CLIQUES[:50], (500, 501)])
    small = planned(base, tuesday, **{"programs.run": ("lambda",)})
    assert small is not None and (small.way, small.expected_work) == ("changes", 0)
    assert re.search(r"1 of 1 changed edges, .* about 0 triangles; the budget is 56$", small.reason)
    assert planned(base, tuesday, **{"nightly.previous": None, "nightly.incremental": "never"}) is None
    nothing = planned(base, tuesday, **{"nightly.previous": None})
    assert nothing is not None and "no earlier result" in nothing.reason
