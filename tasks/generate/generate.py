"""Write synthetic graphs as Parquet, with int64 columns `src` and `dst`.

Each kind draws any chunk of its rows independently. So memory does not grow with the graph, and the rows do not depend
on the number of files.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import MISSING, fields
from itertools import pairwise
from pathlib import Path

import pyarrow as pa

from ..errors import NO_SPACE, OutOfRoom, UsageError
from ..publish.writing import layout
from ..storage.folders import folder_at
from ..storage.parquet_checksum import checksummed_writer
from . import kinds as graph_kinds
from .kinds import KINDS, Kind

_MAX_FILES = 100_000


def generate(kind: str, output: str | Path, files: int, seed: int, **parameters: int | float | bool) -> list[Path]:
    """Write one graph as `files` Parquet files part-00000.parquet, … in the folder `output`; return their paths.

    Rows go to the files in order, in runs of equal length. On an error no file is left.

    Raises UsageError for an unknown kind or parameter, a value out of range or an output folder that is not empty, and
    OutOfRoom when the disk is full.
    """
    graph = _parse_kind(kind, parameters)
    if not 1 <= files <= _MAX_FILES:
        raise UsageError(f"files: {files} is not a number from 1 to {_MAX_FILES}")
    if seed < 0:
        raise UsageError(f"seed: {seed} is negative; give 0 or more")
    target = folder_at(output)
    if not target.is_local:
        raise UsageError(f"output: {target} is not a folder on a disk, which is what rows are written to")
    folder = _empty_folder(Path(target.url).expanduser())
    paths = [folder / f"part-{number:05d}.parquet" for number in range(files)]
    try:
        _write(graph, seed, paths)
    except BaseException as error:
        for path in paths:
            path.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno in NO_SPACE:
            raise OutOfRoom(f"{folder}: the disk is full; {graph.rows} rows did not fit") from error
        raise
    return paths


def _parse_kind(name: str, parameters: dict[str, int | float | bool]) -> Kind:
    kind = KINDS.get(name)
    if kind is None:
        raise UsageError(f"kind: {name!r} is not one of {', '.join(KINDS)}")
    known = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]  # every Kind is a dataclass
    for parameter in parameters:
        if parameter not in known:
            raise UsageError(f"{name}: unknown parameter {parameter!r}; it takes {', '.join(known)}")
    for field in known.values():
        if field.default is MISSING and field.name not in parameters:
            raise UsageError(f"{name}: give {field.name}")
        value = parameters.get(field.name, 0)
        if field.type == "int" and (isinstance(value, bool) or not isinstance(value, int)):
            raise UsageError(f"{name}: {field.name} is {value!r}; give a whole number")
    return kind(**parameters)


def _empty_folder(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        occupied = any(folder.iterdir())
    except OSError as error:
        raise UsageError(f"output: {folder} cannot be made a folder: {error.strerror}") from error
    if occupied:
        raise UsageError(f"output: {folder} is not empty; give a new or empty folder")
    if not os.access(folder, os.W_OK):
        raise UsageError(f"output: {folder} cannot be written to")
    return folder


def _write(graph: Kind, seed: int, paths: list[Path]) -> None:
    """Write the files in parallel. A chunk that spans several files is drawn for each of them."""
    cuts = [graph.rows * number // len(paths) for number in range(len(paths) + 1)]
    with ThreadPoolExecutor(min(len(paths), pa.cpu_count())) as threads:
        tasks = [
            threads.submit(_write_file, graph, seed, path, *ends)
            for path, ends in zip(paths, pairwise(cuts), strict=True)
        ]
        try:
            for task in tasks:
                task.result()
        finally:
            threads.shutdown(cancel_futures=True)


def _write_file(graph: Kind, seed: int, path: Path, start: int, stop: int) -> None:
    schema = pa.schema([("src", pa.int64()), ("dst", pa.int64())])
    with path.open("wb") as file, checksummed_writer(file, schema, **layout(schema, 0, "zstd")) as writer:
        rows = graph_kinds.CHUNK_ROWS
        for chunk in range(start - start % rows, stop if start < stop else 0, rows):
            src, dst = graph.draw(chunk, min(chunk + rows, graph.rows), seed)
            own = slice(max(start - chunk, 0), stop - chunk)
            writer.write_table(pa.table({"src": src[own], "dst": dst[own]}, schema=schema))
