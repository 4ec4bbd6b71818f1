"""What the end of a run reports beside its result: changes since the previous night, `latest`, and failed extras."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_EVENTS = (
    "followed",
    "tracks_new",
    "compared",
    "comparison_failed",
    "latest_moved",
    "latest_kept",
    "next_outdated",
    "outdated",
    "delta_published",
    "report_failed",
)
_GROUPS = ("born", "died", "merged", "split", "grown", "shrunk")
_EDGES = {
    "appeared": "edges added",
    "vanished": "removed",
    "rose": "now of higher lambda",
    "fell": "now of lower lambda",
}


class RunSummary:
    """Listens to the events of a run and keeps those that its end reports."""

    def __init__(self) -> None:
        self._events: dict[str, Mapping[str, Any]] = {}
        self.removed: list[str] = []
        """Results of earlier nights that were removed."""
        self.not_removed: dict[str, str] = {}
        """Path → why it could not be removed."""

    def show(self, event: Mapping[str, Any]) -> None:
        """Keep the event if the end of the run reports it."""
        match event["event"]:
            case "removed":
                self.removed.append(str(event["place"]))
            case "not_removed":
                self.not_removed[str(event["place"])] = str(event["reason"])
            case name if name in _EVENTS:
                self._events[name] = event

    def close(self) -> None: ...

    def night(self) -> dict[str, Any]:
        """Changes since the previous night as JSON values, each None if it does not apply or is not known.

        since: the day compared with; groups and edges: counts of changes; latest: the day that it points to now;
        latest_kept: the day that it stays at, and why, if that is not this night; delta: the location of Delta tables
        with a new version.
        """
        tracks, kept = self._events.get("followed", {}), self._events.get("latest_kept")
        return {
            "since": tracks.get("since") or None,
            "groups": tracks.get("groups"),
            "edges": self._events.get("compared", {}).get("edges"),
            "latest": self._events.get("latest_moved", {}).get("day"),
            "latest_kept": None if kept is None else {"day": kept["day"], "reason": kept["reason"]},
            "delta": self._events.get("delta_published", {}).get("place"),
        }

    def lines(self) -> list[str]:
        """Lines to print after the counts of the result: a name, padded, and its value."""
        night, rows = self.night(), []
        if (since := night["since"] or self._events.get("followed", {}).get("before")) is not None:
            rows.append(("since", str(since)))
        if night["groups"] is not None:
            rows.append(("groups", ", ".join(f"{night['groups'][name]:,} {name}" for name in _GROUPS)))
        if night["edges"] is not None:
            rows.append(("changes", ", ".join(f"{night['edges'][name]:,} {text}" for name, text in _EDGES.items())))
        if night["latest"] is not None:
            rows.append(("latest", f"-> {night['latest']}"))
        if night["latest_kept"] is not None:
            rows.append(("latest", "stays at {day}, {reason}".format_map(night["latest_kept"])))
        if night["delta"] is not None:
            version = max(self._events["delta_published"]["versions"].values())
            rows.append(("delta", f"{night['delta']}, version {version}"))
        rows += [("removed", place) for place in self.removed]
        return [f"{name:<11} {value}" for name, value in rows]

    def warnings(self) -> list[str]:
        """Failures and gaps that left the result complete."""
        warnings = []
        if (event := self._events.get("tracks_new")) is not None:
            warnings.append(
                f"all DN-graphs get new tracks, since those of {event['before']} cannot be continued: {event['reason']}"
            )
        if (event := self._events.get("outdated")) is not None:
            warnings.append(f"the result is kept, but {event['reason']}: to make it again, run with --overwrite")
        if (event := self._events.get("next_outdated")) is not None:
            warnings.append(
                f"tracks and changes of {event['day']} do not follow this result: run that night again, "
                f"with --date {event['day']}"
            )
        if (event := self._events.get("comparison_failed")) is not None:
            warnings.append(f"the comparison with the previous night failed: {event['reason']}")
        if left_out := self._events.get("delta_published", {}).get("left_out"):
            warnings.append(f"the Delta tables lack columns of types that Delta does not have: {', '.join(left_out)}")
        warnings += [f"not removed: {place}: {reason}" for place, reason in self.not_removed.items()]
        if (event := self._events.get("report_failed")) is not None:
            warnings.append(f"the result is complete, but its report could not be written: {event['reason']}")
        return warnings
