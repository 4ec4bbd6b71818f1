"""Publishing the newest result as Delta tables: checks before a run, and commits after it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Self

from ....tasks.errors import UsageError
from ....tasks.inputs.sources import Source
from ....tasks.storage.folders import Folder, folder_at
from ...monitor.events import Events
from ...nightly.night import Night
from ...results.result import Result
from ...settings.models import Settings
from .commits import Committed, commit, refuse_foreign
from .files import refuse_link
from .types import refuse_columns

_TRIES = 5
"""Tries to commit, while other runs commit first."""
_LAST = "dn_graphs"
"""The table that is committed last. If it has a version, the other tables have it, too."""


@dataclass(frozen=True)
class DeltaTables:
    """The Delta tables of a run's result."""

    folder: Folder
    """The folder with one folder for each table."""
    out: Folder
    """The result of this run."""
    night: Night | None
    is_named: bool
    """Whether the settings name the folder: then it may be a link."""

    @classmethod
    def of(cls, settings: Settings, night: Night | None, inputs: Iterable[str]) -> Self | None:
        """The tables of these settings; None if `output.format` is not delta. `inputs` are the paths of the run.

        Raises UsageError if deltalake is not installed, or if the tables cannot be in this folder.
        """
        output = settings.output
        if output.format != "delta":
            return None
        _refuse_without_deltalake()
        out = folder_at(output.path, output.storage_options)
        if output.delta_path is not None:
            folder = folder_at(output.delta_path, output.storage_options)
        elif night is not None:
            folder = night.series.at("current")
        else:
            folder = Folder(f"{out.url}.delta", out.options)
        if folder.location.system != out.location.system:
            raise UsageError(
                f"output.delta_path {folder} and output.path {out} are in different kinds of storage, "
                "so the files of a result cannot be linked or copied"
            )
        paths = [*inputs, *([] if settings.input.vertices is None else [settings.input.vertices])]
        sources = [("an input", folder_at(path, settings.input.storage_options)) for path in paths]
        for name, other in [("output.path", out), *sources]:
            if folder.location.overlaps(other.location):
                raise UsageError(
                    f"the Delta tables would be at {folder}, and {name} is {other}: one is inside the other; "
                    "set another output.delta_path"
                )
        return cls(folder, out, night, output.delta_path is not None)

    def check(self, source: Source) -> None:
        """Raises UsageError if Delta tables do not support the result, or something else exists at their paths."""
        if not self.is_named:
            refuse_link(self.folder)
        columns = [source.source_column, source.target_column, "support", "lambda"]
        refuse_columns(source.id_type, columns)
        for name in ("edges", "vertices", "attributes", "hierarchy", "dn_graphs", "dn_graph_members", "distances"):
            refuse_foreign(self.folder.subfolder(name))

    def publish(self, events: Events) -> None:
        """Make the newest exact result the newest version of each table, if it is not already.

        In a series that is the result of the newest night, even if this run is for another one. Raises UsageError if a
        table cannot be written or something else exists, InputError for damage, OutOfRoom.
        """
        for _ in range(_TRIES):
            newest = None if self.night is None else self.night.series.newest()
            if self.night is not None and newest is None:
                return
            result = self.out if self.night is None or newest is None else self.night.series.at(newest)
            done = self._publish(Result(result))
            if done is None:
                continue
            if any(committed.is_new for committed in done.values()):
                versions = {name: committed.version for name, committed in done.items()}
                left_out = [f"{name}.{column}" for name, found in done.items() for column in found.left_out]
                events.emit(
                    "delta_published", place=str(self.folder), result=str(result), versions=versions, left_out=left_out
                )
            return
        raise UsageError(f"the Delta tables at {self.folder} keep being changed by other runs: run again")

    def _publish(self, result: Result) -> dict[str, Committed] | None:
        """The commits by table; None if another run has committed first."""
        tables = {PurePosixPath(record.path).parent.name for record in result.manifest.outputs}
        done = {}
        for name in sorted(tables, key=lambda name: (name == _LAST, name)):
            committed = commit(result, name, self.folder.subfolder(name))
            if committed is None:
                return None
            done[name] = committed
        return done


def _refuse_without_deltalake() -> None:
    try:
        import deltalake  # noqa: F401
    except ImportError as error:
        raise UsageError("output.format delta needs another package: pip install 'edgemill[delta]'") from error
