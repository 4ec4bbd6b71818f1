"""Files of an earlier result that become files of a new one: hard links on a disk, copies by the store elsewhere."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from ..errors import NO_SPACE, OutOfRoom, UsageError
from .atomic import link_or_copy
from .folders import Folder


def take_over(source: Folder, name: str, target: Folder, as_name: str) -> None:
    """Make the file `name` below `source` also the file `as_name` below `target`, whose own folder is made.

    On a disk it is a hard link, or a copy where the file system has none. An object store copies it without sending it
    here. Between different storages the bytes are read and written. `source` is itself no link, and no link in it is
    followed. Raises UsageError, also for a name that leads out of a folder; OutOfRoom.
    """
    try:
        if source.is_local and target.is_local:
            new = Path(target.path(as_name))
            with suppress(FileExistsError):
                new.parent.mkdir(0o700)
            link_or_copy(Path(source.path(name)), new, own=2 + name.count("/"))
            return
        same = source.files is target.files or source.files == target.files
        with source.store_errors("read", name), target.store_errors("write", as_name):
            if same:
                target.files.cp_file(source.path(name), target.path(as_name))
                return
            content = source.files.cat_file(source.path(name))
            target.files.makedirs(target.path(as_name).rpartition("/")[0], exist_ok=True)
            target.files.pipe_file(target.path(as_name), content)
    except OSError as error:
        if error.errno in NO_SPACE:
            raise OutOfRoom(f"no room left on the disk of {target}") from error
        raise UsageError(f"cannot take {source}/{name} over to {target}: {error.strerror or error}") from error
