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
from ..queries.groups import groups_of, members_of
from ..queries.program_columns import value_text
from ..results.lookup import Group, Vertex, parse_int64
from ..results.result import Result
from ..settings.declared_programs import LAMBDA
from .drawing import draw
from .queries import BadRequest, DrawnGroup, Match, Queries, kinds_of, search
from .tree import as_json, branches, tree

MOST_MEMBERS = 1_000_000
"""Members of the largest group whose members are all sent."""


def members_as_json(result: Result, ids: pa.Array) -> dict[str, Any]:
    """Members as JSON values: ids as text, and labels, null for a vertex without one."""
    return {"ids": [str(display_id(id)) for id in ids.to_pylist()], "labels": labels_of(result, ids)}


def members_csv(result: Result, group: Group) -> bytes:
    """All members with their attributes as CSV, as `edgemill members` writes them: most edges inside the group first.

    Raises BadRequest for more than MOST_MEMBERS members.
    """
    if group.vertices > MOST_MEMBERS:
        kind = "" if group.groups == LAMBDA else f" --groups {group.groups}"
        raise BadRequest(
            f"the group has {group.vertices:,} members, more than {MOST_MEMBERS:,}: "
            f"edgemill members {result.place} {group.component}{kind} --output FILE writes them"
        )
    file = io.BytesIO()
    write_table(members_of(result, group), file, "csv")
    return file.getvalue()


_MOST_DEPTH = 24
_MOST_ROWS = 200
_MOST_PATH = 1_000
_SOME_MEMBERS = 6
"""Members of each group in a list."""
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
        self._result = result
        self._by_kind = {kind: Queries(result, kind) for kind in kinds_of(result)}
        handlers: dict[str, tuple[Handler, set[str]]] = {
            "/api/result": (self._of_result, set()),
            "/api/hierarchy": (self._of_hierarchy, {"component", "depth", "most"}),
            "/api/vertex": (self._of_vertex, {"id"}),
            "/api/largest": (self._of_largest, {"by", "most"}),
            "/api/drawing": (self._of_drawing, {"group"}),
            "/api/search": (self._of_search, {"text"}),
            "/api/members": (self._of_members, {"group"}),
            "/members.csv": (self._members_file, {"group"}),
        }
        self.by_path = {path: (handler, {*own, "groups"}) for path, (handler, own) in handlers.items()}
        """Path → its handler and the names of its parameters."""

    def replaced(self) -> bool:
        """Whether another run has replaced the result since it was opened."""
        return self._result.is_replaced

    def _queries(self, params: Parameters) -> Queries:
        """The queries of the groups that a request names, by default those of λ."""
        kind = params.get("groups", LAMBDA)
        if kind not in self._by_kind:
            raise BadRequest(f"groups is one of {', '.join(self._by_kind)}")
        return self._by_kind[kind]

    def _of_result(self, params: Parameters) -> dict[str, Any]:
        manifest, queries = self._result.manifest, self._queries(params)
        return {
            "name": self._result.place.absolute.rpartition("/")[2],
            "run": manifest.run,
            "finished": manifest.finished.isoformat(),
            "id_type": str(queries.id_type),
            "lambda": manifest.lam.max,
            "edges": manifest.counts.edges,
            "vertices": manifest.counts.vertices,
            "measure": manifest.measure,
            "triangles": manifest.counts.figures,
            "series": self._result.in_series,
            "labelled": label_column(self._result) is not None,
            "kinds": list(self._by_kind),
            "orders": list(queries.orders),
            "groups": queries.count,
            "components": queries.components,
        }

    def _of_hierarchy(self, params: Parameters) -> dict[str, Any]:
        queries = self._queries(params)
        depth, most = _number(params, "depth", 1, _MOST_DEPTH), _number(params, "most", 100, _MOST_ROWS)
        if "component" not in params:
            return {"path": [], "node": tree(queries, None, depth, most)}
        path = queries.path(_id(params, "component"))
        if not path:
            raise NotFound({"error": "there is no such component"})
        above = [as_json(component) for component in branches(queries, path)]
        return {"path": above[-_MOST_PATH:], "node": tree(queries, path[0], depth, most)}

    def _of_vertex(self, params: Parameters) -> dict[str, Any]:
        queries = self._queries(params)
        id = queries.parse_vertex(_text(params, "id"))
        vertex = queries.vertex(id)
        if vertex is None:
            following = _following(queries, id)
            raise NotFound({"error": f"there is no vertex {display_id(id.as_py())}", "next": following})
        inner = queries.innermost(vertex)
        groups = [] if inner is None else queries.path(inner)
        listed = queries.listed_group(vertex)
        return {
            "id": str(display_id(vertex.id)),
            "label": labels_of(self._result, [vertex.id])[0],
            "degree": vertex.degree,
            "triangles": vertex.triangles,
            "lambda": vertex.lam,
            "values": {name: value_text(value) for name, value in vertex.values.items()},
            "listed": _drawn(listed) if listed else None,
            "groups": [as_json(group) for group in groups[:_MOST_PATH]],
            "larger": max(0, len(groups) - _MOST_PATH),
        }

    def _of_largest(self, params: Parameters) -> dict[str, Any]:
        queries = self._queries(params)
        by, most = params.get("by", queries.orders[0]), _number(params, "most", 50, _MOST_ROWS)
        if by not in queries.orders:
            raise BadRequest(f"by is one of {', '.join(queries.orders)}")
        found = queries.largest(by, most)
        members = queries.some_members([drawn.group for drawn in found], _SOME_MEMBERS)
        largest = [
            {**_drawn(drawn), "members": members_as_json(self._result, ids)}
            for drawn, ids in zip(found, members, strict=True)
        ]
        return {"count": queries.count, "largest": largest}

    def _of_search(self, params: Parameters) -> dict[str, Any]:
        queries = self._queries(params)
        text = _text(params, "text").strip()
        if not 0 < len(text) <= _MOST_TEXT:
            raise BadRequest(f"text is 1 to {_MOST_TEXT} characters of an id or a label")
        try:
            id = queries.parse_vertex(text)
        except BadRequest:  # it can still be part of a label
            id = None
        matches = search(self._result, text, None if id is None else id.as_py())
        if not matches.found and (several := _several(queries, text)):
            common = groups_of(self._result, several, 1, queries.groups)
            group = as_json(common[0]) | {"dn_graph": common[0].dn_graph} if common else None
            labels = labels_of(self._result, [vertex.id for vertex in several])
            rows = [_row(Match(vertex, label), True) for vertex, label in zip(several, labels, strict=True)]
            return {"found": rows, "more": False, "group": group}
        if not matches.found:
            following = [] if id is None else _following(queries, id)
            raise NotFound({"error": f"no vertex has {text!r} in its {self._named_by}", "next": following})
        rows = [_row(match, text in (match.id, match.label)) for match in matches.found]
        return {"found": rows, "more": matches.more}

    @property
    def _named_by(self) -> str:
        return "id" if label_column(self._result) is None else "id or label"

    def _of_drawing(self, params: Parameters) -> dict[str, Any]:
        drawn = self._requested_group(params)
        return {"group": _drawn(drawn), **draw(self._queries(params), drawn.group)}

    def _of_members(self, params: Parameters) -> dict[str, Any]:
        group = self._requested_group(params).group
        members = self._queries(params).members(group, MOST_MEMBERS)
        return {"count": group.vertices, **members_as_json(self._result, members)}

    def _members_file(self, params: Parameters) -> File:
        group = self._requested_group(params).group
        content = members_csv(self._result, group)
        return File(f"members-{group.component}.csv", "text/csv; charset=utf-8", content)

    def _requested_group(self, params: Parameters) -> DrawnGroup:
        queries = self._queries(params)
        drawn = queries.drawn_group(_id(params, "group"))
        if drawn is None:
            raise NotFound({"error": f"there is no such {'DN-graph' if queries.of_lambda else 'group'}"})
        return drawn


def _several(queries: Queries, text: str) -> list[Vertex]:
    """The vertices whose ids the text lists, with commas between them; empty unless it lists at least two."""
    ids = [part.strip() for part in text.split(",")]
    try:
        found = [queries.vertex(queries.parse_vertex(id)) for id in dict.fromkeys(ids)]
    except BadRequest:
        return []
    return [vertex for vertex in found if vertex] if len(found) > 1 and None not in found else []


def _following(queries: Queries, id: pa.Scalar) -> list[str]:
    return [str(other) for other in queries.next_vertices(id, 5)]


def _row(match: Match, whole: bool) -> dict[str, Any]:
    """A vertex that a search found, as JSON values. `whole`: the text is its id or label, not a part of it."""
    found = {"id": match.id, "label": match.label, "lambda": match.vertex.lam, "degree": match.vertex.degree}
    return found | {"whole": whole}


def _drawn(drawn: DrawnGroup) -> dict[str, Any]:
    return as_json(drawn.group) | {
        "density": drawn.density,
        "triangles": drawn.triangles,
        "track": None if drawn.track is None else str(drawn.track),
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
