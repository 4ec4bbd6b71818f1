"""`edgemill generate`, with a command for each kind of graph."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from ..terminal import tell
from .options import debug

__all__ = ["generate"]


@click.group()
def generate() -> None:
    """Write a made-up graph as Parquet: columns src and dst, int64."""


def _whole(name: str, default: int | None = None) -> click.Option:
    shown: dict[str, Any] = {"required": True} if default is None else {"default": default, "show_default": True}
    return click.Option([f"--{name}"], type=int, **shown)


def _share(name: str, default: float) -> click.Option:
    return click.Option([f"--{name}"], type=float, default=default, show_default=True)


_KINDS: dict[str, tuple[str, list[click.Option]]] = {
    "rmat": (
        "2^scale vertices and edge-factor rows for each, drawn recursively; duplicates and self-loops stay.",
        [
            *(_whole("scale"), _whole("edge-factor", 16)),
            *(_share("a", 0.57), _share("b", 0.19), _share("c", 0.19)),
            click.Option(["--permute"], is_flag=True, help="Scramble the vertex ids."),
        ],
    ),
    "erdos-renyi": ("Edges between random pairs.", [_whole("vertices"), _whole("edges")]),
    "planted-cliques": (
        "Disjoint cliques in a random background.",
        [_whole("vertices"), _whole("edges"), _whole("cliques"), _whole("clique-size")],
    ),
    "communities": (
        "Cliques that overlap where they come to lie near each other.",
        [
            *(_whole("vertices"), _whole("communities"), _whole("community-size"), _whole("spread", 2)),
            click.Option(["--permute"], is_flag=True, help="Scramble the vertex ids."),
        ],
    ),
    "grid": ("A lattice with a diagonal in each cell, λ = 1.", [_whole("width"), _whole("height")]),
    "chain": ("A strip of triangles, λ = 1.", [_whole("triangles")]),
    "star": ("One centre and its leaves, λ = 0.", [_whole("leaves")]),
    "clique": ("All pairs of n vertices, λ = n - 2.", [_whole("vertices")]),
}


def _generate(kind: str, output: str, files: int, seed: int, **parameters: Any) -> None:
    from ...tasks.generate import generate as write

    paths = write(kind, output, files, seed, **parameters)
    tell(f"{kind}: {len(paths)} files in {output}")


for _kind, (_help, _parameters) in _KINDS.items():
    _common = [
        _whole("seed", 1),
        _whole("files", 1),
        click.Option(["--output"], required=True, metavar="DIR", help="New or empty folder."),
    ]
    _command = click.Command(_kind, params=[*_parameters, *_common], callback=partial(_generate, _kind), help=_help)
    generate.add_command(debug(_command))
