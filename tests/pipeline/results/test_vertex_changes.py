"""Changes of the columns of vertex programs between two results, against plain Python; the commands that show them."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import in_process
from edgemill.pipeline import Result, UsageError, diff, find_vertex, groups_of
from edgemill.pipeline.compare import edges
from edgemill.pipeline.compare.vertices import MOST_VALUES, ChangedValue
from edgemill.pipeline.explorer.queries import Queries
from edgemill.pipeline.queries.program_columns import summaries
from examples import examples
from made import made

EDGES = {(1, 2): 1, (1, 3): 1, (2, 3): 1, (3, 4): 0}
TOLERANCE = 1e-3
Row = tuple[int | None, float | None, int | None, str | None]
KINDS = {"steps": pa.int64(), "rank": pa.float64(), "label": pa.int64(), "word": pa.string()}
VALUES = st.tuples(
    st.none() | st.integers(-(2**62), 2**62),
    st.none() | st.sampled_from([0.0, 1.0, 1.0005, 1.002, -1.0, math.inf, math.nan]),
    st.none() | st.integers(1, 9),
    st.none() | st.sampled_from(["a", "b"]),
)
TABLES = st.dictionaries(st.integers(0, 40), VALUES, max_size=25)


def written(folder: Path, rows: dict[int, Row], **more: Any) -> Result:
    """A result without λ of these vertices, in small row groups. `label` is a column of ids."""
    columns = {name: (kind, {id: row[at] for id, row in rows.items()}) for at, (name, kind) in enumerate(KINDS.items())}
    programs = {"labels": {"label": columns.pop("label")}, "mine": columns}
    return made(folder, {}, alone=[*rows], searched=False, dense=False, programs=programs, rows_per_group=3, **more)


def known(value: Any) -> bool:
    return value is not None and value == value


def unlike(old: Any, new: Any, name: str) -> bool:
    if not (known(old) and known(new)):
        return known(old) != known(new)
    if name == "rank" and math.isfinite(old) and math.isfinite(new):
        return bool(abs(old - new) > TOLERANCE * max(abs(old), abs(new)))
    return bool(old != new)


@given(old=TABLES, new=TABLES, block=st.sampled_from([2, 5, 100]))
@settings(max_examples=examples(30))
def test_columns_against_plain_python(
    old: dict[int, Row], new: dict[int, Row], block: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(edges, "BLOCK_ROWS", block)
        sides = written(folder / "old", old), written(folder / "new", new)
        found = diff(*sides, folder / "changes", tolerance=TOLERANCE)
    assert found.edges is None and found.dn_graphs is None and found.vertices is not None and not found.notices
    assert sorted(path.name for path in (folder / "changes").iterdir()) == ["diff.json", "vertices.parquet"]
    assert json.loads((folder / "changes/diff.json").read_text()) == found.as_dict()
    both = sorted(old.keys() & new.keys())
    changed = {id for id in both if any(map(unlike, old[id], new[id], KINDS))}
    counts = found.vertices
    assert (counts.old, counts.new, counts.appeared) == (len(old), len(new), len(new.keys() - old.keys()))
    assert (counts.vanished, counts.changed) == (len(old.keys() - new.keys()), len(changed))
    assert counts.unchanged == len(both) - len(changed)
    change = {id: "changed" if id in both else "appeared" if id in new else "vanished" for id in {*old, *new}}
    rows = pq.read_table(folder / "changes/vertices.parquet")
    names = [f"{name}_{end}" for name in ("degree", "label", "steps", "rank", "word") for end in ("old", "new")]
    assert rows.column_names == ["id", "change", *names]
    moved = {id: kind for id, kind in change.items() if kind != "changed" or id in changed}
    assert dict(zip(rows["id"].to_pylist(), rows["change"].to_pylist(), strict=True)) == moved
    assert rows["id"].to_pylist() == sorted(moved)
    at = {name: place for place, name in enumerate(KINDS)}
    for column in counts.columns:
        if column.name == "degree":
            assert column.changed == 0
            continue
        pairs = {id: (old[id][at[column.name]], new[id][at[column.name]]) for id in both}
        other = {id: pair for id, pair in pairs.items() if unlike(*pair, column.name)}
        assert column.changed == len(other)
        assert column.gained == sum(not known(before) for before, _ in other.values())
        assert column.lost == sum(not known(after) for _, after in other.values())
        values: dict[int, Any] = {id: pair for id, pair in other.items() if all(map(known, pair))}
        size = dict.fromkeys(values, 0.0)
        if column.name in ("steps", "rank"):
            assert column.rose == sum(after > before for before, after in values.values())
            assert column.fell == sum(after < before for before, after in values.values())
            size = {id: abs(float(after) - float(before)) for id, (before, after) in values.items()}
        else:
            assert column.rose is None and column.fell is None
        first = sorted(values, key=lambda id: (-size[id], id))[:MOST_VALUES]
        assert column.largest == tuple(ChangedValue(id, *values[id]) for id in first)


def ranked(folder: Path, ranks: dict[int, float], edges: Any = EDGES, **more: Any) -> Result:
    return made(folder, edges, programs={"pagerank": {"pagerank": (pa.float64(), ranks)}}, **more)


RANKS = {1: 0.25, 2: 0.25, 3: 0.375, 4: 0.125}


def test_edges_and_columns_are_compared_where_both_results_have_them(tmp_path: Path) -> None:
    old = ranked(tmp_path / "old", RANKS, settings={"damping": 0.85})
    new = ranked(tmp_path / "new", RANKS | {4: 0.126}, settings={"damping": 0.9})
    alone = ranked(tmp_path / "alone", RANKS, searched=False, settings={"damping": 0.85})
    plain = made(tmp_path / "plain", EDGES)
    open = ranked(tmp_path / "open", RANKS, converged=False, settings={"damping": 0.85})
    found = diff(old, new)
    assert found.edges is not None and found.edges.unchanged == 4 and found.vertices is not None
    assert found.vertices.changed == 1
    assert found.notices == ("program pagerank had other settings: damping 0.85, then 0.9",)
    assert found.vertices.columns[1].largest == (ChangedValue(4, 0.125, 0.126),)
    found = diff(old, alone)
    assert found.edges is None and found.vertices is not None and found.vertices.unchanged == 4
    (notice,) = found.notices
    assert re.match(f"{alone.place} .*without λ: only vertices ", notice)
    (notice,) = diff(open, old).notices
    assert re.match(f"{open.place} did not converge: only vertices ", notice)
    found = diff(plain, new)
    assert found.vertices is None and found.edges is not None
    (notice,) = found.notices
    assert re.match(f"only {new.place} .*pagerank: .*not compared$", notice)
    with pytest.raises(UsageError, match=r"without λ: .*no λ to compare, and no program "):
        diff(plain, alone)
    for wrong in (-1e-9, math.nan, math.inf):
        with pytest.raises(UsageError, match=r"tolerance .*number of at least 0"):
            diff(old, new, tolerance=wrong)


def test_columns_of_other_types_are_not_compared(tmp_path: Path) -> None:
    old, new = (
        made(tmp_path / f"{kind}", EDGES, searched=False, programs={"mine": {"a": (kind, {}), "b": (pa.int32(), {})}})
        for kind in (pa.int32(), pa.int64())
    )
    found = diff(old, new)
    assert found.notices == (f"a is int32 in {old.place} and int64 in {new.place}: not compared",)
    assert found.vertices is not None and [own.name for own in found.vertices.columns] == ["degree", "b"]


def call(*arguments: Any) -> str:
    ended = in_process.call(*[str(argument) for argument in arguments])
    assert ended.exit_code == 0, ended.output
    return ended.output


def test_commands_show_columns_without_lambda(tmp_path: Path) -> None:
    ranked(tmp_path / "old", RANKS, searched=False)
    ranked(tmp_path / "new", RANKS | {4: 0.126, 1: 0.2}, searched=False)
    lines = call("diff", tmp_path / "old", tmp_path / "new").splitlines()
    assert [line.split() for line in lines if line.startswith("pagerank")] == [
        ["pagerank", "2", "1", "1", "0", "0", "vertex", "1:", "0.25", "→", "0.2"]
    ]
    assert re.match(r"Floats .* 1e-09 .*unchanged\.$", lines[-1])
    assert ["changed", "2"] in [line.split() for line in lines]
    told = call("diff", tmp_path / "old", tmp_path / "new", "--tolerance", "0.01")
    assert ["changed", "1"] in [line.split() for line in told.splitlines()]
    assert call("of", tmp_path / "new", "4") == "vertex 4: degree 1, pagerank 0.126\n"
    assert json.loads(call("of", tmp_path / "new", "4", "--json")) == {"id": 4, "degree": 1, "pagerank": 0.126}
    result = Result(tmp_path / "new")
    assert find_vertex(result, 4).values == {"pagerank": 0.126}
    with pytest.raises(UsageError, match=r'programs=\["lambda".*"pagerank"\]'):
        groups_of(result, 4)
    with pytest.raises(UsageError, match=r"again.*--programs"):
        Queries(result)


def test_a_column_may_have_the_name_of_a_column_of_groups(tmp_path: Path) -> None:
    """`parent` is a column of bfs and of the hierarchy."""
    parents = {"bfs": {"level": (pa.int32(), {1: 0, 2: 1, 3: 1}), "parent": (pa.int64(), {1: 1, 2: 1, 3: 1})}}
    result = made(tmp_path / "out", EDGES, programs=parents)
    vertex = find_vertex(result, 2)
    assert (vertex.lam, vertex.values) == (1, {"level": 1, "parent": 1})
    inner, outer = groups_of(result, 2)
    assert (inner.parent, outer.parent, outer.k) == (outer.component, None, 0)
    told = call("of", tmp_path / "out", "4")
    assert told.startswith("vertex 4: lambda 0, degree 1, 7 triangles, level none, parent none")


def test_a_column_of_one_value_is_one_sentence(tmp_path: Path) -> None:
    columns: dict[str, dict[str, tuple[Any, dict[int, Any]]]] = {
        "betweenness": {
            "betweenness": (pa.float64(), {1: 0.5, 2: 0.0, 3: 0.25, 4: 0.0}),
            "betweenness_error": (pa.float64(), dict.fromkeys(range(1, 5), 0.0)),
        },
        "components": {"weak_component": (pa.int64(), dict.fromkeys(range(1, 5), 1))},
        "bfs": {"level": (pa.int32(), {1: 0, 2: 0})},
    }
    result = made(tmp_path / "out", EDGES, searched=False, programs=columns)
    told = {column.name: column.constant for column in summaries(result, 3)}
    assert told == {
        "betweenness": "",
        "betweenness_error": "betweenness_error is 0 for all vertices",
        "weak_component": "weak_component is 1 for all vertices",
        "level": "",
    }
    shown = call("show", tmp_path / "out")
    assert "highest betweenness\n" in shown and "highest betweenness_error" not in shown
    assert "betweenness_error" in shown
