"""The output folder on a disk: checked before the work, filled beside its place, renamed into it when complete."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from ..tasks.errors import NO_SPACE, OutOfRoom, OutputLocked, UsageError
from ..tasks.own_files import followed, make_own_folder, open_own, publish, remove_own, remove_set_aside, usual_modes
from ..tasks.places import Place
from .holder import Holder
from .lock import FolderLock
from .manifest import is_result
from .overlap import refuse_input_overlap

__all__ = ["LOG_NAME", "REPORT_NAME", "Staging"]

LOG_NAME = "log.jsonl"
REPORT_NAME = "report.html"


class Staging:
    """A folder `.NAME.edgemill-RUN` beside OUT that `commit()` makes OUT; removed if the block ends without that.

    Entering the block checks, in this order, that OUT is apart from the input, free (or, with
    `overwrite`, an earlier result or an empty folder), written by no other run, and writable. With `or_same`, an
    earlier result is refused by `refuse_existing` only, since it may be the one that is wanted. A failed run leaves
    its log beside OUT as `NAME.failed.log.jsonl`, named in a note on the exception, until one succeeds.

    The folder is its user's alone until it is committed. Then it gets the permissions that other new folders get there.

    Raises UsageError for the checks, OutputLocked if another run is writing OUT, OutOfRoom for a full disk.
    """

    def __init__(
        self,
        output: str | os.PathLike[str],
        *,
        overwrite: bool,
        run_id: str,
        source: Place | None = None,
        or_same: bool = False,
    ) -> None:
        self.out = followed(Path(os.path.expanduser(os.fspath(output))))
        if not self.out.name:
            raise UsageError(f"output.path {output}: a result cannot take the place of a root folder")
        self.overwrite, self.or_same = overwrite, or_same
        self.source = source
        self.folder = self.out.with_name(f".{self.out.name}.edgemill-{run_id}")
        """Where the result is written until it is committed; the same file system as OUT."""
        self.scratch, self.tables, self.prefix = self.folder, Place(str(self.folder)), ""
        self.named_from = self.tables
        self.aside = self.folder.with_name(self.folder.name + ".old")
        self.failed_log = self.out.with_name(f"{self.out.name}.failed.{LOG_NAME}")
        self._lock = FolderLock(self.out.with_name(f".{self.out.name}.edgemill.lock"), str(self.out), run_id)
        self._made_parents: list[Path] = []
        self.left_by: Holder | None = None
        """The dead run whose lock was found."""
        self.weakness: str | None = None
        """Why two runs cannot be kept apart; a disk has no such reason."""

    def __enter__(self) -> Self:
        if self.source is not None:
            refuse_input_overlap(self.source, Place(str(self.out)))
        self._refuse_at_start()
        try:
            self._made_parents = _make_parents(self.out)
            self.left_by = self._lock.take()
            self._clear()
            make_own_folder(self.folder)
            self._made, self._modes = self.folder.lstat(), usual_modes(self.folder)
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
        """Make the folder the result: on the disk first, then renamed; an earlier result goes only after that."""
        self._refuse_another_folder()
        publish(self.folder, self._modes)
        if not self._lock.is_held():
            raise OutputLocked(f"the lock on {self.out} was taken away during the run, which publishes nothing")
        self.refuse_existing()
        try:
            if os.path.lexists(self.out):
                os.rename(self.out, self.aside)
            os.rename(self.folder, self.out)
        finally:
            _settle_aside(self.aside, self.out)
        self._forget_failure()
        _sync(self.out.parent)

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            _settle_aside(self.aside, self.out)
            if os.path.lexists(self.folder):
                if error is not None and (self.folder / LOG_NAME).exists():
                    self._keep_log(error)
                gone = self.folder.with_name(self.folder.name + "-failed")
                os.rename(self.folder, gone)  # tasks that still run find nowhere to write
                with suppress(OSError):  # what is left, the next run clears
                    remove_set_aside(gone)
        finally:
            self._release()

    def _release(self) -> None:
        """Let go of the lock, and of folders that this run made for a result that did not come."""
        self._lock.release()
        for folder in self._made_parents:
            with suppress(OSError):  # something is in it
                folder.rmdir()

    def holds_result(self) -> bool:
        """Whether OUT is a result, of any run and format."""
        return is_result(self.out)

    def add_to_log(self) -> None:
        """Append this run's log to that of the result in OUT, which stays."""
        self._forget_failure()
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        with open(open_own(self.out / LOG_NAME, flags, own=2, mode=0o666), "ab") as log:
            log.write((self.folder / LOG_NAME).read_bytes())

    def add(self, name: str, content: bytes) -> None:
        """Put a file, whole or not at all, beside the tables."""
        path = self.folder / name
        try:
            with open(open_own(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, own=2), "wb") as file:
                file.write(content)
        except BaseException:
            path.unlink(missing_ok=True)
            raise

    def _refuse_at_start(self) -> None:
        if not (self.or_same and self.holds_result()):
            self.refuse_existing()

    def refuse_existing(self) -> None:
        """Raises UsageError if OUT exists and is not to be replaced."""
        if not os.path.lexists(self.out):
            return
        if not self.out.is_dir():
            raise UsageError(f"output.path {self.out} exists and is not a folder: choose another")
        if not self.overwrite:
            raise UsageError(f"output.path {self.out} exists: choose another, or replace it with output.overwrite=true")
        if not is_result(self.out) and any(self.out.iterdir()):
            raise UsageError(
                f"output.path {self.out} is not an edgemill result, so output.overwrite=true leaves it alone"
            )

    def _refuse_another_folder(self) -> None:
        """Raises UsageError if the folder is not the one that this run made: who may rename there can put another."""
        with suppress(OSError):
            if os.path.samestat(self.folder.lstat(), self._made):
                return
        raise UsageError(f"{self.folder} was replaced or removed during the run, which publishes nothing")

    def _keep_log(self, error: BaseException) -> None:
        log = self.folder / LOG_NAME
        try:
            publish(log, self._modes)
            os.replace(log, self.failed_log)
        except OSError as why:
            error.add_note(f"the log of the failed run is lost: cannot write {self.failed_log}: {why.strerror}")
        else:
            error.add_note(f"log of the failed run: {self.failed_log}")

    def _forget_failure(self) -> None:
        with suppress(OSError):
            self.failed_log.unlink()

    def _clear(self) -> None:
        """Clear what killed runs left: whoever holds the lock runs alone."""
        left = re.compile(rf"\.{re.escape(self.out.name)}\.edgemill-[^.]+(\.old)?")
        for folder in self.out.parent.iterdir():
            if match := left.fullmatch(folder.name):
                if match[1]:
                    _settle_aside(folder, self.out)
                else:
                    with suppress(OSError):  # it stands in nobody's way
                        remove_own(folder)
        self._refuse_at_start()


def _make_parents(path: Path) -> list[Path]:
    """Make the folders above a path; gives those that were not there, the innermost first."""
    made = [folder for folder in path.parents if not os.path.lexists(folder)]
    path.parent.mkdir(parents=True, exist_ok=True)
    return made


def _settle_aside(aside: Path, out: Path) -> None:
    """Put the earlier result back if its place is empty, else delete it: what is left of it, such as what somebody
    reads over NFS, the next run clears. A link is no earlier result, and goes.
    """
    if os.path.lexists(aside):
        if os.path.lexists(out) or aside.is_symlink() or not aside.is_dir():
            os.rename(aside, gone := aside.with_name(f"{aside.stem}-gone"))  # so that no part of it is put back
            with suppress(OSError):
                remove_own(gone)
        else:
            os.rename(aside, out)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
