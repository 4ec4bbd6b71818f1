"""The result of a finished run on a disk or in an object store, opened for reading.

Errors of reading its tables become edgemill's own. `Version` tells whether another run has replaced the result since it
was opened. `open_result` and `plain_id` check the arguments of queries.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from importlib import import_module
from operator import index
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import pyarrow as pa

from ...tasks.errors import EdgemillError, InputError, UsageError
from ...tasks.inputs.opening import error_reason
from ...tasks.storage.folders import Folder, folder_at
from ...tasks.storage.pointer import follow_pointer
from ...tasks.storage.stores import store_errors
from ..output.manifest import MANIFEST_NAME, Counts, Manifest, PlanRecord, ProgramRecord, read_manifest, run_of
from ..settings.declared_programs import LAMBDA, every_shipped
from ..settings.setting_names import naming_keywords

if TYPE_CHECKING:
    from .table import ResultTable
    from .temporary import TemporaryFolder


@contextmanager
def read_errors(folder: Folder) -> Iterator[None]:
    """Turn errors of reading tables, raised within, into InputError; into UsageError if a store denies access."""
    try:
        with folder.store_errors("read"):
            yield
    except MemoryError:
        raise
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"the result is damaged: {folder}: {error_reason(error)}") from error


@dataclass(frozen=True)
class Version:
    """Which of the results that one place has had over time a reader has opened."""

    place: Folder
    stamp: str | None
    """Differs if the manifest was written again; None if there was none."""
    run: str = ""
    """The id of the run that made it."""

    @classmethod
    def at(cls, place: Folder) -> Self:
        """The version that is there now, of a run that is not known yet: take it before the manifest is read."""
        return cls(place, _stamp(place))

    @property
    def is_replaced(self) -> bool:
        """Whether another run has replaced the result, or it was removed.

        False if the store cannot be reached: whatever needs the store reports that.
        """
        try:
            return _stamp(self.place) != self.stamp and run_of(self.place) != self.run
        except EdgemillError:
            return False

    def refuse_replaced(self) -> None:
        """Raises InputError if the result was replaced or removed."""
        if self.is_replaced:
            raise self._changed()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Turn errors of reading the tables as `read_errors` does. Raises InputError if the result is replaced
        meanwhile: what was read may be of both results.
        """
        try:
            with read_errors(self.place):
                yield
        except Exception as error:
            if self.is_replaced:
                raise self._changed() from error
            raise
        self.refuse_replaced()

    def _changed(self) -> InputError:
        return InputError(
            f"{self.place} changed during the run: another run replaced the result of run {self.run}, or it was "
            "removed; run again"
        )


def _stamp(place: Folder) -> str | None:
    """Without owner, mode and number of links, which a backup changes."""
    place.files.invalidate_cache()
    try:
        if place.is_local:
            found = os.stat(place.path(MANIFEST_NAME))
            return f"{found.st_dev} {found.st_ino} {found.st_size} {found.st_mtime_ns}"
        with store_errors("look at", str(place)):
            return str(place.files.ukey(place.path(MANIFEST_NAME)))
    except OSError:
        return None


TABLES = (
    *("edges", "vertices", "attributes", "hierarchy", "dn_graphs", "dn_graph_members", "distances"),
    *("core_groups", "community_groups", "similar_pairs"),
)
"""Names of the tables of a result, which are folders."""

_TRIES = 3
"""Attempts to open a result that other runs replace."""


class Result:
    """The result in the folder or at the fsspec URL `path`: its manifest, and its tables, which are pyarrow datasets.

    A pointer such as `latest` is followed once, on opening. `storage_options` are fsspec's options for a URL.

    Raises UsageError if the folder does not exist, InputError if it is not a result, or if a file is missing or does
    not have the size in the manifest. The first access to a table checks its footers and raises InputError for damage.
    Reading checks the pages and raises OSError for damage.
    """

    @naming_keywords()
    def __init__(self, path: Folder | str | os.PathLike[str], storage_options: Mapping[str, Any] | None = None) -> None:
        self._folder: TemporaryFolder | None = None
        self._is_closed = False
        self.place = follow_pointer(folder_at(path, storage_options))
        """The folder or URL of the result."""
        self.manifest: Manifest
        self.version: Version | None
        """Which result of this place it is; None if it is not published yet."""
        for tries_left in reversed(range(_TRIES)):
            version = Version.at(self.place)
            try:
                self.manifest = read_manifest(self.place)
                self._refuse_other_sizes()
            except EdgemillError:
                if not tries_left or Version.at(self.place) == version:
                    raise
                continue  # another run has replaced the result meanwhile
            self.version = replace(version, run=self.manifest.run)
            break

    def _refuse_other_sizes(self) -> None:
        outputs = self.manifest.outputs
        with read_errors(self.place):
            sizes = self.place.sizes([output.path for output in outputs])
        for output, size in zip(outputs, sizes, strict=True):
            if size != output.bytes:
                found = "is missing" if size is None else f"has {size} bytes, not {output.bytes}"
                raise InputError(f"the result is damaged: {self.place}/{output.path} {found}")

    @classmethod
    def unpublished(cls, place: Folder, manifest: Manifest, version: Version | None = None) -> Self:
        """The tables that a run has written at `place`, and has not published unless there is a `version`."""
        made = cls.__new__(cls)
        made.place, made.manifest, made.version = place, manifest, version
        made._folder, made._is_closed = None, False
        return made

    @property
    def is_replaced(self) -> bool:
        """Whether another run has replaced the result since it was opened, or it was removed."""
        return self.version is not None and self.version.is_replaced

    def reading(self) -> AbstractContextManager[None]:
        """A context for reading the tables, which raises InputError for damage, and if the result is replaced within.

        Paths of files name those of the new result then, so that rows of both may be mixed.
        """
        return read_errors(self.place) if self.version is None else self.version.reading()

    @classmethod
    def in_temporary(cls, folder: TemporaryFolder) -> Self:
        """The result in a temporary folder. The folder lasts as long as this object and the readers of its tables."""
        made = cls(folder.result)
        made._folder = folder
        return made

    @property
    def counts(self) -> Counts:
        """Rows read and left out, edges, vertices and triangles."""
        return self.manifest.counts

    @property
    def plan(self) -> PlanRecord | None:
        """The plan's estimates before the run; None in results of earlier releases."""
        return self.manifest.plan

    @property
    def is_removed(self) -> bool:
        """Whether the result was temporary and is closed, or its folder is removed."""
        return self._is_closed or (self._folder is not None and self._folder.is_removed)

    @property
    def is_temporary(self) -> bool:
        """Whether the folder is removed with this object, because `mine` had no output. `save` makes a copy."""
        return self._is_closed or self._folder is not None

    def close(self) -> None:
        """Remove the folder of a temporary result now, unless `copy.copy` or `copy.deepcopy` made another object of it
        that is not closed. A result with an output of its own is left as it is.
        """
        if self._folder is not None:
            self._folder.release()
            self._folder, self._is_closed = None, True
            for table in TABLES:
                self.__dict__.pop(table, None)  # their files are gone

    def __copy__(self) -> Self:
        """A result of the same files. The folder of a temporary result lasts as long as one of both."""
        made = type(self).unpublished(self.place, self.manifest)
        made._is_closed = self._is_closed
        made._folder = None if self._folder is None else self._folder.held()
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.__copy__()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the place of a result, and not its files. Raises UsageError for a temporary result, whose folder goes
        with the objects of this process.
        """
        if self.is_temporary:
            raise UsageError(
                f"the temporary result in {self.place} goes with this process and cannot be pickled: name an output, "
                "or pickle what save(path) returns"
            )
        place = Folder(self.place.absolute, self.place.options) if self.place.is_local else self.place
        return _reopened, (type(self), place, self.manifest.run)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @naming_keywords()
    def save(
        self,
        path: str | os.PathLike[str],
        overwrite: bool = False,
        storage_options: Mapping[str, Any] | None = None,
    ) -> Result:
        """Copy this result to the new folder or fsspec URL `path`, and open the copy.

        `overwrite` replaces an earlier result. The report is not copied; `edgemill report` makes a new one. Raises
        UsageError if `path` exists and is not a result, or cannot be written; InputError if another run replaces this
        result meanwhile; OutOfRoom for a full disk.
        """
        from .saving import save

        self._refuse_removed()
        with self.reading():
            check = (lambda: None) if self.version is None else self.version.refuse_replaced
            save(self.place, self.manifest, path, overwrite, storage_options, check)
        return Result(path, storage_options)

    @property
    def path(self) -> Path:
        """The folder of a result on a disk. Raises UsageError for a result in an object store, which has `place`."""
        if not self.place.is_local:
            raise UsageError(f"{self.place} is in an object store and has no path: use Result.place")
        return Path(self.place.url)

    @property
    def converged(self) -> bool:
        """Whether no limit ended the run: λ is exact, and all programs have converged.

        Without exact λ the tables have `lambda_low` and `lambda_high` instead of `lambda`.
        """
        return self.manifest.converged

    @property
    def in_series(self) -> bool:
        """Whether it is part of a series of nights, in which groups keep their tracks."""
        return bool(self.manifest.every_tracks) and bool(self.manifest.settings.get("nightly", {}).get("series"))

    @cached_property
    @naming_keywords()
    def edges(self) -> ResultTable:
        """Edges sorted by (source, target), source < target: the two ids, then the columns of docs/outputs.md.

        Raises UsageError if the run computed no λ.
        """
        if not self.manifest.has_lambda:
            raise self._without_lambda("edges")
        return self._dataset("edges")

    @cached_property
    @naming_keywords()
    def vertices(self) -> ResultTable:
        """Vertices sorted by id: id, degree int64, triangles int64, lambda int32 (the largest of its edges), component
        int64 (the innermost component that contains it; null for a vertex without edges), and the columns of programs.

        In a run without λ: id, degree, and the columns of programs.
        """
        return self._dataset("vertices")

    @cached_property
    @naming_keywords()
    def distances(self) -> ResultTable:
        """source, target (ids of the input), distance int32: the pairs of two vertices with a path, sorted by both.

        Raises UsageError if the run did not set `distances.table`.
        """
        if not any(record.has_distances for record in self.manifest.programs):
            raise UsageError(
                f"{self.place} has no table distances: run again with programs.run=distances and distances.table=true"
            )
        return self._dataset("distances")

    @cached_property
    @naming_keywords()
    def core_groups(self) -> ResultTable:
        """Groups of cores, sorted by id: id int64, k int32, parent int64 (the smallest group that contains it and more;
        null without one), vertices int64, edges int64, density float64 (edges over pairs), is_leaf bool (whether it
        contains no smaller group), track int64 (constant over the nights of a series; null unless is_leaf, absent in
        results of earlier releases). A group is a connected component of the vertices with core number k or more.

        Raises UsageError if the run did not compute the program core_groups.
        """
        return self._dataset(self.groups_table("core_groups"))

    @cached_property
    @naming_keywords()
    def community_groups(self) -> ResultTable:
        """Communities of all levels of the program leiden, sorted by id, with the columns of `core_groups`; those of
        level 1 have a track. Communities
        of level k are parts of those of level k - 1; level 0 has the connected components of the graph. A row is a set
        of vertices that is a community at every level above the k of its parent, up to its own k. A vertex alone is in
        none.

        Raises UsageError if the run did not compute the program leiden.
        """
        return self._dataset(self.groups_table("leiden"))

    def table(self, name: str) -> ResultTable:
        """A table by its name, also one of groups of a program of the user. Raises UsageError as the property does."""
        found: ResultTable = getattr(self, name) if name in TABLES else self._dataset(name)
        return found

    def groups_table(self, groups: str) -> str:
        """The name of the table of groups of a program, or of λ ("lambda"). Raises UsageError if there is none."""
        if groups == LAMBDA:
            return "hierarchy"
        return f"{self.groups_record(groups).group_column}s"

    def groups_record(self, program: str) -> ProgramRecord:
        """What the manifest says of a program that finds groups. Raises UsageError if the run did not compute it."""
        for record in self.manifest.programs:
            if record.name == program and record.group_column is not None:
                return record
        known = {name: own.group_column for name, own in every_shipped().items() if own.group_column is not None}
        if program in known:
            raise UsageError(f"{self.place} has no table {known[program]}s: run again with programs.run={program}")
        raise UsageError(f"{program} finds no groups in {self.place}: name lambda, {' or '.join(known)}")

    @cached_property
    @naming_keywords()
    def similar_pairs(self) -> ResultTable:
        """source, target (ids of the input), rank int32, similarity float64: the vertices that are most similar to each
        source, with rank 1 and so on, sorted by source and rank.

        Raises UsageError if the run did not compute the program similar_pairs.
        """
        if not any("similar_pairs/" in output.path for output in self.manifest.outputs):
            raise UsageError(f"{self.place} has no table similar_pairs: run again with programs.run=similar_pairs")
        return self._dataset("similar_pairs")

    @cached_property
    @naming_keywords()
    def attributes(self) -> ResultTable:
        """Attributes of vertices, one row for each vertex, sorted by id: id, and the columns of the run's `--vertices`.

        A vertex without a row in that file has nulls. Raises UsageError if the run had no attributes.
        """
        if self.manifest.input.vertices is None:
            raise UsageError(f"{self.place} has no table attributes: run again with input.vertices=…")
        return self._dataset("attributes")

    @cached_property
    @naming_keywords()
    def hierarchy(self) -> ResultTable:
        """Connected components of {λ ≥ k}, sorted by component: component int64, k int32, parent int64 (null for a
        connected component of the whole graph), vertices int64, edges int64.

        A row is a set of edges that is a component at every level above the k of its parent, up to its own k. Raises
        UsageError if the run did not converge, or if the release that made the result had no such table.
        """
        return self._dense("hierarchy")

    @cached_property
    @naming_keywords()
    def dn_graphs(self) -> ResultTable:
        """DN-graphs, the components of the hierarchy with k > 0 that contain no other component, sorted by id: id int64
        (of the component), lambda int32, vertices int64, edges int64, density float64, triangles int64 (inside), parent
        int64, track int64 (constant over the nights of a series; absent in results of earlier releases).

        Raises as `hierarchy` does.
        """
        return self._dense("dn_graphs")

    @cached_property
    @naming_keywords()
    def dn_graph_members(self) -> ResultTable:
        """dn_graph int64, vertex (an id of the input), sorted by both within each file. A vertex has at most one row.

        Raises as `hierarchy` does.
        """
        return self._dense("dn_graph_members")

    def _dense(self, table: str) -> ResultTable:
        if not self.manifest.has_lambda:
            raise self._without_lambda(table)
        if self.manifest.dense is None:
            why = "was made by an earlier release: run again" if self.manifest.exact else "did not converge"
            raise UsageError(f"{self.place} has no table {table}, as the run {why}")
        return self._dataset(table)

    def _without_lambda(self, table: str) -> UsageError:
        return UsageError(
            f"{self.place} has no table {table}, as the run computed {_names(self.manifest)} and no λ: run again with "
            f"programs.run=lambda,{_names(self.manifest)}"
        )

    def _dataset(self, table: str) -> ResultTable:
        import pyarrow.dataset as ds

        from ...tasks.inputs.sources import FOOTER_READERS
        from .table import ResultTable

        # Only files that the manifest lists are read: the folder may have others.
        self._refuse_removed()
        paths = sorted(output.path for output in self.manifest.outputs)
        files = [self.place.path(path) for path in paths if PurePosixPath(path).parent.name == table]
        with self.reading(), ThreadPoolExecutor(FOOTER_READERS) as readers:
            list(readers.map(lambda file: _check_footer(self.place, file), files))
        scan = ds.ParquetFragmentScanOptions(
            page_checksum_verification=True,
            arrow_extensions_enabled=False,  # Arrow compares UUIDs as bytes, but not as its UUID type
        )
        dataset = ds.dataset(
            files,
            format=ds.ParquetFileFormat(default_fragment_scan_options=scan),
            filesystem=self._files(),
        )
        rows = sum(output.rows for output in self.manifest.outputs if PurePosixPath(output.path).parent.name == table)
        # The table gets a new Result: this one refers to the table, and a cycle would keep both alive.
        others = partial(type(self).unpublished, self.place, self.manifest, self.version)
        return ResultTable.of(dataset, table, rows, self.place, others)

    def _files(self) -> Any:
        """The file system for Arrow; None for a disk, where Arrow uses its own."""
        if self._folder is None:
            return None if self.place.is_local else self.place.files
        from .temporary import folder_files

        return folder_files(self._folder)

    def _refuse_removed(self) -> None:
        if self.is_removed:
            raise UsageError(f"the temporary result in {self.place} is removed: name an output to keep a result")

    def _repr_html_(self) -> str:
        # Imported by name: the page needs queries, which import this module.
        html: str = import_module("..notebook.page", __package__).page(self)
        return html

    def __repr__(self) -> str:
        counts, state = self.manifest.counts, "" if self.converged else ", not converged"
        if self.is_temporary:
            state += ", temporary: removed" if self.is_removed else ", temporary"
        found = f"lambda max {self.manifest.lam.max}" if self.manifest.has_lambda else _names(self.manifest)
        return f"Result({str(self.place)!r}: {counts.edges} edges, {found}{state})"


def _reopened(kind: type[Result], place: Folder, run: str) -> Result:
    """A pickled result. Raises InputError if another run has replaced it since, and as `Result`."""
    found = kind(place)
    if found.manifest.run != run:
        raise InputError(
            f"{place} held the result of run {run} when it was pickled, and has one of run {found.manifest.run} now"
        )
    return found


def open(path: Folder | str | os.PathLike[str], storage_options: Mapping[str, Any] | None = None) -> Result:
    """Open the result in the folder or at the fsspec URL `path`, or the one that a pointer such as `latest` leads to.

    The same as `Result(path, storage_options)`.
    """
    return Result(path, storage_options)


def _names(manifest: Manifest) -> str:
    """The vertex programs of a run."""
    return ",".join(program.name for program in manifest.programs)


def _check_footer(place: Folder, path: str) -> None:
    from ...tasks.inputs.opening import READ_ERRORS, error_reason
    from ...tasks.storage.parquet_checksum import read_footer
    from ...tasks.storage.stores import store_errors

    try:
        with store_errors("read", str(place)), place.files.open(path, "rb") as file:
            read_footer(file)
    except READ_ERRORS as error:
        raise InputError(f"the result is damaged: {path}: {error_reason(error)}") from error


ResultOrPath: TypeAlias = Result | Folder | str | os.PathLike[str]
"""A result, its folder, or its fsspec URL."""


def open_result(result: ResultOrPath) -> Result:
    """The result, opened if `result` is a path. Raises as `Result` does, and UsageError for another type."""
    if isinstance(result, Result):
        return result
    if isinstance(result, Folder | str | os.PathLike):
        return Result(result)
    raise UsageError(f"expected a Result or its path, got {type(result).__name__}")


def plain_id(value: object, what: str) -> int:
    """The id of a group as a Python integer, from a Python, NumPy or Arrow integer. Raises UsageError for others."""
    number: Any = getattr(value, "as_py", lambda: value)()
    try:
        return index(number)
    except TypeError:
        raise UsageError(f"{what} must be a whole number, as in the tables, or a Group, got {value!r}") from None
