"""`edgemill generate`, with one command per kind of graph."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from ..messages.terminal import echo
from .options import debug


@click.group()
def generate() -> None:
    """Write a synthetic graph as Parquet.

    The columns src and dst are int64.
    """


def _integer_option(name: str, default: int | None = None) -> click.Option:
    shown: dict[str, Any] = {"required": True} if default is None else {"default": default, "show_default": True}
    return click.Option([f"--{name}"], type=int, **shown)


def _probability_option(name: str, default: float) -> click.Option:
    return click.Option([f"--{name}"], type=float, default=default, show_default=True)


_KINDS: dict[str, tuple[str, list[click.Option]]] = {
    "rmat": (
        "R-MAT: 2^scale vertices and edge-factor rows per vertex, with duplicates and self-loops.",
        [
            *(_integer_option("scale"), _integer_option("edge-factor", 16)),
            *(_probability_option("a", 0.57), _probability_option("b", 0.19), _probability_option("c", 0.19)),
            click.Option(["--permute"], is_flag=True, help="Permute the vertex ids."),
        ],
    ),
    "erdos-renyi": (
        "Erdős-Rényi: edges between random pairs.",
        [_integer_option("vertices"), _integer_option("edges")],
    ),
    "planted-cliques": (
        "Disjoint cliques in a random background.",
        [
            _integer_option("vertices"),
            _integer_option("edges"),
            _integer_option("cliques"),
            _integer_option("clique-size"),
        ],
    ),
    "two-sided": (
        "Rows of two sides, for --two-sided: groups that are joined completely, in a random background.",
        [
            *(_integer_option("left"), _integer_option("right"), _integer_option("edges")),
            *(_integer_option("groups"), _integer_option("group-left"), _integer_option("group-right")),
        ],
    ),
    "communities": (
        "Cliques at random positions; neighbouring cliques overlap.",
        [
            *(
                _integer_option("vertices"),
                _integer_option("communities"),
                _integer_option("community-size"),
                _integer_option("spread", 2),
            ),
            click.Option(["--permute"], is_flag=True, help="Permute the vertex ids."),
        ],
    ),
    "grid": ("A grid with a diagonal in each cell; λ = 1.", [_integer_option("width"), _integer_option("height")]),
    "chain": ("A strip of triangles; λ = 1.", [_integer_option("triangles")]),
    "star": ("One centre and its leaves; λ = 0.", [_integer_option("leaves")]),
    "clique": ("All pairs of n vertices; λ = n - 2.", [_integer_option("vertices")]),
}


def _generate(kind: str, output: str, files: int, seed: int, **parameters: Any) -> None:
    from ...tasks.generate import generate as write

    paths = write(kind, output, files, seed, **parameters)
    echo(f"{kind}: {len(paths)} files in {output}")


for _kind, (_help, _parameters) in _KINDS.items():
    _common = [
        _integer_option("seed", 1),
        _integer_option("files", 1),
        click.Option(["--output"], required=True, metavar="DIR", help="New or empty folder."),
    ]
    _command = click.Command(_kind, params=[*_parameters, *_common], callback=partial(_generate, _kind), help=_help)
    generate.add_command(debug(_command))
