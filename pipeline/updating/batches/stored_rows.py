"""Rows of a graph as the files of an input."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from ....tasks.ids import identity
from ....tasks.ids.id_types import from_internal
from ....tasks.inputs.formats.form import Form
from ....tasks.inputs.open_source import open_source
from ....tasks.inputs.sources import Source
from ....tasks.publish.writing import VALUE_COLUMNS
from ....tasks.storage.folders import Folder
from ....tasks.update.programs.arcs import Rows
from ...frames.input_object import EdgeBatches
from ...frames.row_groups import FOLDER, write_rows

_STEP = 2**20
"""Rows that are made at once."""


def store_rows(rows: Rows, id_type: pa.DataType, ends: tuple[str, str], form: Form, folder: Folder) -> Source:
    """Write rows below `folder`, with the columns `ends` of ids, and open them. A vertex that no row has gets one from
    itself to itself. `form` says what the rows have. Raises UsageError, OutOfRoom.
    """
    if folder.is_local:
        Path(folder.url, FOLDER).mkdir(0o700)
    weights = form.weights if rows.weight is not None else None
    names = [*ends] if weights is None else [*ends, weights.column]
    types = [id_type, id_type] if weights is None else [id_type, id_type, pa.float64()]
    schema = pa.schema(list(zip(names, types, strict=True)))
    write_rows(folder, 0, EdgeBatches(schema, _batches(rows, schema)))
    files = folder.subfolder(FOLDER)
    return open_source(files.url, *ends, files.options, VALUE_COLUMNS, form=form)


def _batches(rows: Rows, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows, a few at a time: ids of a whole column may be more text than an array of Arrow holds."""
    alone = rows.alone
    source, target = (np.concatenate([end, alone]) for end in (rows.source, rows.target))
    weight = None if len(schema) == 2 or rows.weight is None else np.concatenate([rows.weight, np.zeros(len(alone))])
    for first in range(0, len(source), _STEP):
        piece = slice(first, first + _STEP)
        ends = [from_internal(identity.take(rows.ids, end[piece]), schema.field(0).type) for end in (source, target)]
        yield pa.record_batch(ends if weight is None else [*ends, pa.array(weight[piece])], schema=schema)
