"""The fates of groups between two results, by definition: all pairs of member sets are compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from edgemill.pipeline import Result
from edgemill.tasks.tracks import Fates

Groups = Mapping[Any, frozenset[Any]]


def groups_of(result: Result, key: str = "id") -> dict[int, frozenset[Any]]:
    """The members of each DN-graph of a result, by its id or its track."""
    rows = result.dn_graph_members.to_table().to_pylist()
    names = {row["id"]: row[key] for row in result.dn_graphs.to_table().to_pylist()}
    return {
        name: frozenset(row["vertex"] for row in rows if row["dn_graph"] == number) for number, name in names.items()
    }


def partners(old: Groups, new: Groups) -> dict[Any, Any]:
    """The old group that each new group continues: they share more than half of the union of their members."""
    found: dict[Any, Any] = {}
    for b, now in new.items():
        for a, then in old.items():
            if 2 * len(then & now) > len(then | now):
                assert b not in found and a not in found.values(), "two partners"
                found[b] = a
    return found


def fates(old: Groups, new: Groups) -> tuple[Fates, dict[Any, tuple[str, Any]], dict[Any, tuple[str, Any]]]:
    """Counts, and for each ended old group and each new group its fate and its partner."""
    same = partners(old, new)
    into = {a: [b for b in new if 2 * len(old[a] & new[b]) > len(old[a])] for a in old}
    out_of = {b: [a for a in old if 2 * len(old[a] & new[b]) > len(new[b])] for b in new}
    merges = {b for b in new if sum(found == [b] for found in into.values()) > 1}
    splits = {a for a in old if sum(found == [a] for found in out_of.values()) > 1}
    ended: dict[Any, tuple[str, Any]] = {}
    for a in old.keys() - same.values():
        if set(into[a]) & merges:
            ended[a] = "merged", into[a][0]
        else:
            ended[a] = ("split" if a in splits else "died"), None
    began: dict[Any, tuple[str, Any]] = {}
    for b in new.keys() - same.keys():
        if set(out_of[b]) & splits:
            began[b] = "split", out_of[b][0]
        else:
            began[b] = ("merged" if b in merges else "born"), None
    counts = Fates(
        continued=len(same),
        grown=sum(len(new[b]) > len(old[a]) for b, a in same.items()),
        shrunk=sum(len(new[b]) < len(old[a]) for b, a in same.items()),
        born=sum(fate == "born" for fate, _ in began.values()),
        died=sum(fate == "died" for fate, _ in ended.values()),
        merged=len(merges),
        split=len(splits),
    )
    return counts, ended, began
