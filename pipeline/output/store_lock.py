"""One run at a time for each output in an object store: a lock object that names its owner."""

from __future__ import annotations

from ...tasks.errors import EdgemillError, OutputLocked, UsageError
from ...tasks.storage.folders import Folder
from ...tasks.storage.stores import is_refused_condition
from .lock import locked_error
from .lock_owner import LockOwner

LOCK_NAME = ".edgemill.lock"


class StoreLock:
    """The object `.edgemill.lock` in `out`, created by a conditional write (`If-None-Match: *` on S3).

    The lock is written a second time, to test whether the store obeys the condition. A store that accepts both writes,
    or refuses the condition, is a UsageError. With `single_writer` the lock is read first and then written instead, and
    `weakness` gives the reason. The lock of a dead process of this machine is taken over. A lock of another machine is
    not, since a store cannot tell whether its run is alive.
    """

    def __init__(self, out: Folder, run_id: str, log: str | None = None, *, single_writer: bool = False) -> None:
        self.owner = LockOwner.here(run_id, log)
        self.weakness: str | None = None
        """Why the store cannot exclude a second run; None if it can."""
        self._out = out
        self._single_writer = single_writer
        self._held = False

    def take(self) -> LockOwner | None:
        """Take the lock, without waiting. Returns the dead run that left it behind, or None.

        Raises OutputLocked, UsageError.
        """
        own, left_by = self.owner.as_json(), None
        while True:
            present = self._out.read(LOCK_NAME)  # first: a store that ignores conditions would replace another's lock
            if present is None:
                if self.create(LOCK_NAME, own):
                    break
                continue
            if present == own:  # an earlier try succeeded, but its answer was lost
                break
            owner = LockOwner.parse(present)
            if owner is None or not owner.is_dead():
                raise self._taken(owner)
            if self._out.read(LOCK_NAME) == present:  # no other run has taken it over meanwhile
                self._out.remove(LOCK_NAME)
            left_by = owner
        self._held = True
        if self.weakness is None and self._out.create(LOCK_NAME, own):
            self._weaken("accepts a conditional write (If-None-Match: * on S3) and does not obey it")
        if not self.is_held():
            raise self._taken(LockOwner.parse(self._out.read(LOCK_NAME) or b""))
        return left_by

    def create(self, name: str, content: bytes) -> bool:
        """Create an object, by a conditional write if the store supports it; False if the object exists.

        Raises UsageError.
        """
        if self.weakness is None:
            try:
                return self._out.create(name, content)
            except EdgemillError as error:
                if not is_refused_condition(error):
                    raise
                self._weaken(f"refuses conditional writes (If-None-Match: * on S3): {error}")
        if self._out.read(name) is not None:
            return False
        self._out.write(name, content)
        return True

    def is_held(self) -> bool:
        """Whether this run still owns the lock."""
        return self._held and self._out.read(LOCK_NAME) == self.owner.as_json()

    def release(self) -> None:
        """Remove the lock if this run owns it."""
        if self.is_held():
            self._out.remove(LOCK_NAME)
        self._held = False

    def _weaken(self, reason: str) -> None:
        """Continue without conditional writes if the settings allow it. Raises UsageError."""
        reason = f"the store {reason}"
        if not self._single_writer:
            raise UsageError(
                f"output.path {self._out}: {reason}, so concurrent runs cannot lock the output; "
                "use a store that supports them, or set output.single_writer=true if no other run writes there"
            )
        self.weakness = reason

    def _taken(self, owner: LockOwner | None) -> OutputLocked:
        return locked_error(str(self._out), owner, f"{self._out}/{LOCK_NAME}", certain=False)


def inspect_store_lock(out: Folder) -> tuple[LockOwner | None, bool | None] | None:
    """The owner of the lock in `out`, and whether that run is alive. None if there is no lock.

    The owner is None if the lock cannot be parsed; the state is None if it is not known. Raises UsageError.
    """
    content = out.read(LOCK_NAME)
    if content is None:
        return None
    owner = LockOwner.parse(content)
    if owner is None:
        return None, None
    dead = owner.is_dead()
    return owner, False if dead else True if owner.is_certain else None
