"""Documents of BokehJS, written as JSON: models, references to models, and columns of values.

The format is that of `bokeh.document.Document.to_json` of Bokeh 3. Importing Bokeh's Python classes takes longer than
all other work of a small report, so tests alone use them: they read each chart back and write it again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.metadata import version
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

Model = dict[str, Any]
_NUMBERS = count(1)
"""Numbers of models. Charts of one page must not share any."""
_LARGEST = 2**53 - 1
"""Largest whole number that JavaScript has exactly; larger ones become floats, as in Bokeh."""


def model(name: str, **attributes: Any) -> Model:
    """A model of BokehJS with the attributes that differ from its defaults.

    BokehJS reads attributes in their order. A model is written where it comes first, and elsewhere as `reference`.
    """
    own: Model = {"type": "object", "name": name, "id": f"p{next(_NUMBERS)}"}
    return own | {"attributes": attributes} if attributes else own


def reference(to: Model) -> Model:
    """The place of a model that is written earlier."""
    return {"id": to["id"]}


def field(name: str) -> Model:
    """A value of a glyph that a column has for each mark."""
    return {"type": "field", "field": name}


def value(same: object) -> Model:
    """A value of a glyph that all its marks share."""
    return {"type": "value", "value": same}


def entries(pairs: Mapping[Any, Any]) -> Model:
    """A map."""
    return {"type": "map", "entries": [[key, own] for key, own in pairs.items()]}


def columns(named: Mapping[str, Sequence[Any]]) -> Model:
    """A source of columns for glyphs: texts, whole numbers and finite floats."""
    return model(
        "ColumnDataSource",
        selected=model("Selection", indices=[], line_indices=[]),
        selection_policy=model("UnionRenderers"),
        data=entries({name: [_plain(own) for own in values] for name, values in named.items()}),
    )


def renderer(source: Model, glyph: Model) -> Model:
    """Marks of one kind, one for each row of the source."""
    view = model("CDSView", filter=model("AllIndices"))
    return model("GlyphRenderer", data_source=source, view=view, glyph=glyph)


def item(root: Model) -> Model:
    """The argument of `Bokeh.embed.embed_item` for a document with one root."""
    config = model("DocumentConfig", notifications=model("Notifications"))
    doc = {"version": bokeh_version(), "title": "", "config": config, "roots": [root]}
    return {"target_id": None, "root_id": root["id"], "doc": doc, "version": doc["version"]}


@lru_cache(maxsize=1)
def bokeh_version() -> str:
    """The installed version."""
    return version("bokeh")


def bokeh_script() -> str:
    """The script of BokehJS, without widgets and tables."""
    found = find_spec("bokeh")
    assert found is not None and found.submodule_search_locations is not None  # a dependency
    (folder,) = found.submodule_search_locations
    return Path(folder, "server", "static", "js", "bokeh.min.js").read_text("utf-8")


def _plain(own: Any) -> object:
    if isinstance(own, int) and abs(own) > _LARGEST:
        return float(own)
    return own
