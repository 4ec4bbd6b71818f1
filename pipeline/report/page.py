"""The page: one HTML file that asks the network for nothing, whatever is in the result.

Jinja escapes all text. The policy in the page's head lets the browser run our two scripts, known by their SHA-256, and
load nothing.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import replace
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import PurePosixPath

from bokeh.util.paths import bokehjs_path
from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from ...tasks.passwords import without_passwords
from ..escaping import one_line
from ..manifest import DenseRecord, Manifest
from ..result import Result
from . import sections
from .changes import Before, changes
from .dense import dense
from .notices import notices
from .parts import Fact, Section, clipped, duration, number, share

__all__ = ["page"]

LEAD = (
    "This page shows the dense groups of a graph: sets of vertices that are far more tightly linked with each other "
    "than with the rest.",
    "λ (lambda) says how tight: in a group of λ = 5 every link closes a triangle with at least 5 other members, so the "
    "larger λ, the tighter the group.",
)
"""For a reader who has not heard of λ."""


def page(result: Result, place: str, before: Before | None = None) -> bytes:
    """The report of a result, as UTF-8 HTML; `place` is where the result is, or will be. Raises InputError.

    `before` is of the night before, if there is one.
    """
    manifest = result.manifest
    shown = dense(result, place)
    scripts = [Markup(text) for text in (_bokeh(), _file("report.js"))]
    pages = Environment(
        loader=FunctionLoader(_file), autoescape=True, undefined=StrictUndefined, trim_blocks=True, finalize=_visible
    )
    pages.policies["json.dumps_kwargs"] = {}  # sorted keys would put uses of Bokeh's models before what they are
    html = pages.get_template("report.html").render(
        place=without_passwords(place),
        name=clipped(PurePosixPath(without_passwords(place)).name),
        manifest=manifest,
        made=datetime.now(UTC),
        lead=LEAD,
        notices=notices(manifest),
        facts=_facts(manifest),
        sections=[*shown[:2], *([] if before is None else [changes(before)]), *shown[2:]],
        folded=_of_the_run(manifest),
        style=Markup(_file("report.css")),
        scripts=scripts,
        policy=_policy(scripts),
    )
    return html.encode()


def _of_the_run(manifest: Manifest) -> list[Section]:
    """What the page says of the run, folded away at its end."""
    makers = (
        sections.read,
        sections.stages,
        sections.bounding,
        sections.partitions,
        sections.plan,
        sections.settings,
    )
    return [replace(make(manifest), folded=True) for make in makers]


def _visible(value: object) -> object:
    """What Jinja puts into the page, where it is text of ours or of the result."""
    return one_line(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _facts(manifest: Manifest) -> list[Fact]:
    counts, record = manifest.counts, manifest.dense
    top = number(manifest.lam.max)
    if manifest.lambda_high is not None:
        top = f"{top} to {number(manifest.lambda_high.max)}"
    dropped = counts.rows - counts.edges
    return [
        Fact("edges", number(counts.edges), f"of {number(counts.rows)} rows" if dropped else ""),
        Fact("vertices", number(counts.vertices)),
        Fact("triangles", number(counts.triangles)),
        Fact("highest λ", top),
        *([] if record is None else [_groups(record, counts.vertices)]),
        Fact("time", duration(manifest.seconds), clipped(manifest.device)),
    ]


def _groups(record: DenseRecord, vertices: int) -> Fact:
    inside = share(record.members, vertices)
    return Fact("dense groups", number(record.dn_graphs), f"with {inside} of the vertices" if record.members else "")


def _bokeh() -> str:
    """BokehJS without widgets and tables."""
    return (bokehjs_path() / "js" / "bokeh.min.js").read_text("utf-8")


def _file(name: str) -> str:
    return files("edgemill.pipeline.report").joinpath(name).read_text("utf-8")


def _policy(scripts: list[Markup]) -> str:
    hashes = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    ours = " ".join(f"'sha256-{digest}'" for digest in hashes)
    load = f"default-src 'none'; script-src {ours}; style-src 'unsafe-inline'; img-src data:"
    return f"{load}; base-uri 'none'; form-action 'none'"
