"""The page: one HTML file that loads nothing from the network, whatever the result contains.

Jinja escapes all text. The Content-Security-Policy in the page's head lets the browser run the page's two scripts,
identified by their SHA-256, and load nothing else. Notices at the top tell of dropped rows, graphs without triangles
and assumptions about the input.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import replace
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from ...tasks.storage.passwords import without_passwords
from ..messages.wording import one_line
from ..output.manifest import Counts, DenseRecord, Manifest
from ..results.result import Result
from . import run_sections
from .charts import bokeh_script
from .graph_sections import dense, programs
from .parts import Fact, Section, clipped, counted, duration, number, share

if TYPE_CHECKING:
    from .changes import SinceLastNight

MOST_OF_A_NOTE = 1000
"""Characters. A note ends with advice, after names of columns and files."""


def notices(manifest: Manifest) -> list[str]:
    """Sentences, most important first. Empty if every row became an edge and the graph has triangles."""
    counts = manifest.counts
    return [
        *_triangles(counts),
        *_dropped(counts),
        *(f"{note[:1].upper()}{note[1:]}." for note in _notes(manifest)),
    ]


def _notes(manifest: Manifest) -> list[str]:
    """The manifest's notes about the input, without the note about missing triangles, which `_triangles` covers."""
    return [
        clipped(note, MOST_OF_A_NOTE)
        for note in manifest.input.notes
        if not note.startswith("no edge is in a triangle")
    ]


def _triangles(counts: Counts) -> list[str]:
    if counts.triangles != 0:
        return []
    if not counts.edges:
        return ["The graph has no edges, so it has no dense groups."]
    return [
        "The graph has no triangle, so λ of every edge is 0 and there are no dense groups. "
        "Does each row link two kinds of things, such as people and films? Then no row links two things of the same "
        "kind, and no triangle can exist. Run again with --two-sided, which finds dense groups by butterflies."
    ]


def _dropped(counts: Counts) -> list[str]:
    kinds = {
        ("repeats an edge, in either direction", "repeat an edge, in either direction"): counts.duplicates,
        ("links a vertex to itself", "link a vertex to itself"): counts.self_loops,
        ("has a null in place of an id", "have a null in place of an id"): counts.nulls_dropped,
        ("does not meet the condition", "do not meet the condition"): counts.filtered,
    }
    found = [f"{number(count)} {one if count == 1 else more}" for (one, more), count in kinds.items() if count]
    if not found:
        return []
    dropped = counts.rows - counts.edges
    of = f"{counted(dropped, 'row')} of {number(counts.rows)} ({share(dropped, counts.rows)})"
    return [f"{of} {'was' if dropped == 1 else 'were'} not used: {'; '.join(found)}."]


def _lead(manifest: Manifest) -> tuple[str, ...]:
    """An introduction for readers who do not know λ."""
    if not manifest.has_lambda:
        return ()
    what = "In a group of λ = 5, every edge forms triangles with at least 5 other members."
    if manifest.input.two_sided:
        first, second = clipped(manifest.input.source_column), clipped(manifest.input.target_column)
        what = (
            f"Every edge joins {first} and {second}. In a group of λ = 5, every edge is in at least 5 butterflies of "
            "the group: complete subgraphs of two vertices on each side."
        )
    return (
        "This page shows the dense groups of a graph. A dense group is a set of vertices with many more edges among "
        "themselves than to the rest of the graph.",
        f"λ (lambda) measures how dense a group is. {what}",
    )


def page(result: Result, location: str, since: SinceLastNight | None = None) -> bytes:
    """The report of a result as UTF-8 HTML.

    `location` is the path or URL that the result has, or will have once it is published. `since` is the comparison with
    the night before, if there is one. Raises InputError for damage.
    """
    manifest = result.manifest
    shown = [*(dense(result, location) if manifest.has_lambda else []), *programs(result)]
    if since is not None:
        from .changes import changes

        shown.insert(2, changes(since))
    scripts = [Markup(text) for text in (bokeh_script(), _file("report.js"))]
    pages = Environment(
        loader=FunctionLoader(_file), autoescape=True, undefined=StrictUndefined, trim_blocks=True, finalize=_visible
    )
    pages.policies["json.dumps_kwargs"] = {}  # sorted keys would put references to Bokeh's models before the models
    html = pages.get_template("report.html").render(
        place=without_passwords(location),
        name=clipped(PurePosixPath(without_passwords(location)).name),
        manifest=manifest,
        made=datetime.now(UTC),
        lead=_lead(manifest),
        state=_state(manifest),
        notices=notices(manifest),
        facts=_facts(manifest),
        sections=shown,
        folded=_run_sections(manifest),
        style=Markup(_file("report.css")),
        scripts=scripts,
        policy=_policy(scripts),
    )
    return html.encode()


def _run_sections(manifest: Manifest) -> list[Section]:
    """The sections about the run, closed at the end of the page."""
    bounding = (run_sections.bounding, run_sections.partitions) if manifest.has_lambda else ()
    makers = (run_sections.read, run_sections.stages, *bounding, run_sections.plan, run_sections.settings)
    return [replace(make(manifest), folded=True) for make in makers]


def _visible(value: object) -> object:
    """A value that Jinja is about to insert; text becomes one line with visible control characters."""
    return one_line(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _state(manifest: Manifest) -> str:
    """Whether a limit ended the run, as a sentence."""
    if manifest.converged:
        what = "λ of every edge is exact" if manifest.has_lambda else "every program ended by itself"
        return f"Converged: {what}."
    left = [f"{number(manifest.unsettled)} edges have an interval instead of an exact λ"]
    left = left[manifest.exact or not manifest.has_lambda :]
    left += [
        f"{one.name} ended after {counted(one.supersteps, 'superstep')}"
        for one in manifest.programs
        if not one.converged
    ]
    return f"Not converged: {'; '.join(left)}."


def _facts(manifest: Manifest) -> list[Fact]:
    counts, record = manifest.counts, manifest.dense
    dropped = counts.rows - counts.edges
    facts = [
        Fact("edges", number(counts.edges), f"of {number(counts.rows)} rows" if dropped else ""),
        Fact("vertices", number(counts.vertices)),
    ]
    if (found := counts.figures) is not None:
        high = "" if manifest.lambda_high is None else f" to {number(manifest.lambda_high.max)}"
        facts += [Fact(manifest.measure, number(found)), Fact("highest λ", f"{number(manifest.lam.max)}{high}")]
    if record is not None:
        facts.append(_groups(record, counts.vertices))
    return [*facts, Fact("time", duration(manifest.seconds), clipped(manifest.device))]


def _groups(record: DenseRecord, vertices: int) -> Fact:
    inside = share(record.members, vertices)
    return Fact("dense groups", number(record.dn_graphs), f"with {inside} of the vertices" if record.members else "")


def _file(name: str) -> str:
    return files("edgemill.pipeline.report").joinpath(name).read_text("utf-8")


def _policy(scripts: list[Markup]) -> str:
    hashes = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    ours = " ".join(f"'sha256-{digest}'" for digest in hashes)
    load = f"default-src 'none'; script-src {ours}; style-src 'unsafe-inline'; img-src data:"
    return f"{load}; base-uri 'none'; form-action 'none'"
