"""Command lines in scripts, manifests and pages, held to what the commands take."""

from __future__ import annotations

import click

DASK_CUDA = frozenset(
    {
        "--dashboard-address",
        "--death-timeout",
        "--interface",
        "--local-directory",
        "--memory-limit",
        "--name",
        "--no-dashboard",
        "--nthreads",
        "--preload",
        "--resources",
        "--scheduler-file",
        "--tls-ca-file",
        "--tls-cert",
        "--tls-key",
    }
)
"""Options of `dask cuda worker` in dask-cuda 26.10, which CI does not have: those that we use."""


def accepted(command: click.Command, arguments: list[str]) -> dict[str, object]:
    """What a command makes of its arguments, with none left over."""
    context = command.make_context("dask", list(arguments))
    assert not context.args
    assert not context.params.get("preload_argv")
    return context.params


def accepted_by_dask_cuda(arguments: list[str]) -> dict[str, str]:
    """The options among the arguments of `dask cuda worker`, and their values, after `=` or as the next word."""
    found: dict[str, str] = {}
    for place, word in enumerate(arguments):
        if word.startswith("--"):
            name, equals, value = word.partition("=")
            assert name in DASK_CUDA
            found[name] = value if equals or place + 1 == len(arguments) else arguments[place + 1]
    return found
