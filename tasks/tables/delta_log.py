"""The log of a Delta table, as far as deltalake does not tell: which of its files a version needs, and what they say of
deletion vectors.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

__all__ = ["file_with_deletion_vector", "log_files", "sidecars"]

_COMMIT = re.compile(r"(\d{20})\.json")
_SIDECAR = re.compile(r"[\w-][\w.-]*\.parquet")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.\d{10}\.(\d{10})|\.[0-9a-fA-F-]{36})?\.(?:parquet|json)")


def log_files(names: Iterable[str], version: int | None) -> tuple[int, list[str]]:
    """Of the names in a log, those that say what the table is at a version, and that version; None is the newest.

    That is the newest complete checkpoint up to there and the commits after it, in order. Raises ValueError that says
    why if there is no such version.
    """
    commits: set[int] = set()
    checkpoints: dict[tuple[int, str], list[str]] = {}
    for name in names:
        if found := _COMMIT.fullmatch(name):
            commits.add(int(found[1]))
        elif found := _CHECKPOINT.fullmatch(name):
            one = f"of {found[2]}" if found[2] else name  # one in parts, or one of several of a version
            checkpoints.setdefault((int(found[1]), one), []).append(name)
    whole = {at: sorted(parts) for (at, one), parts in checkpoints.items() if len(parts) == _parts(one)}
    if not commits and not whole:
        raise ValueError("it has no commits")
    newest = max([*commits, *whole])
    version = newest if version is None else version
    if version > newest:
        raise ValueError(f"its newest version is {newest}")
    start = max((at for at in whole if at <= version), default=-1)
    missing = [at for at in range(start + 1, version + 1) if at not in commits]
    if missing:
        oldest = min((at for at in whole if at > version), default=None)
        since = "" if oldest is None else f"; its oldest version is {oldest}"
        raise ValueError(f"its log no longer has the commit {missing[-1]}{since}")
    return version, [*whole.get(start, []), *(f"{at:020}.json" for at in range(start + 1, version + 1))]


def sidecars(log: Iterable[Path]) -> list[str]:
    """The names of the files that checkpoints among these files of a log have the files of the table in.

    Raises ValueError for what is no name: the log is not trusted with paths.
    """
    checkpoints = [path for path in log if _CHECKPOINT.fullmatch(path.name)]
    names = [str(action["path"]) for path in checkpoints for action in _actions(path, "sidecar", ["path"])]
    for name in names:
        if not _SIDECAR.fullmatch(name):
            raise ValueError(f"a checkpoint names the sidecar {name!r}, which is no file of its folder")
    return names


def file_with_deletion_vector(log: Sequence[Path], live: Collection[str]) -> str | None:
    """A live file that has a deletion vector; None if none has one.

    `log` are the files of the log that say what the table is, a checkpoint's before the commits, in order; `live` the
    paths of the live files as the log has them. The last action that adds a file decides, as one may add it again with
    another vector, or without.
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
    """The actions of a kind in a file of the log, with those of the named parts that they have."""
    if path.suffix == ".json":
        with path.open("rb") as lines:
            for line in lines:
                action = json.loads(line).get(kind) if line.strip() else None
                if action is not None:
                    yield action
        return
    file = pq.ParquetFile(path)
    schema = file.schema_arrow
    if kind not in schema.names:
        return
    held = [name for name in names if schema.field(kind).type.get_field_index(name) >= 0]
    for batch in file.iter_batches(columns=[f"{kind}.{name}" for name in held]):
        for action in batch.column(kind).to_pylist():
            if action is not None and action["path"] is not None:
                yield action
