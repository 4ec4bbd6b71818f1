"""`{date}` in settings: its replacement, escaped braces, and the message for each mistake."""

from __future__ import annotations

import datetime
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgemill.pipeline.settings import dates
from edgemill.pipeline.settings.dates import date_pattern, escape_braces, parse_day, replace_date
from edgemill.pipeline.settings.sources import as_yaml, load_settings, make_settings
from edgemill.tasks.errors import UsageError
from in_process import call

DATED = {"input.path": "edges/{date}", "output.path": "out/{date}"}


@pytest.fixture
def midnight(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time is past midnight in Berlin, but not in UTC."""

    class Clock(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Clock:
            berlin = datetime.timezone(datetime.timedelta(hours=1))
            return cls(2026, 3, 1, 0, 30, tzinfo=berlin).astimezone(tz)

    monkeypatch.setattr(dates, "datetime", Clock)


@pytest.mark.usefixtures("midnight")
def test_days_are_those_of_utc() -> None:
    assert (parse_day("today"), parse_day("yesterday")) == ("2026-02-28", "2026-02-27")
    assert [parse_day(f"{hours} hours ago") for hours in (0, 23, 24, 25, 48)] == [
        *("2026-02-28", "2026-02-28"),
        *("2026-02-27", "2026-02-27", "2026-02-26"),
    ]
    assert load_settings(None, DATED).output.path == "out/2026-02-28"


@pytest.mark.parametrize("given", ["2026-11-20", datetime.date(2026, 11, 20)])
def test_a_day(given: object) -> None:
    assert parse_day(given) == "2026-11-20"


@pytest.mark.parametrize(
    "given",
    [
        "tomorrow",
        "20261120",
        "2026-W47-5",
        "2026-02-30",
        "",
        "-1 hours ago",
        "25 hours",
        "999999 hours ago",
        20261120,
        True,
        datetime.datetime(2026, 11, 20),
    ],
)
def test_what_is_no_day(given: object) -> None:
    with pytest.raises(UsageError, match=r"nightly\.date: .*2026-11-20, .*25 hours ago \(UTC\)"):
        parse_day(given)


@given(st.lists(st.sampled_from(["{date}", "{", "}", "a/b", "[", ".", "2026-11-20", "-"])))
def test_what_is_escaped_stays(pieces: list[str]) -> None:
    """Any text beside the date survives escaping and replacement, and the pattern finds the day."""
    template = "".join(piece if piece == "{date}" else escape_braces(piece) for piece in pieces)
    made = "".join(pieces).replace("{date}", "2026-11-19")
    assert replace_date(template, "2026-11-19") == made
    found = date_pattern(template).fullmatch(made)
    assert found is not None
    if "{date}" in pieces:
        assert found["day"] in ("2026-11-19", "2026-11-20")
        assert replace_date(template, found["day"]) == made


def test_the_same_day_everywhere() -> None:
    pattern = date_pattern("{date}-{date}")
    assert pattern.fullmatch("2026-11-19-2026-11-19")
    assert not pattern.fullmatch("2026-11-19-2026-11-20")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("e/{day}", "--input has {day}: the only placeholder is {date}; write {{ and }} for braces in the path"),
        ("e/{}", "--input has {}: "),
        ("e/{0}", "--input has {0}: "),
        ("e/{date:%Y}", "--input has {date:%Y}: "),
        ("e/{date!r}", "--input has {date!r}: "),
        ("e/{date.year}", "--input has {date.year}: "),
        ("e/{", "--input has an unmatched brace, got 'e/{'"),
        ("e/}x", "--input has an unmatched brace"),
    ],
)
def test_other_placeholders_are_refused(path: str, message: str) -> None:
    done = call("run", "--input", path, "--output", "out")
    assert (done.exit_code, message in done.stderr) == (2, True), done.stderr


def test_a_value_without_stays_as_it_is(tmp_path: Path) -> None:
    settings = load_settings(None, {"input.path": "e", "output.path": "o"})
    assert (settings.input.path, settings.output.path) == ("e", "o")
    assert (settings.nightly.date, settings.nightly.series) == (None, None)
    assert load_settings(None, {"input.path": "e{{1}}", "output.path": "o"}).input.path == "e{1}"
    assert make_settings("e{1}", "o{date}").output.path == "o{date}"  # Python has placeholders of its own


def test_from_python_with_a_date() -> None:
    settings = make_settings("e/{date}", "o/{date}", date=datetime.date(2026, 11, 20), nightly={"keep": 2})
    assert (settings.input.path, settings.output.path) == ("e/2026-11-20", "o/2026-11-20")
    assert (settings.nightly.series, settings.nightly.keep) == ("o/{date}", 2)


def test_the_flag_wins_over_the_file(tmp_path: Path) -> None:
    config = tmp_path / "nightly.yaml"
    config.write_text(
        "input: {path: 'e/{date}.parquet', complete_marker: '{date}.done'}\n"
        "output: {path: 'o/{{x}}/{date}'}\n"
        "nightly: {date: 2026-11-19, keep: 3}\n"
    )
    for overrides, day in (({}, "2026-11-19"), ({"nightly.date": "2026-11-20"}, "2026-11-20")):
        settings = load_settings(config, overrides)
        assert settings.input.path == f"e/{day}.parquet"
        assert settings.input.complete_marker == f"{day}.done"
        assert settings.output.path == f"o/{{x}}/{day}"
        assert (settings.nightly.date, settings.nightly.series) == (day, "o/{{x}}/{date}")
        again = tmp_path / "again.yaml"
        again.write_text(as_yaml(settings))
        assert load_settings(again) == settings


def test_only_the_input_has_a_date() -> None:
    settings = load_settings(None, {"input.path": "e/{date}", "output.path": "o", "nightly.date": "2026-11-20"})
    assert (settings.input.path, settings.output.path, settings.nightly.series) == ("e/2026-11-20", "o", None)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"input.path": "e", "output.path": "o", "nightly.date": "2026-11-20"},
            "nightly.date is 2026-11-20, but neither input.path nor output.path has {date}",
        ),
        ({"output.path": "o", "nightly.keep": 3}, "nightly.keep applies to a series of nights: put {date} into output"),
        ({"nightly.keep": 0}, "nightly.keep: must be greater than or equal to 1, got 0"),
        ({"nightly.series": "x/{date}"}, "nightly.series does not match output.path: leave it out"),
        ({"output.path": "o", "nightly.series": "o"}, "nightly.series does not match output.path"),
        ({"output.path": "s3://{date}/out"}, "output.path s3://{date}/out: {date} must come after the bucket name"),
        ({"input.complete_marker": "a/b"}, "input.complete_marker: must be the name of a file in the input folder"),
        ({"input.complete_marker": "{day}"}, "input.complete_marker has {day}"),
        ({"input.least_rows": 0}, "input.least_rows: must be greater than or equal to 1"),
        (
            {"nightly.date": "soon"},
            "nightly.date: must be a day such as 2026-11-20, today, yesterday or 25 hours ago (UTC), got",
        ),
    ],
)
def test_message_of_a_mistake(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        load_settings(None, DATED | changes)


def test_a_password_in_the_series_is_not_shown() -> None:
    settings = load_settings(None, DATED | {"output.path": "s3://me:hunter2@host/o/{date}"})
    assert settings.output.path.startswith("s3://me:hunter2@host/o/2")
    assert settings.nightly.series == "s3://me:hunter2@host/o/{date}"
    assert "hunter2" not in as_yaml(settings) + str(settings.model_dump())
