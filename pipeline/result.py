"""A finished run on a disk or in an object store, opened for reading."""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Self

from ..tasks.errors import InputError, UsageError
from ..tasks.places import Place, place_of
from ..tasks.pointer import follow
from .manifest import Counts, Manifest, PlanRecord, read_manifest

if TYPE_CHECKING:
    from .calls.temporary import TemporaryFolder
    from .frames.table import ResultTable

__all__ = ["Result"]

_TABLES = ("edges", "vertices", "attributes", "hierarchy", "dn_graphs", "dn_graph_members")


class Result:
    """The result in the folder `path`, or at that fsspec URL: its manifest, and its tables, which are pyarrow datasets.

    A pointer, such as `latest`, is followed once. `storage_options` are fsspec's, for a URL.

    Raises UsageError if there is no such folder, InputError if it is not a result, or if a file of it is missing
    or has another size than the manifest says. Footers are checked when a table is first asked for, which raises
    InputError too; pages when they are read, which raises OSError.
    """

    def __init__(self, path: Place | str | os.PathLike[str], storage_options: Mapping[str, Any] | None = None) -> None:
        self._folder: TemporaryFolder | None = None
        self.place = follow(place_of(path, storage_options))
        """Where it is."""
        self.manifest: Manifest = read_manifest(self.place)
        outputs = self.manifest.outputs
        for output, size in zip(outputs, self.place.sizes([output.path for output in outputs]), strict=True):
            if size != output.bytes:
                found = "is missing" if size is None else f"has {size} bytes, not {output.bytes}"
                raise InputError(f"the result is damaged: {self.place}/{output.path} {found}")

    @classmethod
    def unpublished(cls, place: Place, manifest: Manifest) -> Self:
        """The tables that a run has written at `place`, before their manifest is there."""
        made = cls.__new__(cls)
        made.place, made.manifest, made._folder = place, manifest, None
        return made

    @classmethod
    def in_temporary(cls, folder: TemporaryFolder) -> Self:
        """The result in a folder that stays as long as this object and what reads its tables."""
        made = cls(folder.result)
        made._folder = folder
        return made

    @property
    def counts(self) -> Counts:
        """Rows read and left out, edges, vertices and triangles."""
        return self.manifest.counts

    @property
    def plan(self) -> PlanRecord | None:
        """What was expected before the run; None in results of earlier releases."""
        return self.manifest.plan

    @property
    def is_removed(self) -> bool:
        """Whether it was temporary, and its folder is gone."""
        return self._folder is not None and self._folder.is_removed

    @property
    def is_temporary(self) -> bool:
        """Whether its folder goes with this object, as `mine` was given no output: `save` keeps a copy."""
        return self._folder is not None

    def close(self) -> None:
        """Remove the folder of a temporary result now. Nothing happens to another one."""
        if self._folder is not None:
            self._folder.remove()
            for table in _TABLES:
                self.__dict__.pop(table, None)  # which are read no more

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def save(
        self,
        path: str | os.PathLike[str],
        overwrite: bool = False,
        storage_options: Mapping[str, Any] | None = None,
    ) -> Result:
        """Copy this result to the new folder `path`, or to that fsspec URL, and open it there. `overwrite` replaces an
        earlier result. The report is not copied: `edgemill report` makes it.

        Raises UsageError if something else is there or if `path` cannot be written, OutOfRoom for a full disk.
        """
        from .calls.saving import save

        self._refuse_removed()
        save(self.place, self.manifest, path, overwrite, storage_options)
        return Result(path, storage_options)

    @property
    def path(self) -> Path:
        """The folder of a result on a disk. Raises UsageError for one in an object store: see `place`."""
        if not self.place.is_local:
            raise UsageError(f"{self.place} is in an object store and has no path: use Result.place")
        return Path(self.place.url)

    @property
    def converged(self) -> bool:
        """Whether λ is exact; if not, the tables hold `lambda_low` and `lambda_high` in place of `lambda`."""
        return self.manifest.converged

    @property
    def in_series(self) -> bool:
        """Whether it is one of a series of nights, over which DN-graphs keep their tracks."""
        return self.manifest.tracks is not None and bool(self.manifest.settings.get("nightly", {}).get("series"))

    @cached_property
    def edges(self) -> ResultTable:
        """Edges sorted by (source, target), source < target: the two ids, support int32, lambda int32."""
        return self._dataset("edges")

    @cached_property
    def vertices(self) -> ResultTable:
        """Vertices sorted by id: id, degree int64, triangles int64, lambda int32 (the largest of its edges), component
        int64 (the innermost of the hierarchy that holds it, null without edges).
        """
        return self._dataset("vertices")

    @cached_property
    def attributes(self) -> ResultTable:
        """Attributes of vertices, a row for each vertex, sorted by id: id, and the columns that the run was given, null
        for a vertex that its file lacks. Raises UsageError if the run was given no attributes.
        """
        if self.manifest.input.vertices is None:
            raise UsageError(f"{self.place} has no table attributes: run again with --vertices FILE")
        return self._dataset("attributes")

    @cached_property
    def hierarchy(self) -> ResultTable:
        """Connected components of {λ ≥ k}, sorted by component: component int64, k int32, parent int64 (null for those
        of the whole graph), vertices int64, edges int64.

        A row is a set of edges that is such a component for all levels above the k of its parent, up to its own k.
        Raises UsageError if the run did not converge, or was made by a release without.
        """
        return self._dense("hierarchy")

    @cached_property
    def dn_graphs(self) -> ResultTable:
        """DN-graphs, the components of the hierarchy with k > 0 that hold no other, sorted by id: id int64 (that of the
        component), lambda int32, vertices int64, edges int64, density float64, triangles int64 (inside), parent int64,
        track int64 (the same over the nights of a series; results of earlier releases have no such column).

        Raises as `hierarchy` does.
        """
        return self._dense("dn_graphs")

    @cached_property
    def dn_graph_members(self) -> ResultTable:
        """dn_graph int64, vertex (an id of the input), sorted by both within each file. A vertex has one row or none.

        Raises as `hierarchy` does.
        """
        return self._dense("dn_graph_members")

    def _dense(self, table: str) -> ResultTable:
        if self.manifest.dense is None:
            why = "was made by an earlier release: run again" if self.converged else "did not converge"
            raise UsageError(f"{self.place} has no table {table}, as the run {why}")
        return self._dataset(table)

    def _dataset(self, table: str) -> ResultTable:
        import pyarrow.dataset as ds

        from ..tasks.sources import FOOTER_READERS
        from .frames.table import ResultTable

        # Only what the manifest lists, so that a stray file in the folder is never read as part of the result.
        self._refuse_removed()
        paths = sorted(output.path for output in self.manifest.outputs)
        files = [self.place.path(path) for path in paths if PurePosixPath(path).parent.name == table]
        with ThreadPoolExecutor(FOOTER_READERS) as readers:
            list(readers.map(lambda file: _check_footer(self.place, file), files))
        scan = ds.ParquetFragmentScanOptions(
            page_checksum_verification=True,
            arrow_extensions_enabled=False,  # of UUIDs Arrow compares the bytes, and not the type of its own
        )
        dataset = ds.dataset(
            files,
            format=ds.ParquetFileFormat(default_fragment_scan_options=scan),
            filesystem=self._files(),
        )
        rows = sum(output.rows for output in self.manifest.outputs if PurePosixPath(output.path).parent.name == table)
        # Not this object, which holds the table: neither keeps the other alive.
        others = partial(type(self).unpublished, self.place, self.manifest)
        return ResultTable.of(dataset, table, rows, self.place, others)

    def _files(self) -> Any:
        """For Arrow, which finds its own for a disk."""
        if self._folder is None:
            return None if self.place.is_local else self.place.files
        from .calls.held_files import held_files

        return held_files(self._folder)

    def _refuse_removed(self) -> None:
        if self.is_removed:
            raise UsageError(f"the temporary result in {self.place} is removed: keep one by naming an output")

    def _repr_html_(self) -> str:
        # By name: what it shows is found by questions, which are asked to this class.
        html: str = import_module(".notebook.page", __package__).page(self)
        return html

    def __repr__(self) -> str:
        counts, state = self.manifest.counts, "" if self.converged else ", not converged"
        if self._folder is not None:
            state += ", temporary: removed" if self.is_removed else ", temporary"
        return f"Result({str(self.place)!r}: {counts.edges} edges, lambda max {self.manifest.lam.max}{state})"


def _check_footer(place: Place, path: str) -> None:
    from ..tasks.sealed import read_footer
    from ..tasks.sources import DAMAGE, reason
    from ..tasks.stores import asked

    try:
        with asked("read", str(place)), place.files.open(path, "rb") as file:
            read_footer(file)
    except DAMAGE as error:
        raise InputError(f"the result is damaged: {path}: {reason(error)}") from error
