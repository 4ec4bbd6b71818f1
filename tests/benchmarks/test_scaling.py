"""The model of docs/scaling.md: fits find planted constants, its files are whole, and the page is what it prints."""

from __future__ import annotations

import re
from dataclasses import replace
from math import exp, log
from pathlib import Path

import pytest

from benchmarks import all_to_all, scaling, scaling_pictures
from benchmarks.graphs import graph
from benchmarks.scaling import FOLDER, Machines, Model, Point, fit_curve, fit_model, fit_sum, jobs, limits, stage_times
from benchmarks.simulate_partitions import Simulated, read_csv, simulate
from benchmarks.svg import Panel, powers
from benchmarks.whole_graph import whole_graph

PAGE = FOLDER.with_suffix(".md")


@pytest.fixture(scope="module")
def points() -> list[Point]:
    return scaling.read_points(FOLDER / "measured.csv")


@pytest.fixture(scope="module")
def simulated() -> list[Simulated]:
    return read_csv(FOLDER / "simulated.csv")


@pytest.fixture(scope="module")
def model(points: list[Point], simulated: list[Simulated]) -> Model:
    return fit_model(points, simulated)


def test_a_sum_finds_its_constants() -> None:
    amounts = [(1.0, 10.0, 5.0), (2.0, 3.0, 1.0), (7.0, 1.0, 4.0), (1e6, 1e3, 1.0)]
    found = fit_sum("sum", ["a", "b", "c"], [("", 2 * a + 0.5 * b, (a, b, c)) for a, b, c in amounts])
    assert list(found.terms.values()) == pytest.approx([2, 0.5, 0], abs=1e-9) and found.worst < 1e-9
    assert found(3, 4, 5) == pytest.approx(8)
    negative = fit_sum("sum", ["a", "b"], [("", 2 * a - 0.1 * b, (a, b)) for a, b, _ in amounts])
    assert min(negative.terms.values()) == 0 and negative.worst > 0.01


def test_a_curve_finds_its_constants() -> None:
    def value(partitions: float, edges: float) -> float:
        p = log(partitions)
        return exp(log(3) + 0.5 * p - 0.02 * p**2 + 0.1 * log(edges) + 0.01 * p * log(edges))

    at = [(p, e) for p in (4, 16, 64, 256) for e in (1e5, 1e6, 1e7)]
    found = fit_curve("curve", list(scaling.LOGS), [("", value(*own), own) for own in at])
    assert list(found.terms.values()) == pytest.approx([log(3), 0.5, -0.02, 0.1, 0.01])
    assert found(1000, 1e11) == pytest.approx(value(1000, 1e11)) and found.worst < 1e-9


def test_the_model_says_what_was_measured(model: Model) -> None:
    """Well enough that a wrong file or a wrong term would show."""
    assert model.support.worst < 0.1 and model.peel.worst < 0.1
    assert all(own.worst < 0.5 for own in model.sums) and all(own.worst < 0.1 for own in model.curves)


def test_exchanges_measured_are_those_simulated(points: list[Point], simulated: list[Simulated]) -> None:
    counted = {(one.graph, one.method, one.partitions): one.exchanges for one in simulated}
    measured = [point for point in points if point.what == "band on CPU"]
    assert [counted[point.graph, point.method, int(point.partitions)] for point in measured] == [
        point.exchanges for point in measured
    ]


def test_more_of_everything_takes_longer(model: Model, simulated: list[Simulated]) -> None:
    machines = Machines()
    for job in jobs(model, simulated, 1e11, machines.workers):
        times = stage_times(model, machines, job, 256, 256)
        larger = stage_times(model, machines, replace(job, edges=2 * job.edges, triangles=2 * job.triangles), 256, 256)
        fewer = stage_times(model, replace(machines, nodes=16), job, 256, 256)
        whole, twice, half = map(scaling.total, (times, larger, fewer))
        assert 0 < whole.least <= whole.most < twice.most <= 2 * whole.most and whole.most < half.most
        assert all(span.least <= span.most for parts in times.values() for span in parts.values())
        for here, there in zip(limits(model, machines), limits(model, replace(machines, memory=282e9)), strict=True):
            assert 0 < here.breaks(job) <= there.breaks(job) <= 2.001 * here.breaks(job)


def test_a_graph_fits_until_its_limit(model: Model, simulated: list[Simulated]) -> None:
    machines = Machines()
    for job in jobs(model, simulated, 1e11, machines.workers):
        (memory, *_) = limits(model, machines)
        held = job.held * job.most * memory.breaks(job) / machines.workers * scaling.EDGE_BYTES
        assert held == pytest.approx(scaling.FILL * machines.memory)


def test_the_page_is_what_the_benchmark_prints(points: list[Point], simulated: list[Simulated]) -> None:
    page = PAGE.read_text(encoding="utf-8")
    for title, table in scaling.tables(points, simulated, Machines(), 1e11).items():
        assert f"<!-- {title} -->\n\n{table}\n" in page, f"run python -m benchmarks scaling --write {PAGE}"


def test_pictures_are_what_the_benchmark_draws(points: list[Point], simulated: list[Simulated]) -> None:
    """And the page shows them; every point that was fitted to has its mark, and all lies within the axes."""
    drawn = scaling_pictures.pictures(points, simulated, Machines(), 1e11)
    page = PAGE.read_text(encoding="utf-8")
    for name, picture in drawn.items():
        kept = (FOLDER / name).read_text(encoding="utf-8")
        assert picture == kept, "run python -m benchmarks scaling --pictures docs/scaling"
        assert f"](scaling/{name})" in page
    fitted = sum(len(fit.points) for fit in fit_model(points, simulated).sums)
    copies = sum(one.graph.startswith("rmat") and one.method == "hash" and one.partitions >= 4 for one in simulated)
    held = sum(point.what == "held" for point in points)
    assert drawn["measured.svg"].count('font-size="11"') == fitted + copies + held
    for picture in drawn.values():
        sizes = [
            float(value) for value in re.findall(r'points="([^"]*)"', picture) for value in re.split("[ ,]", value)
        ]
        assert min(sizes) >= 0 and max(sizes) <= 400


def test_a_panel() -> None:
    """Both axes in powers; upwards is less."""
    panel = Panel("one", (1, 100), (0.1, 10), (200, 100), powers(10, 1, 100), powers(10, 0.1, 10))
    assert [panel.x(value) for value in (1, 10, 100)] == pytest.approx([0, 100, 200])
    assert [panel.y(value) for value in (0.1, 1, 10)] == pytest.approx([100, 50, 0])
    panel.line([(1, 0.1), (100, 10)], "red")
    panel.upright(10, "here")
    drawn = panel.drawn(5, 6)
    assert "translate(5,6)" in drawn and 'points="0.0,100.0 200.0,0.0"' in drawn and 'd="M100.0 0V100"' in drawn
    assert [text for text in re.findall(r">([^<>]+)</text>", drawn)] == [
        "one",
        "0.1",
        "1",
        "10",
        "1",
        "10",
        "100",
        "here",
    ]
    assert powers(2, 3, 40) == [4, 8, 16, 32]


def test_tables_are_put_into_a_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- One -->\n\n| old |\n| --- |\n\nText.\n\n<!-- Two -->\n\nMore.\n")
    scaling.write_page(page, {"One": "| new |", "Two": "| λ |"})
    assert page.read_text(encoding="utf-8") == "<!-- One -->\n\n| new |\n\nText.\n\n<!-- Two -->\n\n| λ |\n\nMore.\n"
    with pytest.raises(LookupError, match="Three"):
        scaling.write_page(page, {"Three": ""})


@pytest.mark.slow
def test_simulated_lines_are_found_again(simulated: list[Simulated], tmp_path: Path) -> None:
    whole = whole_graph(graph("rmat14", tmp_path))
    for kept in simulated:
        if kept.graph == "rmat14" and kept.partitions in (4, 256):
            found, _ = simulate(whole, kept.method, kept.partitions)
            assert replace(found, seconds=0, placing=0.0) == replace(kept, seconds=0, placing=0.0)


@pytest.mark.slow
def test_all_to_all() -> None:
    with all_to_all.cluster(1) as (client, scheduler):
        found = all_to_all.measure(client, scheduler, partitions=3, repeats=2)
    assert (found.parts, found.tasks) == (9, 18)
    assert len(found.wall_seconds) == len(found.scheduler_seconds) == 2 and min(found.wall_seconds) > 0
    assert 0 <= found.scheduler_bytes < 2**28
    assert len(all_to_all.row(found)) == len(all_to_all.HEAD)
