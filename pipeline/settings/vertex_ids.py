"""Settings that are ids of vertices: kept as text, since the type of ids is known only when the input is open."""

from __future__ import annotations

from collections.abc import Iterable
from operator import index
from pathlib import Path
from typing import Any

MOST_IDS = 100_000
"""Most ids in a setting. All of them are in the manifest."""


def id_text(value: object) -> str:
    """An id as text. Raises ValueError for a value that is no id."""
    plain: Any = getattr(value, "as_py", lambda: value)()
    if isinstance(plain, str):
        return plain
    if isinstance(plain, bool | float | list | tuple | dict | set) or plain is None:
        raise ValueError("must be an id: a whole number, or text")
    try:
        return str(index(plain))
    except TypeError:
        return str(plain)  # such as a UUID


def id_or_none(value: object) -> str | None:
    """An id as text, or None. Raises ValueError as `id_text` does."""
    return None if value is None else id_text(value)


def id_texts(value: Any) -> tuple[str, ...]:
    """Several ids as text: one id, ids with commas between them, `@FILE` with an id in each line, `@FILE:COLUMN` with a
    column of a Parquet file, or a list or column of ids. Raises ValueError.
    """
    if isinstance(value, str) and value.startswith("@"):
        found = _of_file(value[1:])
    elif isinstance(value, str):
        found = [text.strip() for text in value.split(",") if text.strip()]
    elif isinstance(value, Iterable):
        found = [id_text(one) for one in value]
    else:
        found = [id_text(value)]
    texts = tuple(sorted(set(found)))
    if len(texts) > MOST_IDS:
        raise ValueError(f"names {len(texts):,} ids, over the {MOST_IDS:,} allowed")
    return texts


def _of_file(name: str) -> list[str]:
    path, _, column = (name, "", "") if Path(name).is_file() else name.rpartition(":")
    try:
        content = Path(path or name).read_bytes()
    except OSError as error:
        raise ValueError(f"cannot read the file of ids {path or name!r}: {error.strerror or error}") from error
    if content.startswith((b"PAR1", b"PARE")):
        return _of_parquet(path, column)
    if column:
        raise ValueError(f"{path!r} is no Parquet file, so it has no column {column!r}: write one id in each line")
    try:
        return [line.strip() for line in content.decode().splitlines() if line.strip()]
    except UnicodeDecodeError as error:
        raise ValueError(f"{path!r} is neither Parquet nor text in UTF-8") from error


def _of_parquet(path: str, column: str) -> list[str]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from ...tasks.ids.display import display_id

    try:
        names = pq.read_schema(path).names
        chosen = column or ("id" if "id" in names else names[0] if len(names) == 1 else "")
        if chosen not in names:
            known = ", ".join(map(repr, names))
            which = f"no column {column!r}" if column else "several columns, none of them 'id'"
            raise ValueError(f"{path!r} has {which}; it has {known}: name one, as in @{path}:COLUMN")
        if (count := names.count(chosen)) > 1:
            raise ValueError(f"{path!r} has {count} columns named {chosen!r}: rename all but one")
        found = pq.read_table(path, columns=[chosen])[chosen]
    except (pa.ArrowException, OSError) as error:
        why = f"is encrypted: {error}" if "decrypt" in str(error) else f"cannot be read as Parquet: {error}"
        raise ValueError(f"{path!r} {why}") from error
    if found.null_count:
        raise ValueError(f"column {chosen!r} of {path!r} has {found.null_count:,} nulls: leave them out")
    return [id_text(display_id(value)) for value in found.to_pylist()]
