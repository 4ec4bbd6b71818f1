"""The model of docs/scaling.md: fits find planted constants, and the page has what the command writes."""

from __future__ import annotations

import re
from dataclasses import astuple, replace
from pathlib import Path

import pytest
from benchmarks.scaling.fit import Measured, fit_curve, fit_sum
from benchmarks.scaling.limits import limits, peeling_memory
from benchmarks.scaling.machines import FLAT, LAYOUTS, Graph, Machines
from benchmarks.scaling.model import Model, fit_model
from benchmarks.scaling.moves import moves
from benchmarks.scaling.panel import Panel, powers
from benchmarks.scaling.pictures import TERMS, pictures
from benchmarks.scaling.points import Point, ShardCounts, read_counts, read_points
from benchmarks.scaling.scaling import FOLDER, write_page
from benchmarks.scaling.spans import Span, seconds_of, short
from benchmarks.scaling.tables import tables
from benchmarks.scaling.times import blocks_of, exchange_seconds, tasks, times, total

PAGE = FOLDER.with_suffix(".md")
COMMAND = "python -m benchmarks scaling --write docs/scaling.md --pictures docs/scaling"
AMOUNTS = [(1.0, 10.0, 5.0), (2.0, 3.0, 1.0), (7.0, 1.0, 4.0), (1e6, 1e3, 1.0)]


@pytest.fixture(scope="module")
def counts() -> list[ShardCounts]:
    return read_counts(FOLDER / "shards.csv")


@pytest.fixture(scope="module")
def points() -> list[Point]:
    return read_points(FOLDER / "measured.csv")


@pytest.fixture(scope="module")
def model(points: list[Point], counts: list[ShardCounts]) -> Model:
    return fit_model(points, counts)


def test_a_sum_finds_its_constants() -> None:
    found = fit_sum("sum", ["a", "b", "c"], [Measured("", 2 * a + 0.5 * b, (a, b, c)) for a, b, c in AMOUNTS])
    assert list(found.constants.values()) == pytest.approx([2, 0.5, 0], abs=1e-9) and found.worst < 1e-9
    assert found(3, 4, 5) == pytest.approx(8)


def test_no_constant_is_negative() -> None:
    found = fit_sum("sum", ["a", "b"], [Measured("", 2 * a - 0.1 * b, (a, b)) for a, b, _ in AMOUNTS])
    assert found.constants["b"] == 0 and found.constants["a"] > 0 and found.worst > 0.01


def test_ranges_have_the_errors_of_the_points() -> None:
    found = fit_sum("sum", ["a"], [Measured("", value, (1.0,)) for value in (0.9, 1.0, 1.1)])
    assert 0.9 <= found(1) <= 1.1
    assert astuple(found.span(2)) == pytest.approx((1.8, 2.2))
    assert astuple(found.range_of("a")) == pytest.approx((0.9, 1.1))


def test_a_curve_finds_its_constants() -> None:
    found = fit_curve("curve", [Measured("", 5 * edges**0.3, (edges,)) for edges in (1e5, 1e6, 1e7)])
    assert (found.factor, found.power) == pytest.approx((5, 0.3)) and found.worst < 1e-9
    assert found(1e11) == pytest.approx(5 * 1e11**0.3)


def test_the_model_is_near_what_was_measured(model: Model) -> None:
    """A wrong file or a wrong term would show."""
    assert model.sums["remove"].worst < 0.1
    assert all(own.worst < 0.7 for own in model.sums.values())
    assert all(own.worst < 0.1 for own in model.curves.values())
    assert 1 < model.in_a_run.most < 1.5


def test_more_edges_take_longer_and_more_nodes_less_work(model: Model) -> None:
    machines = Machines()
    for layout in LAYOUTS:
        small, large = (times(model, machines, model.rmat(edges), layout) for edges in (1e10, 1e11))
        assert all(0 <= span.least <= span.most <= large[term].most for term, span in small.items())
        fewer = times(model, replace(machines, nodes=16), model.rmat(1e11), layout)
        assert fewer["removal: work"].most > large["removal: work"].most
        assert fewer["removal: each edge in each shard"] == large["removal: each edge in each shard"]


def test_remedies_take_less_time(model: Model) -> None:
    machines, graph = Machines(), model.rmat(1e11)
    flat, dask, nccl, steps, bundled = (total(model, machines, graph, layout) for layout in LAYOUTS)
    assert bundled.most < steps.most < dask.most < flat.most and steps.most < nccl.most
    assert bundled.least < steps.least < nccl.least < dask.least < flat.least
    assert tasks(machines, 1e11, LAYOUTS[-1]) < tasks(machines, 1e11, LAYOUTS[-2]) < tasks(machines, 1e11, FLAT)


def test_blocks_are_merged_where_ids_are_dense() -> None:
    assert blocks_of(Machines(4, 8), 1e10) == (32, 1)
    assert blocks_of(Machines(), 1e11) == (1e11 / 8e6, 3)


def test_what_all_gpus_need_does_not_shrink(model: Model) -> None:
    few, many = (moves(model, Machines(nodes), model.rmat(1e11)) for nodes in (16, 32))
    for here, there in zip(few, many, strict=True):
        assert there.each.most == pytest.approx(here.each.most / (1 if here.shared else 2))


def test_an_exchange_by_nccl_between_four_nodes_is_the_measured_one(model: Model) -> None:
    found = exchange_seconds(model, Machines(4, 8), LAYOUTS[2])
    inside = exchange_seconds(model, Machines(1, 8), LAYOUTS[3])
    measured = model.sums["nccl"](1)
    assert (found.least, found.most) == pytest.approx((measured + inside.least, measured + inside.most))


def test_a_graph_fits_until_its_limit(model: Model) -> None:
    machines = Machines()
    found = {own.term: own for own in limits(model, machines)}
    held = peeling_memory(machines, model.rmat(found["memory of 256 GPUs, peeling"].rmat))
    assert sum(own.most for own in held.values()) == pytest.approx(0.9 * 141e9)
    assert found["vertices"].sparse == pytest.approx(10 * 2**32)


def test_memory_of_a_gpu() -> None:
    parts = peeling_memory(Machines(1, 4), Graph(1e9, 1e7, 8e8, 1e10))
    assert parts["row headers"].most == 16e7 and parts["entries"].least == pytest.approx(25 * 4e8)
    assert parts["halves"].least == pytest.approx(36 * (1 / 2 - 1 / 16) * 8e8)


def test_the_page_has_what_the_command_writes(model: Model, points: list[Point], tmp_path: Path) -> None:
    copy = tmp_path / "page.md"
    copy.write_text(PAGE.read_text(encoding="utf-8"), encoding="utf-8")
    write_page(copy, tables(model, points, Machines()))
    assert copy.read_text(encoding="utf-8") == PAGE.read_text(encoding="utf-8"), f"run {COMMAND}"


def test_the_pictures_are_what_the_command_draws(model: Model, points: list[Point], counts: list[ShardCounts]) -> None:
    """What is drawn lies within the axes."""
    for name, picture in pictures(model, counts, points, Machines()).items():
        assert picture == (FOLDER / name).read_text(encoding="utf-8"), f"run {COMMAND}"
        assert f"](scaling/{name})" in PAGE.read_text(encoding="utf-8")
        paths = re.findall(r'points="([^"]*)"', picture)
        sizes = [float(value) for path in paths for value in re.split("[ ,]", path)]
        assert min(sizes) >= 0 and max(sizes) <= 400


def test_every_term_is_drawn_once(model: Model) -> None:
    drawn = [name for _, names in TERMS.values() for name in names]
    found = times(model, Machines(), model.rmat(1e11), FLAT)
    assert all(drawn.count(name.split(": ")[-1]) == 1 for name in found)


def test_a_panel() -> None:
    panel = Panel("one", (1, 100), (0.1, 10), ("right", "up"), (200, 100))
    assert [panel.x(value) for value in (1, 10, 100)] == pytest.approx([0, 100, 200])
    assert [panel.y(value) for value in (0.1, 1, 10)] == pytest.approx([100, 50, 0])
    panel.line([(1, 0.1), (100, 10)], "red")
    drawn = panel.drawn(5, 6)
    assert "translate(5,6)" in drawn and 'points="0.0,100.0 200.0,0.0"' in drawn
    assert re.findall(r">([^<>]+)</text>", drawn) == ["one", "right", "up", "0.1", "1", "10", "1", "10", "100"]
    assert powers(3, 2000) == [10, 100, 1000]


def test_numbers_are_short() -> None:
    assert [short(value) for value in (0.04, 9.94, 9.96, 1234.5)] == ["0.0", "9.9", "10", "1,234"]
    assert [seconds_of(value) for value in (0, 2.5e-10, 3e-6, 0.0042, 12.3)] == [
        "0",
        "0.25 ns",
        "3 µs",
        "4.2 ms",
        "12.3 s",
    ]
    assert str(Span(1, 2)) == "1.0 - 2.0" and str(Span(3.0, 3.01)) == "3.0"


def test_a_page_without_a_place_is_refused(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- One -->\n\n| old |\n| --- |\n\nText.\n\n<!-- Two -->\n\nMore.\n")
    write_page(page, {"One": "| new |", "Two": "| λ |"})
    assert page.read_text(encoding="utf-8") == "<!-- One -->\n\n| new |\n\nText.\n\n<!-- Two -->\n\n| λ |\n\nMore.\n"
    with pytest.raises(LookupError, match="Three"):
        write_page(page, {"Three": ""})
