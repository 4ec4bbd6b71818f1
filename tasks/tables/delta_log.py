"""What deltalake does not provide about the log of a Delta table: the files that a version needs, and which data files
have deletion vectors.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from ..storage.checksums import json_object

_COMMIT = re.compile(r"(\d{20})\.json")
_SIDECAR = re.compile(r"[\w-][\w.-]*\.parquet")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.\d{10}\.(\d{10})|\.[0-9a-fA-F-]{36})?\.(?:parquet|json)")


def log_files(names: Iterable[str], version: int | None) -> tuple[int, list[str]]:
    """The version, and the names in the log that define it; None is the newest version.

    These are the newest complete checkpoint up to the version and the commits after it, in order. Raises ValueError,
    with the reason, if the version does not exist.
    """
    commits: set[int] = set()
    checkpoints: dict[tuple[int, str], list[str]] = {}
    for name in names:
        if found := _COMMIT.fullmatch(name):
            commits.add(int(found[1]))
        elif found := _CHECKPOINT.fullmatch(name):
            one = (
                f"of {found[2]}" if found[2] else name
            )  # a checkpoint in parts, or one of several checkpoints of a version
            checkpoints.setdefault((int(found[1]), one), []).append(name)
    complete = {at: sorted(parts) for (at, one), parts in checkpoints.items() if len(parts) == _parts(one)}
    if not commits and not complete:
        raise ValueError("it has no commits")
    newest = max([*commits, *complete])
    version = newest if version is None else version
    if version > newest:
        raise ValueError(f"its newest version is {newest}")
    start = max((at for at in complete if at <= version), default=-1)
    missing = version  # a name may have any number, so the versions before it are not counted through
    while missing in commits:
        missing -= 1
    if missing > start:
        oldest = min((at for at in complete if at > version), default=None)
        since = "" if oldest is None else f"; its oldest version is {oldest}"
        raise ValueError(f"its log no longer has the commit {missing}{since}")
    return version, [*complete.get(start, []), *(f"{at:020}.json" for at in range(start + 1, version + 1))]


def sidecars(log: Iterable[Path]) -> list[str]:
    """Names of the sidecar files of checkpoints among these files of a log. Sidecars list files of the table.

    Raises ValueError for a path: the log is not trusted.
    """
    checkpoints = [path for path in log if _CHECKPOINT.fullmatch(path.name)]
    names = [str(action["path"]) for path in checkpoints for action in _actions(path, "sidecar", ["path"])]
    for name in names:
        if not _SIDECAR.fullmatch(name):
            raise ValueError(f"a checkpoint refers to the sidecar {name!r}, which is outside its folder")
    return names


def file_with_deletion_vector(log: Sequence[Path], live: Collection[str]) -> str | None:
    """The path of a live file with a deletion vector; None if no file has one.

    `log` are the files that define the version, the checkpoint before the commits, in order. `live` are the paths of
    live files as in the log. The last action that adds a file counts: it may add it again with another vector or none.
    """
    left = set(live)
    for path in reversed(log):
        for add in _actions(path, "add", ["path", "deletionVector"]):
            if add["path"] in left:
                if add.get("deletionVector") is not None:
                    return str(add["path"])
                left.remove(add["path"])
    return None


def _parts(one: str) -> int:
    return int(one.removeprefix("of ")) if one.startswith("of ") else 1


def _actions(path: Path, kind: str, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The actions of one kind in a file of the log, with their fields in `names`. Raises ValueError for damage."""
    if path.suffix == ".json":
        with path.open("rb") as lines:
            for line in lines:
                action = json_object(line).get(kind) if line.strip() else None
                if action is None:
                    continue
                if not isinstance(action, dict) or not isinstance(action.get("path"), str):
                    raise ValueError(f"{path.name} has an action {kind} without a path")
                yield action
        return
    file = pq.ParquetFile(path)
    schema = file.schema_arrow
    if kind not in schema.names:
        return
    present = [name for name in names if schema.field(kind).type.get_field_index(name) >= 0]
    for batch in file.iter_batches(columns=[f"{kind}.{name}" for name in present]):
        for action in batch.column(kind).to_pylist():
            if action is not None and action["path"] is not None:
                yield action
