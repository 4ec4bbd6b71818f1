"""One run at a time for each output in an object store: a lock object that names its holder."""

from __future__ import annotations

from ..tasks.errors import EdgemillError, OutputLocked, UsageError
from ..tasks.places import Place
from ..tasks.stores import is_refused_condition
from .holder import Holder
from .lock import locked

__all__ = ["LOCK_NAME", "StoreLock", "look_at_store_lock"]

LOCK_NAME = ".edgemill.lock"


class StoreLock:
    """The object `.edgemill.lock` in `out`, made by a conditional write (`If-None-Match: *` on S3).

    The lock is written a second time to see whether the store obeys the condition. A store that accepts both writes, or
    refuses the condition, is refused with UsageError; with `single_writer` the lock looks first and writes then, and
    `weakness` says why. A holder of this machine whose process is gone is followed; of one elsewhere the store cannot
    tell.
    """

    def __init__(self, out: Place, run_id: str, log: str | None = None, *, single_writer: bool = False) -> None:
        self.holder = Holder.here(run_id, log)
        self.weakness: str | None = None
        """Why the store cannot keep two runs apart; None if it can."""
        self._out = out
        self._single_writer = single_writer
        self._held = False

    def take(self) -> Holder | None:
        """Take the lock; gives the run that left it, if one did. Raises OutputLocked, at once, and UsageError."""
        own, left_by = self.holder.as_json(), None
        while True:
            present = self._out.read(LOCK_NAME)  # first: a store that ignores conditions would replace another's lock
            if present is None:
                if self.create(LOCK_NAME, own):
                    break
                continue
            if present == own:  # a first try came through, and its answer did not
                break
            holder = Holder.parse(present)
            if holder is None or not holder.is_gone():
                raise self._taken(holder)
            if self._out.read(LOCK_NAME) == present:  # no other run has followed meanwhile
                self._out.remove(LOCK_NAME)
            left_by = holder
        self._held = True
        if self.weakness is None and self._out.create(LOCK_NAME, own):
            self._weaken("accepts a conditional write (If-None-Match: * on S3) without obeying it")
        if not self.is_held():
            raise self._taken(Holder.parse(self._out.read(LOCK_NAME) or b""))
        return left_by

    def create(self, name: str, content: bytes) -> bool:
        """Make an object that is not there, by a conditional write if the store has them; False if it is there.

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
        """Whether the lock is still this run's."""
        return self._held and self._out.read(LOCK_NAME) == self.holder.as_json()

    def release(self) -> None:
        """Give the lock back, if it is held."""
        if self.is_held():
            self._out.remove(LOCK_NAME)
        self._held = False

    def _weaken(self, reason: str) -> None:
        """Go on without conditional writes if the settings allow it. Raises UsageError."""
        reason = f"the store {reason}"
        if not self._single_writer:
            raise UsageError(
                f"output.path {self._out}: {reason}, so two runs at once cannot be kept apart; "
                "use a store that obeys, or set output.single_writer=true if no other run writes there"
            )
        self.weakness = reason

    def _taken(self, holder: Holder | None) -> OutputLocked:
        return locked(str(self._out), holder, f"{self._out}/{LOCK_NAME}", certain=False)


def look_at_store_lock(out: Place) -> tuple[Holder | None, bool | None] | None:
    """As `lock.look_at_lock`, of the lock in `out`. Raises UsageError."""
    content = out.read(LOCK_NAME)
    if content is None:
        return None
    holder = Holder.parse(content)
    if holder is None:
        return None, None
    gone = holder.is_gone()
    return holder, False if gone else True if holder.is_certain else None
