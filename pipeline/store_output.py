"""The output in an object store: files of a run under a name of its own, and a manifest, written last, that names them.

OUT/manifest.json          the result, from one PUT to the next
OUT/edgemill-ID/edges/…    its tables, its log and its report
OUT/.edgemill.lock         while a run writes
OUT/failed.log.jsonl       the log of a run that failed
"""

from __future__ import annotations

import json
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ..tasks.errors import EdgemillError, OutputLocked, UsageError
from ..tasks.places import Place
from .holder import Holder
from .manifest import MANIFEST_NAME, is_result
from .output import LOG_NAME
from .overlap import refuse_input_overlap
from .store_lock import LOCK_NAME, StoreLock

__all__ = ["StoreStaging"]

FAILED_LOG = f"failed.{LOG_NAME}"
CHECKPOINT = ".edgemill.checkpoint"
RUN = "edgemill-"


class StoreStaging:
    """As `output.Staging`, for an object store, which cannot rename: `commit()` puts the manifest, and that is all
    it takes; what an earlier run had is removed after that.

    Raises UsageError for the checks and for a store that cannot be written, OutputLocked.
    """

    def __init__(
        self,
        out: Place,
        *,
        overwrite: bool,
        run_id: str,
        source: Place | None = None,
        or_same: bool,
        single_writer: bool = False,
    ) -> None:
        self.out = out
        self.overwrite, self.or_same = overwrite, or_same
        self.prefix = f"{RUN}{run_id}/"
        """What the names of the run's files begin with in the manifest."""
        self.tables = out.within(f"{RUN}{run_id}")
        """Where the tables are written."""
        self.named_from = out
        """What names in the manifest are relative to."""
        self.scratch: Path
        """A folder on this machine for the log and the manifest, until they are put."""
        self.left_by: Holder | None = None
        """The dead run whose lock was found."""
        self.weakness: str | None = None
        """Why the store cannot keep two runs apart; None if it can."""
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
        """Put the log, then the manifest; remove what it replaces."""
        self._put_log()
        if not self._lock.is_held():
            raise OutputLocked(f"the lock on {self.out} was taken away during the run, which publishes nothing")
        self.refuse_existing()
        manifest = (self.scratch / MANIFEST_NAME).read_bytes()
        if self.overwrite:
            self.out.write(MANIFEST_NAME, manifest)
        elif not self._lock.create(MANIFEST_NAME, manifest) and self.out.read(MANIFEST_NAME) != manifest:
            raise UsageError(f"output.path {self.out} has come into being during the run, which publishes nothing")
        self._committed = True
        with suppress(EdgemillError):  # what is left, the next run clears
            self.out.remove(FAILED_LOG)
            self._clear()

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            if self._committed:
                with suppress(EdgemillError):  # what the log lacks then has been done all the same
                    self._put_log()
            else:
                self._keep_log(error)
                with suppress(EdgemillError):  # as above; and the store may be why the run failed
                    if (own := self.prefix.rstrip("/")) not in self._folders_in_use():  # its PUT may have come through
                        self.out.remove(own)
        finally:
            self._temporary.cleanup()
            self._release_lock()

    def holds_result(self) -> bool:
        """Whether OUT is a result, of any run and format."""
        return is_result(self.out)

    def add_to_log(self) -> None:
        """Append this run's log to that of the result in OUT, which stays."""
        with suppress(EdgemillError):
            self.out.remove(FAILED_LOG)
        for folder in self._folders_in_use():
            log = self.out.read(f"{folder}/{LOG_NAME}") or b""
            self.out.write(f"{folder}/{LOG_NAME}", log + (self.scratch / LOG_NAME).read_bytes())

    def add(self, name: str, content: bytes) -> None:
        """Put a file beside the tables."""
        self.tables.write(name, content)

    def refuse_existing(self) -> None:
        """Raises UsageError if OUT holds something that is not to be replaced."""
        names = self.out.names()
        if not self.overwrite and (MANIFEST_NAME in names or _foreign(names)):
            raise UsageError(f"output.path {self.out} exists: choose another, or replace it with output.overwrite=true")
        if (MANIFEST_NAME in names or _foreign(names)) and not self.holds_result():
            raise UsageError(
                f"output.path {self.out} is not an edgemill result, so output.overwrite=true leaves it alone"
            )

    def _refuse_at_start(self) -> None:
        if not (self.or_same and self.holds_result()):
            self.refuse_existing()

    def _folders_in_use(self) -> set[str]:
        """Folders of runs that the manifest in OUT names."""
        manifest: dict[str, Any] = json.loads(self.out.read(MANIFEST_NAME) or b"{}")
        folders = {str(output["path"]).partition("/")[0] for output in manifest.get("outputs", [])}
        return {folder for folder in folders if folder.startswith(RUN)}

    def _clear(self) -> None:
        """Remove the files of all runs but the one whose result this is: whoever holds the lock runs alone."""
        if not self.holds_result() and MANIFEST_NAME in self.out.names():
            return
        used = self._folders_in_use()
        for name in self.out.names():
            if name.startswith(RUN) and name not in used:
                self.out.remove(name)

    def _put_log(self) -> None:
        """Put the log as it is now, if anything came to it since."""
        log = (self.scratch / LOG_NAME).read_bytes()
        if len(log) > self._log_bytes:
            self.out.write(f"{self.prefix}{LOG_NAME}", log)
            self._log_bytes = len(log)

    def _keep_log(self, error: BaseException | None) -> None:
        """Put the log of a run that failed into the store; on a disk here if the store does not take it."""
        log = self.scratch / LOG_NAME
        if error is None or not log.exists():
            return
        try:
            self.out.write(FAILED_LOG, log.read_bytes())
            place = f"{self.out}/{FAILED_LOG}"
        except EdgemillError:
            kept = _kept_here(log, f"{RUN}{self._run_id}.{FAILED_LOG}")
            if kept is None:
                return
            place = str(kept)
        error.add_note(f"log of the failed run: {place}")

    def _release_lock(self) -> None:
        with suppress(EdgemillError):  # a store that is gone has no lock either; the next run of this machine follows
            self._lock.release()


def _kept_here(log: Path, name: str) -> Path | None:
    """The log's copy of that name in the current directory, or that of temporary files; None if neither takes it."""
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
    """Names in OUT that are not of runs."""
    own = (MANIFEST_NAME, LOCK_NAME, FAILED_LOG, CHECKPOINT)
    return [name for name in names if name not in own and not name.startswith(RUN)]
