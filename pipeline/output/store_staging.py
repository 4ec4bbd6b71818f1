"""Staging of a result in an object store: files of each run under their own prefix, and a manifest that refers to them.

OUT/manifest.json          the result; one PUT replaces it
OUT/edgemill-ID/edges/…    tables, log and report of a run
OUT/.edgemill.lock         exists while a run writes
OUT/failed.log.jsonl       the log of a failed run
"""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from ...tasks.errors import EdgemillError, OutputLocked, UsageError
from ...tasks.storage.folders import Folder
from ..settings.overlap import refuse_input_overlap
from .folder_staging import LOG_NAME
from .lock_owner import LockOwner
from .manifest import MANIFEST_NAME, folders_in_use, is_result
from .store_lock import LOCK_NAME, StoreLock

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


def keep_failure(out: Folder, run_id: str, log: bytes) -> str | None:
    """As `staging.keep_failure`."""
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
