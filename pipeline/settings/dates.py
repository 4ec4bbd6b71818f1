"""The placeholder `{date}` in paths: the day of a nightly run, replaced while settings are loaded."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from string import Formatter

from ...tasks.errors import UsageError

_ISO = re.compile(r"\d{4}-\d{2}-\d{2}")
_HOURS_AGO = re.compile(r"(\d{1,5}) hours ago")


def parse_day(value: object) -> str:
    """The ISO day of `2026-11-20`, `today`, `yesterday` or `25 hours ago`. UTC gives all hosts the same day.

    Raises UsageError for any other value.
    """
    now = datetime.now(UTC)
    match value:
        case "today":
            return now.date().isoformat()
        case "yesterday":
            return (now.date() - timedelta(days=1)).isoformat()
        case str() if found := _HOURS_AGO.fullmatch(value):
            return (now - timedelta(hours=int(found[1]))).date().isoformat()
        case date() if not isinstance(value, datetime):  # YAML parses a day to a date
            return value.isoformat()
        case str() if _is_day(value):
            return value
    raise UsageError(
        f"nightly.date: must be a day such as 2026-11-20, today, yesterday or 25 hours ago (UTC), got {value!r}"
    )


def has_date(text: str, name: str) -> bool:
    """Whether the value `text` of the setting `name` contains `{date}`. Raises as `replace_date` does."""
    return any(is_date for _, is_date in _pieces(text, name))


def replace_date(text: str, day: str, name: str = "nightly.series") -> str:
    """The value `text` of the setting `name`, with `day` for each `{date}` and single braces for doubled ones.

    Raises UsageError for another placeholder and for an unmatched brace.
    """
    return "".join(literal + (day if is_date else "") for literal, is_date in _pieces(text, name))


def date_pattern(text: str) -> re.Pattern[str]:
    """A pattern that matches `replace_date(text, day)` for any day, which is its group `day`."""
    pattern, first = "", True
    for literal, is_date in _pieces(text, "nightly.series"):
        pattern += re.escape(literal)
        if is_date:
            pattern += f"(?P<day>{_ISO.pattern})" if first else "(?P=day)"
            first = False
    return re.compile(pattern)


def escape_braces(text: str) -> str:
    """The text with doubled braces; `replace_date` undoes it."""
    return text.replace("{", "{{").replace("}", "}}")


def _pieces(text: str, name: str) -> list[tuple[str, bool]]:
    """Literal pieces of the text, and whether `{date}` follows each."""
    pieces = []
    try:
        for literal, field, form, conversion in Formatter().parse(text):
            if field is not None and (field != "date" or form or conversion):
                whole = field + (f"!{conversion}" if conversion else "") + (f":{form}" if form else "")
                raise UsageError(
                    f"{name} has {{{whole}}}: the only placeholder is {{date}}; "
                    "write {{ and }} for braces in the path"
                )
            pieces.append((literal, field is not None))
    except ValueError:
        raise UsageError(
            f"{name} has an unmatched brace, got {text!r}: write {{{{ and }}}} for braces in the path, "
            "and {date} for the day"
        ) from None
    return pieces


def _is_day(text: str) -> bool:
    try:
        return bool(_ISO.fullmatch(text) and date.fromisoformat(text))
    except ValueError:
        return False
