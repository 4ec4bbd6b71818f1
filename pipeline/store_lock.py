"""One run at a time for each output in an object store: a lock object that names its holder."""

from __future__ import annotations

from ..tasks.places import Place
from .holder import Holder
from .lock import locked

__all__ = ["LOCK_NAME", "StoreLock", "look_at_store_lock"]

LOCK_NAME = ".edgemill.lock"


class StoreLock:
    """The object `.edgemill.lock` in `out`, made by a conditional write (`If-None-Match: *` on S3).

    A holder of this machine whose process is gone is followed; of one elsewhere the store cannot tell.
    """

    def __init__(self, out: Place, run_id: str, log: str | None = None) -> None:
        self.holder = Holder.here(run_id, log)
        self._out = out
        self._held = False

    def take(self) -> Holder | None:
        """Take the lock; gives the run that left it, if one did. Raises OutputLocked, at once, and UsageError."""
        own, left_by = self.holder.as_json(), None
        while not self._out.create(LOCK_NAME, own):
            present = self._out.read(LOCK_NAME)
            if present == own:  # a first try came through, and its answer did not
                break
            if present is None:
                continue
            holder = Holder.parse(present)
            if holder is None or not holder.is_gone():
                raise self._taken(holder)
            if self._out.read(LOCK_NAME) == present:  # no other run has followed meanwhile
                self._out.remove(LOCK_NAME)
            left_by = holder
        self._held = True
        if not self.is_held():
            raise self._taken(Holder.parse(self._out.read(LOCK_NAME) or b""))
        return left_by

    def is_held(self) -> bool:
        """Whether the lock is still this run's."""
        return self._held and self._out.read(LOCK_NAME) == self.holder.as_json()

    def release(self) -> None:
        """Give the lock back, if it is held."""
        if self.is_held():
            self._out.remove(LOCK_NAME)
        self._held = False

    def _taken(self, holder: Holder | None) -> Exception:
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
