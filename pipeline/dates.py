"""`{date}` in paths: the day of a nightly run, filled in before anything else looks at them."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from string import Formatter

from ..tasks.errors import UsageError

__all__ = ["day_of", "escaped", "filled_in", "has_date", "pattern_of"]

_ISO = re.compile(r"\d{4}-\d{2}-\d{2}")


def day_of(given: object) -> str:
    """The ISO day of `2026-11-20`, `today` or `yesterday`, as UTC has it: one night is one day on all hosts.

    Raises UsageError for anything else.
    """
    today = datetime.now(UTC).date()
    match given:
        case "today":
            return today.isoformat()
        case "yesterday":
            return (today - timedelta(days=1)).isoformat()
        case date() if not isinstance(given, datetime):  # as YAML reads it
            return given.isoformat()
        case str() if _is_day(given):
            return given
    raise UsageError(f"nightly.date: must be a day such as 2026-11-20, today or yesterday (UTC), got {given!r}")


def has_date(text: str, name: str) -> bool:
    """Whether the setting `name` has `{date}` in its value `text`. Raises as `filled_in` does."""
    return any(field for _, field in _pieces(text, name))


def filled_in(text: str, day: str, name: str = "nightly.series") -> str:
    """The value `text` of the setting `name` with `day` in place of each `{date}`, and braces that were doubled.

    Raises UsageError for any other placeholder, and for a brace that stands alone.
    """
    return "".join(literal + (day if field else "") for literal, field in _pieces(text, name))


def pattern_of(text: str) -> re.Pattern[str]:
    """Matches what `filled_in` makes of `text`, which has `{date}`, on some day: that is its group `day`."""
    pattern, first = "", True
    for literal, field in _pieces(text, "nightly.series"):
        pattern += re.escape(literal)
        if field:
            pattern += f"(?P<day>{_ISO.pattern})" if first else "(?P=day)"
            first = False
    return re.compile(pattern)


def escaped(text: str) -> str:
    """What `filled_in` makes `text` of, whatever the day."""
    return text.replace("{", "{{").replace("}", "}}")


def _pieces(text: str, name: str) -> list[tuple[str, bool]]:
    """Text as it stands, and whether `{date}` follows it."""
    found = []
    try:
        for literal, field, form, conversion in Formatter().parse(text):
            if field is not None and (field != "date" or form or conversion):
                whole = field + (f"!{conversion}" if conversion else "") + (f":{form}" if form else "")
                raise UsageError(
                    f"{name} has {{{whole}}}: the only placeholder is {{date}}; {{{{ and }}}} are the braces themselves"
                )
            found.append((literal, field is not None))
    except ValueError:
        raise UsageError(
            f"{name} has a brace that stands alone, got {text!r}: {{{{ and }}}} are the braces themselves, "
            "and {date} is the day"
        ) from None
    return found


def _is_day(text: str) -> bool:
    try:
        return bool(_ISO.fullmatch(text) and date.fromisoformat(text))
    except ValueError:
        return False
