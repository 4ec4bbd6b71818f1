"""BokehJS's models as the JSON that it reads, and where its script is.

Bokeh's classes in Python write the same, but take 0.4 s of each run to import. A test has them read what is written
here. The names of models and their attributes are those of Bokeh's reference.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any

from bokeh import __version__
from bokeh.util.paths import bokehjs_path

__all__ = ["Model", "Models", "again", "bokeh_script", "document", "field", "mapping", "value"]

Model = dict[str, Any]
"""An object with its attributes, or, from its second use on, its id alone."""


class Models:
    """Makes the models of one document."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def make(self, name: str, **attributes: Any) -> Model:
        """A model; attributes that are left out are as BokehJS has them."""
        return {"type": "object", "name": name, "id": f"p{next(self._numbers)}", "attributes": attributes}


def again(model: Model) -> Model:
    """A model that stands elsewhere in the document, before this."""
    return {"id": model["id"]}


def field(name: str) -> Model:
    """What is in a column."""
    return {"type": "field", "field": name}


def value(given: object) -> Model:
    """The same for all rows."""
    return {"type": "value", "value": given}


def mapping(entries: Mapping[Any, Any]) -> Model:
    """A mapping, of which the keys need not be text."""
    return {"type": "map", "entries": [[key, given] for key, given in entries.items()]}


def document(root: Model) -> dict[str, Any]:
    """A document of one root, as `Bokeh.embed.embed_item` takes it."""
    return {
        "target_id": None,
        "root_id": root["id"],
        "doc": {"version": __version__, "title": "", "config": None, "roots": [root]},
        "version": __version__,
    }


def bokeh_script() -> str:
    """BokehJS without widgets and tables."""
    return (bokehjs_path() / "js" / "bokeh.min.js").read_text("utf-8")
