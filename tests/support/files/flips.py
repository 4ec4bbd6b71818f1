"""Commands on Parquet files with one flipped bit in the footer, in a process that may crash."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_LENGTH_BYTES = 8
"""Bytes of the footer's length and the magic word PAR1."""


@dataclass(frozen=True)
class Ended:
    """How a command ended on a file with one flipped bit."""

    bit: int
    """Index of the bit in the footer."""
    code: int
    """Exit code; minus the number of a signal that ended the process."""
    message: str
    left: list[str]
    """Names of files that it left beside the file."""


def footer_bits(path: Path) -> int:
    """Number of bits of a file's footer, its length and the magic word."""
    return 8 * (int.from_bytes(path.read_bytes()[-_LENGTH_BYTES:-4], "little") + _LENGTH_BYTES)


def try_flips(original: Path, folder: Path, command: str, bits: Sequence[int]) -> Iterator[Ended]:
    """Run `edgemill COMMAND` on the file with each of the bits flipped. After a crash a new process continues."""
    left = list(bits)
    while left:
        words = [sys.executable, __file__, str(original), str(folder), command, json.dumps(left)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        reports = [json.loads(line) for line in done.stdout.splitlines()]
        ended = [Ended(*report) for report in reports if len(report) > 1]
        yield from ended
        left = left[len(ended) :]
        if done.returncode:
            assert reports and reports[-1] == left[:1], done.stderr
            yield Ended(left.pop(0), done.returncode, done.stderr, [])


def _flip(content: bytes, bit: int) -> bytes:
    start = len(content) - int.from_bytes(content[-_LENGTH_BYTES:-4], "little") - _LENGTH_BYTES
    changed = bytearray(content)
    changed[start + bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def _try(original: str, folder: str, command: str, bits: str) -> None:
    from click.testing import CliRunner

    from edgemill.pipeline.cli import edgemill

    content, path, out = Path(original).read_bytes(), Path(folder, "flipped.parquet"), Path(folder, "out")
    words = [command, "--input", str(path), "--output", str(out), "--device", "cpu"]
    if command == "run":
        words += ["--overwrite", "--fresh", "--set", "output.report=false"]
    for bit in json.loads(bits):
        print(json.dumps([bit]), flush=True)
        path.write_bytes(_flip(content, bit))
        ended = CliRunner().invoke(edgemill, words)  # a script has no other helpers of tests
        left = sorted(set(os.listdir(folder)) - {path.name, f"{out.name}.failed.log.jsonl"})
        print(json.dumps([bit, ended.exit_code, ended.stderr, left]), flush=True)


if __name__ == "__main__":
    _try(*sys.argv[1:])
