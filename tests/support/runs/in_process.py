"""The command `edgemill`, called in the process of the tests."""

from __future__ import annotations

from click.testing import CliRunner, Result

from edgemill.pipeline.cli import edgemill


def call(*arguments: object) -> Result:
    """What the command answers to these arguments, as text: its exit code, stdout and stderr."""
    return CliRunner().invoke(edgemill, [str(argument) for argument in arguments])
