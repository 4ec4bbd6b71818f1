"""The groups of an earlier result that a program begins with, for the vertices of the graph of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...tasks.ids import identity
from ...tasks.ids.display import are_same, type_name
from ...tasks.ids.id_types import to_internal
from ...tasks.ingest.numbering import BucketIds
from ...tasks.programs import GraphProgram, ProgramOutcome
from ...tasks.programs.program import level_names
from ..results.listed_groups import listed_groups
from ..results.result import Result
from ..settings.declared_programs import DeclaredProgram
from ..settings.models import Settings


def begins_with(
    result: Result | None, declared: DeclaredProgram, program: Any, settings: Settings, id_type: pa.DataType
) -> Result | None:
    """The result with whose groups a program begins; None if it does not, or if the result does not have groups of the
    same program, with the same parameters, for ids of this type.
    """
    if result is None or not (isinstance(program, GraphProgram) and program.begins_with_groups):
        return None
    manifest = result.manifest
    record = next((own for own in manifest.programs if own.name == declared.name), None)
    if record is None or not record.converged or record.group_column is None:
        return None
    same = record.parameters == settings.parameters_of(declared.name) and record.sha256 == declared.sha256
    return result if same and are_same(manifest.input.id_type, type_name(id_type)) else None


def groups_before(result: Result, name: str, buckets: Sequence[BucketIds]) -> ProgramOutcome:
    """Task: the groups of a program in an earlier result as `run_program` takes them, for the vertices of all buckets.

    Reads two columns of the table of vertices and the table of groups, and has all ids in memory. Raises InputError for
    damage.
    """
    record = result.groups_record(name)
    with result.reading():
        table = result.vertices.to_table(columns=["id", str(record.group_column)]).combine_chunks()
    now = identity.concatenate([identity.to_host(own.ids) for own in buckets])
    every, of_before, of_now = identity.encode(to_internal(table["id"], table["id"].type), now)
    place = np.full(len(every), -1, np.int64)
    place[of_before] = np.arange(len(of_before))
    at, innermost = place[of_now], table[1]
    levels = []
    for level in range(1, record.facts["levels"] + 1):
        label = _labels(listed_groups(result, name, level).of_vertices(innermost))
        levels.append(np.where(at < 0, -1, np.append(label, -1)[at]))
    state = dict(zip(level_names(len(levels)), levels, strict=True))
    number = np.arange(len(at))
    return ProgramOutcome(0, number, state, 0, False, 0, 0, 0, facts=record.facts, levels=len(levels))


def _labels(groups: pa.Array | pa.ChunkedArray) -> NDArray[np.int64]:
    """[vertices] a number for each group, and another one for each vertex in none."""
    known = groups.is_valid().to_numpy(zero_copy_only=False)
    found = np.arange(len(groups)) + len(groups)
    found[known] = np.unique(groups.drop_null().to_numpy(zero_copy_only=False), return_inverse=True)[1]
    return found
