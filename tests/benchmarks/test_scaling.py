"""The model of docs/scaling.md: fits find planted constants, its files are whole, and the page is what it prints."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from benchmarks.graphs import graph
from benchmarks.row_counts import count_rows
from benchmarks.scaling import FOLDER
from benchmarks.scaling_fit import Span, fit_curve, fit_sum
from benchmarks.scaling_model import (
    LAYOUTS,
    Graph,
    Machines,
    Model,
    fit_model,
    limits,
    meetings,
    memory,
    moves,
    read_points,
    rmat,
    solve,
    sum_of,
    times,
)
from benchmarks.shard_counts import ShardCounts, read_csv, write_csv
from benchmarks.svg import Panel, powers

from benchmarks import all_to_all, letters, scaling, scaling_pictures, shard_counts
from edgemill.kernels.cpu.shards import Cut

PAGE = FOLDER.with_suffix(".md")


@pytest.fixture(scope="module")
def counts() -> list[ShardCounts]:
    return read_csv(FOLDER / "shards.csv")


@pytest.fixture(scope="module")
def model(counts: list[ShardCounts]) -> Model:
    return fit_model(read_points(FOLDER / "measured.csv"), counts)


def test_a_sum_finds_its_constants() -> None:
    amounts = [(1.0, 10.0, 5.0), (2.0, 3.0, 1.0), (7.0, 1.0, 4.0), (1e6, 1e3, 1.0)]
    found = fit_sum("sum", ["a", "b", "c"], [("", 2 * a + 0.5 * b, (a, b, c)) for a, b, c in amounts])
    assert list(found.terms.values()) == pytest.approx([2, 0.5, 0], abs=1e-9) and found.worst < 1e-9
    assert found(3, 4, 5) == pytest.approx(8)
    negative = fit_sum("sum", ["a", "b"], [("", 2 * a - 0.1 * b, (a, b)) for a, b, _ in amounts])
    assert min(negative.terms.values()) == 0 and negative.worst > 0.01


def test_a_curve_finds_its_constants() -> None:
    found = fit_curve("curve", [("", 5 * edges**0.3, edges) for edges in (1e5, 1e6, 1e7)])
    assert list(found.terms.values()) == pytest.approx([5, 0.3]) and found.worst < 1e-9
    assert found(1e11) == pytest.approx(5 * 1e11**0.3)


def test_the_model_says_what_was_measured(model: Model) -> None:
    """Well enough that a wrong file or a wrong term would show."""
    assert model.sums["support"].worst < 0.1 and model.sums["peel"].worst < 0.1
    assert all(own.worst < 0.5 for own in model.sums.values())
    assert all(own.worst < 0.1 for own in model.curves.values())


def test_more_of_everything_takes_longer(model: Model) -> None:
    machines = Machines()
    for layout in LAYOUTS:
        small, large = (times(model, machines, rmat(model, edges), layout) for edges in (1e10, 1e11))
        assert all(0 <= span.least <= span.most <= large[term].most for term, span in small.items())
        fewer = times(model, replace(machines, nodes=16), rmat(model, 1e11), layout)
        assert fewer["removal: work"].most > large["removal: work"].most
        assert fewer["scheduler"].most <= large["scheduler"].most


def test_each_remedy_takes_less_time(model: Model) -> None:
    machines, graph = Machines(), rmat(model, 1e11)
    totals = [sum_of(list(times(model, machines, graph, layout).values())) for layout in LAYOUTS]
    for before, after in pairwise(totals):
        assert after.least < before.least and after.most < before.most


def test_what_all_gpus_want_does_not_shrink(model: Model) -> None:
    """With more GPUs; all else does, but for the headers of letters."""
    few, many = (moves(model, Machines(nodes), rmat(model, 1e11)) for nodes in (16, 32))
    for here, there in zip(few, many, strict=True):
        if here.shared:
            assert here.each == there.each
        elif here.exchange != "headers of letters":
            assert there.each.most == pytest.approx(here.each.most / 2)


def test_a_letter_to_each_takes_longer_than_steps(model: Model) -> None:
    machines = Machines()
    all_groups, nodes, steps, _ = (meetings(model, machines, layout) for layout in LAYOUTS)
    assert steps.most < nodes.least < all_groups.least
    assert steps == Span(76e-6 + 5 * 64e-6, 118e-6 + 5 * 144e-6)


def test_a_graph_fits_until_its_limit(model: Model) -> None:
    machines = Machines()
    found = {own.term: own for own in limits(model, machines)}
    edges = found["memory, with the largest round in one piece"].rmat
    assert sum_of(list(memory(model, machines, rmat(model, edges)).values())).most == pytest.approx(0.9 * 141e9)
    assert rmat(model, found["vertices"].rmat).vertices == pytest.approx(2**32)
    assert found["vertices"].sparse == pytest.approx(10 * 2**32)
    assert solve(lambda edges: edges / 7e9) == pytest.approx(7e9)


def test_memory_of_a_gpu(model: Model) -> None:
    parts = memory(model, Machines(1, 4), Graph(1e9, 1e7, 8e8, 1e10))
    assert parts["row headers"].most == 16e7 and parts["entries and halves"].least == pytest.approx(28 * 4e8)
    assert parts["tables of long rows"] == Span(0, 17 * 4e8)


def test_the_page_is_what_the_benchmark_prints(model: Model, counts: list[ShardCounts]) -> None:
    page = PAGE.read_text(encoding="utf-8")
    for title, table in scaling.tables(model, counts, Machines()).items():
        assert f"<!-- {title} -->\n\n{table}\n" in page, f"run python -m benchmarks scaling --write {PAGE}"


def test_pictures_are_what_the_benchmark_draws(model: Model, counts: list[ShardCounts]) -> None:
    """And the page shows them; every point that was fitted to has its mark, and all lies within the axes."""
    drawn = scaling_pictures.pictures(model, counts, Machines())
    page = PAGE.read_text(encoding="utf-8")
    for name, picture in drawn.items():
        kept = (FOLDER / name).read_text(encoding="utf-8")
        assert picture == kept, "run python -m benchmarks scaling --pictures docs/scaling"
        assert f"](scaling/{name})" in page
    fitted = sum(len(fit.points) for fit in model.sums.values())
    assert drawn["measured.svg"].count('font-size="11"') == fitted + len(scaling_pictures.counted(counts))
    for picture in drawn.values():
        sizes = [
            float(value) for value in re.findall(r'points="([^"]*)"', picture) for value in re.split("[ ,]", value)
        ]
        assert min(sizes) >= 0 and max(sizes) <= 400


def test_every_term_is_drawn_once(model: Model) -> None:
    terms = times(model, Machines(), rmat(model, 1e11), LAYOUTS[0])
    drawn = [name for _, names in scaling_pictures.TERMS.values() for name in names]
    assert all(sum(name.split(": ")[-1] == own for own in drawn) == 1 for name in terms)


def test_a_panel() -> None:
    """Both axes in powers; upwards is less."""
    panel = Panel("one", (1, 100), (0.1, 10), (200, 100), powers(10, 1, 100), powers(10, 0.1, 10))
    assert [panel.x(value) for value in (1, 10, 100)] == pytest.approx([0, 100, 200])
    assert [panel.y(value) for value in (0.1, 1, 10)] == pytest.approx([100, 50, 0])
    panel.line([(1, 0.1), (100, 10)], "red")
    panel.upright(10, "here")
    drawn = panel.drawn(5, 6)
    assert "translate(5,6)" in drawn and 'points="0.0,100.0 200.0,0.0"' in drawn and 'd="M100.0 0V100"' in drawn
    labels = ["one", "0.1", "1", "10", "1", "10", "100", "here"]
    assert re.findall(r">([^<>]+)</text>", drawn) == labels
    assert powers(2, 3, 40) == [4, 8, 16, 32]


def test_tables_are_put_into_a_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- One -->\n\n| old |\n| --- |\n\nText.\n\n<!-- Two -->\n\nMore.\n")
    scaling.write_page(page, {"One": "| new |", "Two": "| λ |"})
    assert page.read_text(encoding="utf-8") == "<!-- One -->\n\n| new |\n\nText.\n\n<!-- Two -->\n\n| λ |\n\nMore.\n"
    with pytest.raises(LookupError, match="Three"):
        scaling.write_page(page, {"Three": ""})


@pytest.mark.parametrize("shards", [1, 2, 3, 8])
def test_rows_are_counted(shards: int) -> None:
    """Against sets, on a drawn graph with drawn λ."""
    rng = np.random.default_rng(shards)
    ends = np.array(np.triu_indices(12, 1), np.int32)
    low, high = ends[:, rng.random(ends.shape[1]) < 0.4]
    lam = rng.integers(0, 4, len(low)).astype(np.int32)
    classes = Cut(12, shards).classes(np.arange(12, dtype=np.uint32)).tolist()
    edges = list(zip(low.tolist(), high.tolist(), lam.tolist(), strict=True))

    def shards_of(vertex: int, least: int) -> set[int]:
        ends = [(v if u == vertex else u, value) for u, v, value in edges if vertex in (u, v)]
        return {classes[other] for other, value in ends if value >= least}

    rows = sum(len(shards_of(vertex, 0)) for vertex in range(12))
    both = sum(len(shards_of(u, 0) & shards_of(v, 0)) for u, v, _ in edges)
    late = sum(len(shards_of(u, value) & shards_of(v, value)) for u, v, value in edges)
    assert count_rows(low, high, lam, 12, shards) == (rows, both, late)
    assert late <= both and rows > 0


def test_counts_are_kept_and_replaced(tmp_path: Path) -> None:
    path = tmp_path / "shards.csv"
    one = ShardCounts("a", 4, 9, 8, 7, 6, 5, 4, 3, 0.25, 20, 12, 10, 1.5, 1.25, 30, 20, 10, 1.5, 0.5, 0.25)
    other = replace(one, shards=16, exchanges=0, alarms=0)
    write_csv(path, [one, other])
    write_csv(path, [replace(other, rows=99)])
    assert read_csv(path) == [one, replace(other, rows=99)]
    assert read_csv(tmp_path / "none.csv") == []


@pytest.mark.slow
def test_counted_lines_are_found_again(counts: list[ShardCounts], tmp_path: Path) -> None:
    kept = [one for one in counts if one.graph == "rmat14"]
    found = shard_counts.counts_of(graph("rmat14", tmp_path), [one.shards for one in kept], 2, in_shards=False)
    for here, there in zip(found, kept, strict=True):
        assert (here.rows, here.both, here.late, here.stored) == (there.rows, there.both, there.late, there.stored)


@pytest.mark.slow
def test_letters() -> None:
    found = letters.measure([1, 3], words=8, repeats=2)
    assert [one.peers for one in found] == [1, 3]
    assert all(len(one.seconds) == len(one.processor) == 2 and min(one.seconds) > 0 for one in found)


@pytest.mark.slow
def test_all_to_all() -> None:
    with all_to_all.cluster(1) as (client, scheduler):
        found = all_to_all.measure(client, scheduler, partitions=3, repeats=2)
    assert (found.parts, found.tasks) == (9, 18)
    assert len(found.wall_seconds) == len(found.scheduler_seconds) == 2 and min(found.wall_seconds) > 0
    assert 0 <= found.scheduler_bytes < 2**28
    assert len(all_to_all.row(found)) == len(all_to_all.HEAD)
