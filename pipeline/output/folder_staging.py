"""Staging of a result on a disk: in a folder beside the output, which is renamed to the output when complete."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from ...tasks.errors import NO_SPACE, OutOfRoom, OutputLocked, UsageError
from ...tasks.storage.atomic import replace_folder, settle_aside, sync_folder, write_new
from ...tasks.storage.folders import Folder
from ...tasks.storage.own_files import (
    default_permissions,
    finalize,
    make_own_folder,
    open_own,
    remove_busy_folder,
    remove_own,
    resolved,
)
from ..settings.overlap import refuse_input_overlap
from .lock import FolderLock
from .lock_owner import LockOwner
from .manifest import is_result

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


def keep_failure(out: Folder, run_id: str, log: bytes) -> str | None:
    """As `staging.keep_failure`. The file replaces a link that someone has planted in its place, not the target."""
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
