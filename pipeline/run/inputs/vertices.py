"""The table of attributes of vertices that a run joins, opened by its footers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....tasks.inputs.sources import Source
from ...settings.models import Settings

if TYPE_CHECKING:
    from ....tasks.attributes import AttributeSource


def open_vertices(settings: Settings, source: Source) -> AttributeSource | None:
    """Open the attributes of vertices that the settings name, by their footers; None without such a setting.

    Raises InputError like `open_attributes`.
    """
    own = settings.input
    if own.vertices is None:
        return None
    from ....tasks.attributes import open_attributes  # loads the kernels

    return open_attributes(
        own.vertices,
        source.id_type,
        id_column=own.vertex_id,
        columns=own.vertex_columns,
        label=own.vertex_label,
        storage_options=own.storage_options,
        only_ids=own.isolated,
    )
