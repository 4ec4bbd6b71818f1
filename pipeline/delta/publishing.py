"""The newest result as Delta tables: where they are, what is checked before a run, and what is done after it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Self

from ...tasks.errors import UsageError
from ...tasks.places import Place, place_of
from ...tasks.sources import Source
from ..nightly import Night
from ..result import Result
from ..settings import Settings
from ..telemetry import Events
from .commits import Committed, commit, refuse_foreign
from .files import refuse_link
from .types import refuse_columns

__all__ = ["DeltaTables"]

_TRIES = 5
"""Times that a table is committed to, each time because another run did so meanwhile."""
_LAST = "dn_graphs"
"""The table that gets its version last: where it is, the others are."""


@dataclass(frozen=True)
class DeltaTables:
    """The Delta tables that a run's result goes to."""

    place: Place
    """A folder with one for each table."""
    out: Place
    """The result of this run."""
    night: Night | None
    is_named: bool
    """Whether the settings name the place: a link there is followed."""

    @classmethod
    def of(cls, settings: Settings, night: Night | None, inputs: Iterable[str]) -> Self | None:
        """Those of these settings; None if they ask for none. `inputs` are the paths or URLs that the run reads.

        Raises UsageError if deltalake is not installed, or if the place cannot be one of Delta tables.
        """
        output = settings.output
        if output.format != "delta":
            return None
        _refuse_without_deltalake()
        out = place_of(output.path, output.storage_options)
        if output.delta_path is not None:
            place = place_of(output.delta_path, output.storage_options)
        elif night is not None:
            place = night.series.at("current")
        else:
            place = Place(f"{out.url}.delta", out.options)
        if place.location.system != out.location.system:
            raise UsageError(
                f"output.delta_path {place} and output.path {out} are not in one kind of storage: "
                "the files of a result cannot be linked or copied there"
            )
        paths = [*inputs, *([] if settings.input.vertices is None else [settings.input.vertices])]
        sources = [("an input", place_of(path, settings.input.storage_options)) for path in paths]
        for name, other in [("output.path", out), *sources]:
            if place.location.lies_in(other.location) or other.location.lies_in(place.location):
                raise UsageError(
                    f"the Delta tables would be at {place}, and {name} is {other}: one lies in the other; "
                    "name another place by output.delta_path"
                )
        return cls(place, out, night, output.delta_path is not None)

    def check(self, source: Source) -> None:
        """Raises UsageError if Delta tables cannot hold such a result, or something else is in their place."""
        if not self.is_named:
            refuse_link(self.place)
        columns = [source.source_column, source.target_column, "support", "lambda"]
        refuse_columns(source.id_type, columns)
        for name in ("edges", "vertices", "attributes", "hierarchy", "dn_graphs", "dn_graph_members"):
            refuse_foreign(self.place.within(name))

    def publish(self, events: Events) -> None:
        """Make the newest exact result the newest version of each table; where it is, nothing is done.

        Of a series that is the newest night's, whatever night this is. Raises UsageError if it cannot be written or
        something else is there, InputError for damage, OutOfRoom.
        """
        for _ in range(_TRIES):
            newest = None if self.night is None else self.night.series.newest()
            if self.night is not None and newest is None:
                return
            place = self.out if self.night is None or newest is None else self.night.series.at(newest)
            done = self._publish(Result(place))
            if done is None:
                continue
            if any(committed.is_new for committed in done.values()):
                versions = {name: committed.version for name, committed in done.items()}
                left_out = [f"{name}.{column}" for name, found in done.items() for column in found.left_out]
                events.emit(
                    "delta_published", place=str(self.place), result=str(place), versions=versions, left_out=left_out
                )
            return
        raise UsageError(f"the Delta tables at {self.place} are written by other runs all the time: run again")

    def _publish(self, result: Result) -> dict[str, Committed] | None:
        """None if another run was first."""
        tables = {PurePosixPath(record.path).parent.name for record in result.manifest.outputs}
        done = {}
        for name in sorted(tables, key=lambda name: (name == _LAST, name)):
            committed = commit(result, name, self.place.within(name))
            if committed is None:
                return None
            done[name] = committed
        return done


def _refuse_without_deltalake() -> None:
    try:
        import deltalake  # noqa: F401
    except ImportError as error:
        raise UsageError("output.format delta needs another package: pip install 'edgemill[delta]'") from error
