"""What a night says at its end: what changed since the night before, and where `latest` points now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["Told"]

_EVENTS = ("followed", "tracks_new", "compared", "comparison_failed", "latest_moved", "delta_published")
_GROUPS = ("born", "died", "merged", "split", "grown", "shrunk")
_EDGES = {
    "appeared": "edges added",
    "vanished": "removed",
    "rose": "now of higher lambda",
    "fell": "now of lower lambda",
}


class Told:
    """Listens to the events of a run, and keeps those that tell of other nights."""

    def __init__(self) -> None:
        self._found: dict[str, Mapping[str, Any]] = {}

    def show(self, event: Mapping[str, Any]) -> None:
        """Take in one event."""
        if event["event"] in _EVENTS:
            self._found[event["event"]] = event

    def close(self) -> None:
        """Nothing is to be given back."""

    def as_dict(self) -> dict[str, Any]:
        """Plain values: since (a day), groups and edges (counts of what changed since), latest (the day that it has
        moved to), delta (the place of Delta tables that have a new version). Each is None where there is none, or it is
        not known.
        """
        groups = self._found.get("followed", {})
        return {
            "since": groups.get("since"),
            "groups": groups.get("groups"),
            "edges": self._found.get("compared", {}).get("edges"),
            "latest": self._found.get("latest_moved", {}).get("day"),
            "delta": self._found.get("delta_published", {}).get("place"),
        }

    def lines(self) -> list[str]:
        """Lines to print after those of the result, as far as there is something to say."""
        told, found = self.as_dict(), []
        if told["since"] is not None:
            found.append(f"{'since':<11} {told['since']}")
        if told["groups"] is not None:
            counts = (f"{told['groups'][name]:,} {name}" for name in _GROUPS)
            found.append(f"{'groups':<11} {', '.join(counts)}")
        if told["edges"] is not None:
            counts = (f"{told['edges'][name]:,} {word}" for name, word in _EDGES.items())
            found.append(f"{'changes':<11} {', '.join(counts)}")
        if told["latest"] is not None:
            found.append(f"{'latest':<11} -> {told['latest']}")
        if told["delta"] is not None:
            version = max(self._found["delta_published"]["versions"].values())
            found.append(f"{'delta':<11} {told['delta']}, version {version}")
        return found

    def warnings(self) -> list[str]:
        """What a person should know of the night before."""
        found = []
        if (event := self._found.get("tracks_new")) is not None:
            found.append(
                f"the tracks of all DN-graphs are new: those of {event['before']} cannot be taken over: "
                f"{event['reason']}"
            )
        if (event := self._found.get("comparison_failed")) is not None:
            found.append(f"there is no comparison with the night before: {event['reason']}")
        if left_out := self._found.get("delta_published", {}).get("left_out"):
            found.append(f"the Delta tables are without columns of types that they do not have: {', '.join(left_out)}")
        return found
