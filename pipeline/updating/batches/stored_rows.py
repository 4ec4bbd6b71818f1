"""Rows of a graph as the files of an input."""

from __future__ import annotations

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


def store_rows(rows: Rows, id_type: pa.DataType, ends: tuple[str, str], form: Form, folder: Folder) -> Source:
    """Write rows below `folder`, with the columns `ends` of ids, and open them. A vertex that no row has gets one from
    itself to itself. `form` says what the rows have. Raises UsageError, OutOfRoom.
    """
    if folder.is_local:
        Path(folder.url, FOLDER).mkdir(0o700)
    alone = rows.alone
    columns = [
        from_internal(identity.take(rows.ids, np.concatenate([end, alone])), id_type)
        for end in (rows.source, rows.target)
    ]
    names = list(ends)
    if rows.weight is not None and form.weights is not None:
        columns.append(pa.array(np.concatenate([rows.weight, np.zeros(len(alone))])))
        names.append(form.weights.column)
    stored = pa.record_batch(columns, names=names)
    write_rows(folder, 0, EdgeBatches(stored.schema, iter([stored])))
    files = folder.subfolder(FOLDER)
    return open_source(files.url, *ends, files.options, VALUE_COLUMNS, form=form)
