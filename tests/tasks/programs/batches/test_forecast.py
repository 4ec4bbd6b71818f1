"""The prediction of a run over batches, from times that the tests set."""

from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgemill.tasks.programs.batches.running import SHARE, TIMED, Forecast


def told(sources: int, width: int, times: list[float]) -> list[float | None]:
    """The predictions after each batch, from the seconds of the batches."""
    forecast, found = Forecast(sources, width), []
    for spent in accumulate(times):
        forecast.add(spent)
        found.append(forecast.seconds)
    return found


@pytest.mark.parametrize("batches", [1, 2, 3])
def test_a_run_of_few_batches_ends_before_it_is_predicted(batches: int) -> None:
    assert told(10 * batches, 10, [1.0] * batches) == [None] * batches


def test_the_first_batch_does_not_count_for_the_others() -> None:
    assert told(50, 10, [100.0, 2.0, 4.0, 3.0, 3.0]) == [None, None, *[106.0 + 3.0 * 2] * 3]


def test_half_of_the_time_of_the_last_batch_depends_on_its_sources() -> None:
    assert told(45, 10, [1.0, 2.0, 2.0])[-1] == 5.0 + 2.0 + 2.0 * 0.75


def test_one_batch_in_twenty_improves_the_prediction_and_no_later_one() -> None:
    times = [1.0, *[2.0] * 2, *[4.0] * 97]
    found = told(1000, 10, times)
    assert found[2] == 5.0 + 2.0 * 97
    assert found[4] == pytest.approx(13.0 + 3.0 * 95)
    assert found[4:] == [found[4]] * 96 and len(times) // SHARE == 5


@given(st.integers(1, 3000), st.integers(1, 512), st.floats(0.001, 1000), st.floats(0.001, 1000))
def test_equal_batches_are_predicted(sources: int, width: int, first: float, each: float) -> None:
    batches = -(-sources // width)
    sizes = [width] * (batches - 1) + [sources - (batches - 1) * width]
    times = [each * (1 + size / width) / 2 for size in sizes]
    times[0] += first
    found = told(sources, width, times)
    assert [one is None for one in found] == [batch + 1 < TIMED or batches <= TIMED for batch in range(batches)]
    assert all(one == pytest.approx(sum(times)) for one in found if one is not None)
