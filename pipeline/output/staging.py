"""Staging of a result: files of a run are written apart, and published together when all are complete.

On a disk they are in a folder beside the output, which is renamed to the output. In an object store files of each run
have their own prefix, and a manifest refers to them:

OUT/manifest.json          the result; one PUT replaces it
OUT/edgemill-ID/edges/…    tables, log and report of a run
OUT/.edgemill.lock         exists while a run writes
OUT/failed.log.jsonl       the log of a failed run
"""

from __future__ import annotations

import os
import re
import tempfile
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self, TypeAlias

from ...tasks.errors import NO_SPACE, EdgemillError, OutOfRoom, OutputLocked, UsageError
from ...tasks.storage.atomic import replace_folder, settle_aside, sync_folder, write_new
from ...tasks.storage.folders import Folder, folder_at
from ...tasks.storage.own_files import (
    default_permissions,
    finalize,
    make_own_folder,
    open_own,
    remove_busy_folder,
    remove_own,
    resolved,
)
from ..settings.models import Settings
from ..settings.overlap import refuse_input_overlap
from .lock import LOCK_NAME, FolderLock, LockOwner, StoreLock
from .manifest import MANIFEST_NAME, folders_in_use, is_result

LOG_NAME = "log.jsonl"
REPORT_NAME = "report.html"


class FolderStaging:
    """A folder `.NAME.edgemill-RUN` beside OUT, which `commit()` renames to OUT; else the end of the block removes it.

    Entering the block checks, in this order, that OUT does not overlap the input, that it is free (or, with
    `overwrite`, an earlier result or an empty folder), that no other run writes it, and that it is writable. With
    `or_same` only `refuse_existing` refuses an earlier result, which may be the requested one. A failed run leaves its
    log beside OUT as `NAME.failed.log.jsonl`, until a run succeeds. A note on the exception names it.

    Only the user can enter the folder until it is committed. Then it gets the default permissions of its parent folder.

    Raises UsageError for the checks, OutputLocked if another run is writing OUT, OutOfRoom for a full disk.
    """

    def __init__(
        self,
        output: str | os.PathLike[str],
        *,
        overwrite: bool,
        run_id: str,
        source: Folder | None = None,
        or_same: bool = False,
    ) -> None:
        self.out = resolved(Path(os.path.expanduser(os.fspath(output))))
        if not self.out.name:
            raise UsageError(f"output.path {output}: a result cannot replace a root folder")
        self.overwrite, self.or_same = overwrite, or_same
        self.source = source
        self.folder = self.out.with_name(f".{self.out.name}.edgemill-{run_id}")
        """The staging folder, on the file system of OUT."""
        self.scratch, self.tables, self.prefix = self.folder, Folder(str(self.folder)), ""
        self.named_from = self.tables
        self.aside = self.folder.with_name(self.folder.name + ".old")
        self.failed_log = self.out.with_name(f"{self.out.name}.failed.{LOG_NAME}")
        self._lock = FolderLock(self.out.with_name(f".{self.out.name}.edgemill.lock"), str(self.out), run_id)
        self._made_parents: list[Path] = []
        self.left_by: LockOwner | None = None
        """The dead run whose lock was taken over; None if there was none."""
        self.weakness: str | None = None
        """Why a second run cannot be excluded; always None on a disk."""

    def __enter__(self) -> Self:
        if self.source is not None:
            refuse_input_overlap(self.source, Folder(str(self.out)))
        self._refuse_at_start()
        try:
            self._made_parents = _make_parents(self.out)
            self.left_by = self._lock.take()
            self._clear()
            make_own_folder(self.folder)
            self._created, self._permissions = self.folder.lstat(), default_permissions(self.folder)
        except OSError as error:
            with suppress(OSError):
                self.folder.rmdir()
            self._release()
            if error.errno in NO_SPACE:
                raise OutOfRoom(f"no room left on the disk for {self.out}") from error
            not_folder = isinstance(error, (FileExistsError, NotADirectoryError))
            reason = "it is not a folder" if not_folder else error.strerror
            raise UsageError(f"output.path {self.out}: cannot write in {self.out.parent}: {reason}") from error
        except BaseException:
            self._release()
            raise
        return self

    def commit(self) -> None:
        """Flush the folder to the disk and rename it to OUT; then remove the earlier result. Raises as the class."""
        self._refuse_replaced_folder()
        finalize(self.folder, self._permissions)
        if not self._lock.is_held():
            raise OutputLocked(f"the lock on {self.out} was removed during the run; nothing was published")
        self.refuse_existing()
        replace_folder(self.folder, self.out, self.aside)
        self._remove_failed_log()
        sync_folder(self.out.parent)

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            settle_aside(self.aside, self.out)
            if os.path.lexists(self.folder):
                if error is not None and (self.folder / LOG_NAME).exists():
                    self._keep_log(error)
                gone = self.folder.with_name(self.folder.name + "-failed")
                os.rename(self.folder, gone)  # tasks that still run can no longer write there
                with suppress(OSError):  # the next run removes the rest
                    remove_busy_folder(gone)
        finally:
            self._release()

    def _release(self) -> None:
        """Release the lock, and remove empty parent folders that this run created."""
        self._lock.release()
        for folder in self._made_parents:
            with suppress(OSError):  # it is not empty
                folder.rmdir()

    def holds_result(self) -> bool:
        """Whether OUT is a result, of any run and format version."""
        return is_result(self.out)

    def add_to_log(self) -> None:
        """Append the log of this run to the log of the existing result in OUT."""
        self._remove_failed_log()
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        with open(open_own(self.out / LOG_NAME, flags, own=2, mode=0o666), "ab") as log:
            log.write((self.folder / LOG_NAME).read_bytes())

    def add(self, name: str, content: bytes) -> None:
        """Create a file beside the tables; it is removed if it cannot be written whole. Raises OSError."""
        write_new(self.folder / name, content, own=2)

    def _refuse_at_start(self) -> None:
        if not (self.or_same and self.holds_result()):
            self.refuse_existing()

    def refuse_existing(self) -> None:
        """Raises UsageError if OUT exists and must not be replaced."""
        if not os.path.lexists(self.out):
            return
        if not self.out.is_dir():
            raise UsageError(f"output.path {self.out} exists and is not a folder: choose another")
        if not self.overwrite:
            raise UsageError(f"output.path {self.out} exists: choose another, or replace it with output.overwrite=true")
        if not is_result(self.out) and any(self.out.iterdir()):
            raise UsageError(
                f"output.path {self.out} is not an edgemill result, so output.overwrite=true does not replace it"
            )

    def _refuse_replaced_folder(self) -> None:
        """Raises UsageError if another folder has replaced the one that this run created."""
        with suppress(OSError):
            if os.path.samestat(self.folder.lstat(), self._created):
                return
        raise UsageError(f"{self.folder} was replaced or removed during the run; nothing was published")

    def _keep_log(self, error: BaseException) -> None:
        log = self.folder / LOG_NAME
        try:
            finalize(log, self._permissions)
            os.replace(log, self.failed_log)
        except OSError as why:
            error.add_note(f"the log of the failed run is lost: cannot write {self.failed_log}: {why.strerror}")
        else:
            error.add_note(f"log of the failed run: {self.failed_log}")

    def _remove_failed_log(self) -> None:
        with suppress(OSError):
            self.failed_log.unlink()

    def _clear(self) -> None:
        """Remove what killed runs left. The lock excludes other runs."""
        left = re.compile(rf"\.{re.escape(self.out.name)}\.edgemill-[^.]+(\.old)?")
        for folder in self.out.parent.iterdir():
            if match := left.fullmatch(folder.name):
                if match[1]:
                    settle_aside(folder, self.out)
                else:
                    with suppress(OSError):  # it does not disturb the run
                        remove_own(folder)
        self._refuse_at_start()


def keep_failure_in_folder(out: Folder, run_id: str, log: bytes) -> str | None:
    """As `keep_failure`. The file replaces a link that someone has planted in its place, not the target."""
    path = resolved(Path(os.path.expanduser(out.url)))
    if not path.name or (os.path.lexists(path) and not is_result(path)):
        return None
    path.parent.mkdir(parents=True, exist_ok=True)
    written, place = path.with_name(f".{path.name}.edgemill-{run_id}"), path.with_name(f"{path.name}.failed.{LOG_NAME}")
    try:
        write_new(written, log)
        finalize(written, default_permissions(path.parent))
        os.replace(written, place)
    except OSError:
        with suppress(OSError):
            remove_own(written)
        raise
    return str(place)


def _make_parents(path: Path) -> list[Path]:
    """Create the parent folders of a path; returns the new ones, innermost first."""
    made = [folder for folder in path.parents if not os.path.lexists(folder)]
    path.parent.mkdir(parents=True, exist_ok=True)
    return made


FAILED_LOG = f"failed.{LOG_NAME}"
CHECKPOINT = ".edgemill.checkpoint"
RUN = "edgemill-"


class StoreStaging:
    """As `FolderStaging`, for an object store, which cannot rename. `commit()` writes the manifest, then removes the
    files of an earlier run.

    Raises UsageError for the checks and if the store cannot be written, OutputLocked.
    """

    def __init__(
        self,
        out: Folder,
        *,
        overwrite: bool,
        run_id: str,
        source: Folder | None = None,
        or_same: bool,
        single_writer: bool = False,
    ) -> None:
        self.out = out
        self.overwrite, self.or_same = overwrite, or_same
        self.prefix = f"{RUN}{run_id}/"
        """Prefix of the run's files in the manifest."""
        self.tables = out.subfolder(f"{RUN}{run_id}")
        """The folder of the tables."""
        self.named_from = out
        """The folder to which names in the manifest are relative."""
        self.scratch: Path
        """A local folder for the log and the manifest, until they are written to the store."""
        self.left_by: LockOwner | None = None
        """The dead run whose lock was taken over; None if there was none."""
        self.weakness: str | None = None
        """Why the store cannot exclude a second run; None if it can."""
        self._single_writer = single_writer
        self._source = source
        self._run_id = run_id
        self._committed = False
        self._log_bytes = 0

    def __enter__(self) -> Self:
        if self._source is not None:
            refuse_input_overlap(self._source, self.out)
        self._refuse_at_start()
        self._temporary = tempfile.TemporaryDirectory(prefix=RUN)
        self.scratch = Path(self._temporary.name)
        self._lock = StoreLock(self.out, self._run_id, str(self.scratch / LOG_NAME), single_writer=self._single_writer)
        try:
            self.left_by = self._lock.take()
            self.weakness = self._lock.weakness
            self._clear()
            self._refuse_at_start()
        except BaseException:
            self._temporary.cleanup()
            self._release_lock()
            raise
        return self

    def commit(self) -> None:
        """Write the log, then the manifest; remove the files of an earlier run. Raises as the class."""
        self._put_log()
        if not self._lock.is_held():
            raise OutputLocked(f"the lock on {self.out} was removed during the run; nothing was published")
        self.refuse_existing()
        manifest = (self.scratch / MANIFEST_NAME).read_bytes()
        if self.overwrite:
            self.out.write(MANIFEST_NAME, manifest)
        elif not self._lock.create(MANIFEST_NAME, manifest) and self.out.read(MANIFEST_NAME) != manifest:
            raise UsageError(
                f"output.path {self.out} was created during the run by another process; nothing was published"
            )
        self._committed = True
        with suppress(EdgemillError):  # the next run removes the rest
            self.out.remove(FAILED_LOG)
            self._clear()

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            if self._committed:
                with suppress(EdgemillError):  # the result is published, only the log lacks its last lines
                    self._put_log()
            else:
                self._keep_log(error)
                with suppress(EdgemillError):  # the store may be the reason for the failure
                    if (own := self.prefix.rstrip("/")) not in self._folders_in_use():  # its PUT may have succeeded
                        self.out.remove(own)
        finally:
            self._temporary.cleanup()
            self._release_lock()

    def holds_result(self) -> bool:
        """Whether OUT is a result, of any run and format version."""
        return is_result(self.out)

    def add_to_log(self) -> None:
        """Append the log of this run to the log of the existing result in OUT."""
        with suppress(EdgemillError):
            self.out.remove(FAILED_LOG)
        for folder in self._folders_in_use():
            log = self.out.read(f"{folder}/{LOG_NAME}") or b""
            self.out.write(f"{folder}/{LOG_NAME}", log + (self.scratch / LOG_NAME).read_bytes())

    def add(self, name: str, content: bytes) -> None:
        """Write a file beside the tables."""
        self.tables.write(name, content)

    def refuse_existing(self) -> None:
        """Raises UsageError if OUT has something that must not be replaced."""
        names = self.out.names()
        if not self.overwrite and (MANIFEST_NAME in names or _foreign(names)):
            raise UsageError(f"output.path {self.out} exists: choose another, or replace it with output.overwrite=true")
        if (MANIFEST_NAME in names or _foreign(names)) and not self.holds_result():
            raise UsageError(
                f"output.path {self.out} is not an edgemill result, so output.overwrite=true does not replace it"
            )

    def _refuse_at_start(self) -> None:
        if not (self.or_same and self.holds_result()):
            self.refuse_existing()

    def _folders_in_use(self) -> set[str]:
        """Names of folders of runs that the manifest in OUT refers to; of all runs if that cannot be told."""
        used = folders_in_use(self.out)
        return {name for name in (self.out.names() if used is None else used) if name.startswith(RUN)}

    def _clear(self) -> None:
        """Remove the files of all runs, except those of the current result. The lock excludes other runs."""
        if not self.holds_result() and MANIFEST_NAME in self.out.names():
            return
        used = self._folders_in_use()
        for name in self.out.names():
            if name.startswith(RUN) and name not in used:
                self.out.remove(name)

    def _put_log(self) -> None:
        """Write the log to the store, if it has grown since the last time."""
        log = (self.scratch / LOG_NAME).read_bytes()
        if len(log) > self._log_bytes:
            self.out.write(f"{self.prefix}{LOG_NAME}", log)
            self._log_bytes = len(log)

    def _keep_log(self, error: BaseException | None) -> None:
        """Write the log of a failed run to the store, or to a local disk if the store refuses it."""
        log = self.scratch / LOG_NAME
        if error is None or not log.exists():
            return
        try:
            self.out.write(FAILED_LOG, log.read_bytes())
            path = f"{self.out}/{FAILED_LOG}"
        except EdgemillError:
            copy = _local_copy(log, f"{RUN}{self._run_id}.{FAILED_LOG}")
            if copy is None:
                return
            path = str(copy)
        error.add_note(f"log of the failed run: {path}")

    def _release_lock(self) -> None:
        with suppress(EdgemillError):  # if the store does not answer, the next run of this machine takes the lock over
            self._lock.release()


def keep_failure_in_store(out: Folder, run_id: str, log: bytes) -> str | None:
    """As `keep_failure`."""
    if _foreign(out.names()) and not is_result(out):
        return None
    out.write(FAILED_LOG, log)
    return f"{out}/{FAILED_LOG}"


def _local_copy(log: Path, name: str) -> Path | None:
    """Copy the log as `name` into the working directory, or else the temporary directory; None if neither works."""
    for folder in (os.curdir, tempfile.gettempdir()):
        with suppress(OSError):
            copy = Path(folder).absolute() / name
            with open(os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                try:
                    file.write(log.read_bytes())
                    file.flush()
                except OSError:
                    copy.unlink()
                    raise
            return copy
    return None


def _foreign(names: list[str]) -> list[str]:
    """Names in OUT that edgemill did not write."""
    own = (MANIFEST_NAME, LOCK_NAME, FAILED_LOG, CHECKPOINT)
    return [name for name in names if name not in own and not name.startswith(RUN)]


Staging: TypeAlias = FolderStaging | StoreStaging


def staging_for(settings: Settings, run_id: str, is_path: bool = True) -> Staging:
    """The staging of a run with these settings: a context manager that holds the lock of the output.

    If the input `is_path`, it must not overlap the output. Else the setting is only a name for it.
    """
    out = folder_at(settings.output.path, settings.output.storage_options)
    how = {"overwrite": settings.output.overwrite, "or_same": not settings.checkpoint.fresh}
    source = folder_at(settings.input.path, settings.input.storage_options) if is_path else None
    if out.is_local:
        return FolderStaging(out.url, run_id=run_id, source=source, **how)
    return StoreStaging(out, run_id=run_id, source=source, single_writer=settings.output.single_writer, **how)


def keep_failure(settings: Settings, run_id: str, log: bytes) -> str | None:
    """Keep the log of a run that failed before it took the lock of its output, where a staging keeps its own.

    Returns the place; None if the output is a foreign file or folder, beside which nothing is written. Raises OSError,
    UsageError, StoreLost.
    """
    out = folder_at(settings.output.path, settings.output.storage_options)
    if out.is_local:
        return keep_failure_in_folder(out, run_id, log)
    return keep_failure_in_store(out, run_id, log)
