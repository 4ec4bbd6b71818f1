"""Tracks of communities and groups of cores over nights: the rules of DN-graphs, in any layout, and where they show."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import Result as Ended
from hypothesis import given
from hypothesis import strategies as st

import fates
import runs
from edgemill.pipeline import Result, UsageError, diff, find_track, member_ids, mine, top
from edgemill.pipeline.output.manifest import write_manifest
from edgemill.pipeline.plan.plan import Plan
from edgemill.pipeline.queries.groups import find_group
from edgemill.tasks.dense.listing import homes_of, list_bucket
from edgemill.tasks.dense.merge import HierarchyRows
from edgemill.tasks.verify.groups import read_groups
from edgemill.tasks.verify.reading import Flaw
from edgemill.tasks.verify.result import verify
from in_process import call

PROGRAMS = ("leiden", "core_groups")
Groups = list[Iterable[int]]

NIGHTS: dict[str, Groups] = {
    "2026-11-18": [range(9), range(20, 28), range(40, 47), range(60, 66)],
    # One swaps a member, two become one, one falls into halves, one begins.
    "2026-11-19": [range(1, 10), [*range(20, 28), *range(40, 47)], range(60, 63), range(63, 66), range(80, 85)],
    "2026-11-20": [range(1, 10), range(20, 28), range(80, 85)],
}


def write_day(folder: Path, day: str, groups: Groups) -> None:
    (folder / "edges" / day).mkdir(parents=True, exist_ok=True)
    edges = [edge for group in groups for edge in combinations(sorted(group), 2)]
    runs.write_rows(folder / "edges" / day / "part.parquet", edges)


def run(folder: Path, day: str, programs: str = "lambda,leiden,core_groups", *more: str, report: bool = False) -> Ended:
    paths = ["--input", f"{folder}/edges/{{date}}", "--output", f"{folder}/out/{{date}}", "--date", day]
    settings = ["--set", f"output.report={str(report).lower()}", "--set", "nightly.least_share=null"]
    ended = call("run", *paths, "--device", "cpu", "--programs", programs, *settings, *more)
    assert ended.exit_code == 0, ended.output
    return ended


def at(folder: Path, day: str) -> Result:
    return Result(folder / "out" / day)


def tracks_of(result: Result, program: str) -> dict[int, frozenset[int]]:
    """The members of each listed group, by its track; no other group has one."""
    listed = top(result, count=10**6, groups=program).to_pylist()
    every = result.table(result.groups_table(program)).to_table().to_pylist()
    assert {row["id"] for row in every if row["track"] is not None} == {row["id"] for row in listed}
    found = {row["track"]: find_group(result, row["id"], program) for row in listed}
    return {track: frozenset(member_ids(result, group).to_pylist()) for track, group in found.items()}


def expected(before: Mapping[int, frozenset[int]], groups: Groups, first: int) -> dict[int, frozenset[int]]:
    """Tracks by definition: those of partners, then new ones, the largest group first."""
    now = dict(enumerate(map(frozenset, groups)))
    same = fates.partners(dict(before), now)
    new = sorted(now.keys() - same.keys(), key=lambda number: (-len(now[number]), min(now[number])))
    found = {track: now[number] for number, track in same.items()}
    return found | {first + place: now[number] for place, number in enumerate(new)}


def log(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (result.path / "log.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("programs", ["lambda,leiden,core_groups", "leiden,core_groups"])
def test_nights(tmp_path: Path, programs: str) -> None:
    """With and without λ. The groups of both programs are the cliques of a night."""
    known: dict[int, frozenset[int]] = {}
    first, before = 1, None
    for day, groups in NIGHTS.items():
        write_day(tmp_path, day, groups)
        run(tmp_path, day, programs)
        result = at(tmp_path, day)
        wanted = expected(known, groups, first)
        first = max(first, max(wanted) + 1)
        for program in PROGRAMS:
            assert tracks_of(result, program) == wanted
            record = result.manifest.tracks_of(program)
            assert record is not None
            assert (record.continued, record.again) == (len(wanted.keys() & known.keys()), 0)
            assert (record.new, record.next) == (len(wanted) - record.continued, first)
            if before is not None:
                assert record.previous is not None
                assert record.previous.run == before.manifest.run
                told = diff(before, result).program_groups[program]
                events = [own for own in log(result) if own["event"] == "followed"]
                (event,) = [own for own in events if own.get("program") == program]
                assert event["groups"] == told.__dict__ == fates.fates(known, wanted)[0].__dict__
        assert verify(result.place, tmp_path / "edges" / day).ok
        known, before = wanted, result
    assert before is not None and before.in_series
    assert run(tmp_path, "2026-11-20", programs).stdout.startswith("nothing to do")


def test_a_day_that_is_mined_again(tmp_path: Path) -> None:
    days = list(NIGHTS)
    for day in days[:2]:
        write_day(tmp_path, day, NIGHTS[day])
        run(tmp_path, day)
    then = tracks_of(at(tmp_path, days[1]), "leiden")
    write_day(tmp_path, days[1], [*NIGHTS[days[1]], range(100, 104)])
    run(tmp_path, days[1], "lambda,leiden,core_groups", "--overwrite")
    for program in PROGRAMS:
        assert tracks_of(at(tmp_path, days[1]), program) == then | {max(then) + 1: frozenset(range(100, 104))}
        record = at(tmp_path, days[1]).manifest.tracks_of(program)
        assert record is not None
        assert (record.continued, record.again, record.new) == (2, 3, 1)
    write_day(tmp_path, days[0], [*NIGHTS[days[0]], range(110, 114)])  # the day after it does not follow it any more
    ended = run(tmp_path, days[0], "leiden,core_groups", "--overwrite")
    assert f"tracks and changes of {days[1]} do not follow this result" in ended.stderr


def test_a_program_that_begins_later(tmp_path: Path) -> None:
    """All its tracks are new, which is no warning; those of DN-graphs go on."""
    days = list(NIGHTS)
    for day, programs in zip(days[:2], ("lambda", "lambda,leiden"), strict=True):
        write_day(tmp_path, day, NIGHTS[day])
        ended = run(tmp_path, day, programs)
        assert "Warning" not in ended.stderr
    result = at(tmp_path, days[1])
    assert sorted(tracks_of(result, "leiden")) == [1, 2, 3, 4, 5]
    record = result.manifest.tracks_of("leiden")
    assert record is not None and record.refused is not None and record.refused.day == days[0]
    assert result.manifest.tracks is not None and result.manifest.tracks.continued == 2
    assert run(tmp_path, days[1], "lambda,leiden").stdout.startswith("nothing to do")


@pytest.mark.parametrize("where", [slice(-9, None), slice(4, 200)], ids=["footer", "pages"])
def test_a_damaged_night_before(tmp_path: Path, where: slice) -> None:
    days = list(NIGHTS)
    for day in days[:2]:
        write_day(tmp_path, day, NIGHTS[day])
    run(tmp_path, days[0])
    part = next((at(tmp_path, days[0]).path / "core_groups").iterdir())
    content = bytearray(part.read_bytes())
    content[where] = bytes(byte ^ 255 for byte in content[where])
    part.write_bytes(content)
    ended = run(tmp_path, days[1])
    assert "Warning: all groups of core_groups get new tracks, since those of" in ended.stderr
    assert sorted(tracks_of(at(tmp_path, days[1]), "core_groups")) == [5, 6, 7, 8, 9]
    assert 1 in tracks_of(at(tmp_path, days[1]), "leiden")


@pytest.mark.parametrize("changed", [True, False])
def test_a_night_that_starts_from_the_one_before(tmp_path: Path, changed: bool) -> None:
    days = list(NIGHTS)
    write_day(tmp_path, days[0], NIGHTS[days[0]])
    write_day(tmp_path, days[1], NIGHTS[days[1 if changed else 0]])
    run(tmp_path, days[0], "lambda,leiden,core_groups", "--set", "nightly.incremental=auto")
    run(tmp_path, days[1], "lambda,leiden,core_groups", "--set", "nightly.incremental=always")
    before, result = at(tmp_path, days[0]), at(tmp_path, days[1])
    assert result.manifest.update is not None and result.manifest.update.way == "changes"
    for program in PROGRAMS:
        known = tracks_of(before, program)
        assert tracks_of(result, program) == expected(known, NIGHTS[days[1 if changed else 0]], max(known) + 1)
        record = result.manifest.tracks_of(program)
        assert record is not None and record.previous is not None
        assert (record.previous.day, record.previous.run) == (days[0], before.manifest.run)
        assert record.next == max(known) + 1 + record.new
    assert verify(result.place, tmp_path / "edges" / days[1]).ok


def test_the_same_in_any_buckets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for buckets in (1, 3):
        monkeypatch.setattr(Plan, "buckets", buckets)
        folder = tmp_path / str(buckets)
        for day in list(NIGHTS)[:2]:
            write_day(folder, day, NIGHTS[day])
            run(folder, day, "lambda,leiden,core_groups", "--partitions", "1")
        result = at(folder, day)
        files = [output for output in result.manifest.outputs if "core_groups/" in output.path]
        assert len(files) == buckets
        found.append([tracks_of(result, program) for program in PROGRAMS])
    assert found[0] == found[1]


@pytest.mark.slow
def test_workers(tmp_path: Path) -> None:
    days = list(NIGHTS)[:2]
    for day in days:
        write_day(tmp_path, day, NIGHTS[day])
        run(tmp_path, day, "lambda,leiden,core_groups", "--partitions", "2", "--set", "cluster.workers=2")
    for program in PROGRAMS:
        known = tracks_of(at(tmp_path, days[0]), program)
        assert tracks_of(at(tmp_path, days[1]), program) == expected(known, NIGHTS[days[1]], 5)


def test_where_tracks_are_shown(tmp_path: Path) -> None:
    write_day(tmp_path, "2026-11-18", NIGHTS["2026-11-18"])
    run(tmp_path, "2026-11-18", report=True)
    result = at(tmp_path, "2026-11-18")
    out, members = str(result.path), tracks_of(result, "leiden")[2]
    assert members == frozenset(range(20, 28))
    for program in PROGRAMS:
        assert member_ids(result, find_track(result, 2, groups=program)).to_pylist() == sorted(members)
        ended = call("members", out, "--groups", program, "--track", "2", "--json")
        assert {json.loads(line)["id"] for line in ended.stdout.splitlines()} == members
        ended = call("subgraph", out, "--groups", program, "--track", "2")
        assert len(ended.stdout.splitlines()) == 1 + 28
        shown = call("top", out, "--groups", program)
        assert shown.stdout.splitlines()[0].split()[-2:] == ["track", "members"]
        rows = [json.loads(line) for line in call("top", out, "--groups", program, "--json").stdout.splitlines()]
        assert [row["track"] for row in rows] == [1, 2, 3, 4]
        with pytest.raises(UsageError, match=f"no group of {program} has track 9"):
            find_track(result, 9, groups=program)
    ended = call("subgraph", out, "--groups", "leiden", "--dn-graph", "1")
    assert (ended.exit_code, "--groups needs --component ID or --track N" in ended.stderr) == (2, True)
    page = (result.path / "report.html").read_text()
    assert page.count("<caption>Largest of 4 groups, with their tracks</caption>") == 2


def test_outside_a_series(tmp_path: Path) -> None:
    """Numbers begin at 1, and no report or list shows them. A result of an earlier release has none."""
    edges = [edge for group in NIGHTS["2026-11-18"] for edge in combinations(group, 2)]
    rows = runs.write_rows(tmp_path / "rows.parquet", edges)
    result = mine(rows, tmp_path / "out", device="cpu", programs=("leiden",))
    assert sorted(tracks_of(result, "leiden")) == [1, 2, 3, 4] and not result.in_series
    assert "track" not in call("top", str(result.path), "--groups", "leiden").stdout
    assert "with their tracks" not in (result.path / "report.html").read_text()
    part = result.path / result.manifest.outputs[-1].path
    assert part.parent.name == "community_groups"
    table = pq.read_table(part).drop(["track"])
    part.unlink()
    pq.write_table(table, part)
    outputs = [*result.manifest.outputs[:-1]]
    outputs.append(result.manifest.outputs[-1].model_copy(update={"bytes": part.stat().st_size}))
    (result.path / "manifest.json").unlink()
    write_manifest(result.path, result.manifest.model_copy(update={"outputs": outputs}))
    with pytest.raises(UsageError, match="release without tracks"):
        find_track(Result(result.path), 1, groups="leiden")


def test_wrong_tracks_are_found(tmp_path: Path) -> None:
    write_day(tmp_path, "2026-11-18", NIGHTS["2026-11-18"])
    run(tmp_path, "2026-11-18")
    result = at(tmp_path, "2026-11-18")
    document = json.loads((result.path / "manifest.json").read_text())
    (part,) = (result.path / "core_groups").iterdir()
    table = pq.read_table(part)
    flaws = {"that of several groups": [1, 2, 2, 4], "has no track": [1, 2, 3, None], "not from 1 to 4": [1, 2, 3, 9]}
    for why, numbers in flaws.items():
        part.unlink()
        changed = table.set_column(table.schema.get_field_index("track"), "track", pa.array(numbers, pa.int64()))
        pq.write_table(changed, part, write_page_checksum=True)
        with pytest.raises(Flaw, match=why):
            read_groups(result.place, document, "core_groups")


@given(st.lists(st.tuples(st.integers(-1, 10), st.integers(1, 3)), max_size=12), st.sampled_from([None, 0, 2, 5]))
def test_homes(shape: list[tuple[int, int]], level: int | None) -> None:
    """The listed group of any group, by walking to its parents."""
    parent, k = np.full(len(shape), -1), np.zeros(len(shape), np.int32)
    for number, (up, rise) in enumerate(shape):
        parent[number] = up if up < number else -1
        k[number] = rise - 1 + (0 if parent[number] < 0 else k[parent[number]] + 1)
    ids = np.arange(len(shape), dtype=np.int64) * 3 + 5
    above = np.where(parent < 0, -1, parent * 3 + 5)
    ones, is_leaf = np.ones(len(shape), np.int64), ~np.isin(np.arange(len(shape)), parent)
    groups = HierarchyRows(ids, k, above, ones, ones, is_leaf)

    def home(number: int) -> int | None:
        if level is None:
            return number if is_leaf[number] else None
        found = None
        while number >= 0 and k[number] >= level:
            found, number = number, int(parent[number])
        return found

    homes = homes_of(groups, level)
    wanted = [home(number) for number in range(len(shape))]
    assert homes.of(ids).tolist() == [-1 if own is None else ids[own] for own in wanted]
    assert homes.of(ids + 1).tolist() == [-1] * len(shape)
    listing = list_bucket(4, groups, ids, homes)
    assert listing.listed.id.tolist() == sorted({int(ids[own]) for own in wanted if own is not None})
    assert listing.is_member.tolist() == [own is not None for own in wanted]
