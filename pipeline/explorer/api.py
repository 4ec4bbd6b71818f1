"""The answers to the explorer's requests: parameters in, JSON or a file out. server.py lists the requests."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

import pyarrow as pa

from ...tasks.ids.display import display_id
from ..queries.attributes import label_column, labels_of
from ..queries.group_files import write_table
from ..queries.groups import find_dn_graph, groups_of, members_of
from ..queries.program_columns import value_text
from ..results.lookup import DNGraph, Vertex, parse_int64
from ..results.result import Result
from .drawing import draw
from .queries import ORDERS, BadRequest, Match, Queries, search
from .tree import as_json, branches, tree

MOST_MEMBERS = 1_000_000
"""Members of the largest DN-graph whose members are all sent."""


def some_members(queries: Queries, group: DNGraph, most: int) -> dict[str, Any]:
    """The first `most` stored members as JSON values: ids as text, and labels, null for a vertex without one."""
    ids = queries.members(group.id, min(most, group.vertices))
    return {"ids": [str(display_id(id)) for id in ids.to_pylist()], "labels": labels_of(queries.result, ids)}


def members_csv(queries: Queries, group: DNGraph) -> bytes:
    """All members with their attributes as CSV, as `edgemill members` writes them: most edges inside the group first.

    Raises BadRequest for more than MOST_MEMBERS members.
    """
    if group.vertices > MOST_MEMBERS:
        raise BadRequest(
            f"the DN-graph has {group.vertices:,} members, more than {MOST_MEMBERS:,}: "
            f"edgemill members {queries.result.place} {group.id} --output FILE writes them"
        )
    file = io.BytesIO()
    write_table(members_of(queries.result, find_dn_graph(queries.result, group.id)), file, "csv")
    return file.getvalue()


_MOST_DEPTH = 24
_MOST_ROWS = 200
_MOST_PATH = 1_000
_SOME_MEMBERS = 6
"""Members of each DN-graph in a list."""
_MOST_TEXT = 200
"""Longest text to search for, in characters."""


class NotFound(Exception):
    """The result does not have what the request asks for. The argument is the answer."""


@dataclass(frozen=True)
class File:
    """An answer that a browser saves as a file."""

    name: str
    media_type: str
    content: bytes


Parameters = dict[str, str]
"""Parameters of a request, by name."""
Handler = Callable[[Parameters], "dict[str, Any] | File"]


def parameters(query: str, known: set[str]) -> Parameters:
    """The parameters in a request's query string. Raises BadRequest for a name that is not in `known`."""
    try:
        pairs = parse_qsl(query, keep_blank_values=True, errors="strict", max_num_fields=10)
    except ValueError:  # UnicodeDecodeError too
        raise BadRequest("the parameters are not UTF-8, or there are too many") from None
    if len(dict(pairs)) < len(pairs):
        raise BadRequest("a parameter is given twice")
    for unknown in dict(pairs).keys() - known:
        raise BadRequest(f"there is no parameter {unknown[:80]!r}")
    return dict(pairs)


class Api:
    """The handlers of all requests to one result."""

    def __init__(self, result: Result) -> None:
        self._queries = Queries(result)
        self._result = result
        self.by_path: dict[str, tuple[Handler, set[str]]] = {
            "/api/result": (self._of_result, set()),
            "/api/hierarchy": (self._of_hierarchy, {"component", "depth", "most"}),
            "/api/vertex": (self._of_vertex, {"id"}),
            "/api/dn-graphs": (self._of_dn_graphs, {"by", "most"}),
            "/api/drawing": (self._of_drawing, {"dn_graph"}),
            "/api/search": (self._of_search, {"text"}),
            "/api/members": (self._of_members, {"dn_graph"}),
            "/members.csv": (self._members_file, {"dn_graph"}),
        }
        """Path → its handler and the names of its parameters."""

    def replaced(self) -> bool:
        """Whether another run has replaced the result since it was opened."""
        return self._result.is_replaced

    def _of_result(self, params: Parameters) -> dict[str, Any]:
        manifest = self._result.manifest
        assert manifest.dense is not None  # Queries requires it
        return {
            "name": self._result.place.absolute.rpartition("/")[2],
            "run": manifest.run,
            "finished": manifest.finished.isoformat(),
            "id_type": str(self._queries.id_type),
            "lambda": manifest.lam.max,
            "edges": manifest.counts.edges,
            "vertices": manifest.counts.vertices,
            "measure": manifest.measure,
            "triangles": manifest.counts.figures,
            "series": self._result.in_series,
            "labelled": label_column(self._result) is not None,
            **manifest.dense.model_dump(),
        }

    def _of_hierarchy(self, params: Parameters) -> dict[str, Any]:
        depth, most = _number(params, "depth", 1, _MOST_DEPTH), _number(params, "most", 100, _MOST_ROWS)
        if "component" not in params:
            return {"path": [], "node": tree(self._queries, None, depth, most)}
        path = self._queries.path(_id(params, "component"))
        if not path:
            raise NotFound({"error": "there is no such component"})
        above = [as_json(component) for component in branches(self._queries, path)]
        return {"path": above[-_MOST_PATH:], "node": tree(self._queries, path[0], depth, most)}

    def _of_vertex(self, params: Parameters) -> dict[str, Any]:
        id = self._queries.parse_vertex(_text(params, "id"))
        vertex = self._queries.vertex(id)
        if vertex is None:
            raise NotFound({"error": f"there is no vertex {display_id(id.as_py())}", "next": self._following(id)})
        groups = [] if vertex.component is None else self._queries.path(vertex.component)
        inner = self._queries.dn_graph(vertex.component) if vertex.component is not None else None
        return {
            "id": str(display_id(vertex.id)),
            "label": labels_of(self._result, [vertex.id])[0],
            "degree": vertex.degree,
            "triangles": vertex.triangles,
            "lambda": vertex.lam,
            "values": {name: value_text(value) for name, value in vertex.values.items()},
            "dn_graph": _dn_graph(inner) if inner else None,
            "groups": [as_json(group) for group in groups[:_MOST_PATH]],
            "larger": max(0, len(groups) - _MOST_PATH),
        }

    def _of_dn_graphs(self, params: Parameters) -> dict[str, Any]:
        by, most = params.get("by", ORDERS[0]), _number(params, "most", 50, _MOST_ROWS)
        if by not in ORDERS:
            raise BadRequest(f"by is one of {', '.join(ORDERS)}")
        assert self._result.manifest.dense is not None
        largest = [
            {**_dn_graph(group), "members": some_members(self._queries, group, _SOME_MEMBERS)}
            for group in self._queries.largest_dn_graphs(by, most)
        ]
        return {"count": self._result.manifest.dense.dn_graphs, "largest": largest}

    def _of_search(self, params: Parameters) -> dict[str, Any]:
        text = _text(params, "text").strip()
        if not 0 < len(text) <= _MOST_TEXT:
            raise BadRequest(f"text is 1 to {_MOST_TEXT} characters of an id or a label")
        try:
            id = self._queries.parse_vertex(text)
        except BadRequest:  # it can still be part of a label
            id = None
        matches = search(self._result, text, None if id is None else id.as_py())
        if not matches.found and (several := self._several(text)):
            common = groups_of(self._result, several, 1)
            group = as_json(common[0]) | {"dn_graph": common[0].dn_graph} if common else None
            labels = labels_of(self._result, [vertex.id for vertex in several])
            rows = [_row(Match(vertex, label), True) for vertex, label in zip(several, labels, strict=True)]
            return {"found": rows, "more": False, "group": group}
        if not matches.found:
            following = [] if id is None else self._following(id)
            raise NotFound({"error": f"no vertex has {text!r} in its {self._named_by}", "next": following})
        rows = [_row(match, text in (match.id, match.label)) for match in matches.found]
        return {"found": rows, "more": matches.more}

    def _several(self, text: str) -> list[Vertex]:
        """The vertices whose ids the text lists, with commas between them; empty unless it lists at least two."""
        ids = [part.strip() for part in text.split(",")]
        try:
            found = [self._queries.vertex(self._queries.parse_vertex(id)) for id in dict.fromkeys(ids)]
        except BadRequest:
            return []
        return [vertex for vertex in found if vertex] if len(found) > 1 and None not in found else []

    @property
    def _named_by(self) -> str:
        return "id" if label_column(self._result) is None else "id or label"

    def _following(self, id: pa.Scalar) -> list[str]:
        return [str(other) for other in self._queries.next_vertices(id, 5)]

    def _of_drawing(self, params: Parameters) -> dict[str, Any]:
        group = self._requested_dn_graph(params)
        return {"dn_graph": _dn_graph(group), **draw(self._queries, group)}

    def _of_members(self, params: Parameters) -> dict[str, Any]:
        group = self._requested_dn_graph(params)
        return {"count": group.vertices, **some_members(self._queries, group, MOST_MEMBERS)}

    def _members_file(self, params: Parameters) -> File:
        group = self._requested_dn_graph(params)
        return File(f"members-{group.id}.csv", "text/csv; charset=utf-8", members_csv(self._queries, group))

    def _requested_dn_graph(self, params: Parameters) -> DNGraph:
        group = self._queries.dn_graph(_id(params, "dn_graph"))
        if group is None:
            raise NotFound({"error": "there is no such DN-graph"})
        return group


def _row(match: Match, whole: bool) -> dict[str, Any]:
    """A vertex that a search found, as JSON values. `whole`: the text is its id or label, not a part of it."""
    found = {"id": match.id, "label": match.label, "lambda": match.vertex.lam, "degree": match.vertex.degree}
    return found | {"whole": whole}


def _dn_graph(group: DNGraph) -> dict[str, Any]:
    return {
        "id": str(group.id),
        "lambda": group.lam,
        "vertices": group.vertices,
        "edges": group.edges,
        "density": group.density,
        "triangles": group.triangles,
        "parent": None if group.parent is None else str(group.parent),
        "track": None if group.track is None else str(group.track),
    }


def _text(params: Parameters, name: str) -> str:
    if name not in params:
        raise BadRequest(f"the parameter {name} is missing")
    return params[name]


def _id(params: Parameters, name: str) -> int:
    try:
        return parse_int64(_text(params, name))
    except ValueError as error:
        raise BadRequest(f"{name}: {error}") from None


def _number(params: Parameters, name: str, default: int, most: int) -> int:
    text = params.get(name, str(default))
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and 1 <= int(text) <= most):
        raise BadRequest(f"{name} is a whole number from 1 to {most}")
    return int(text)
