"""Pins the process, and only then imports the benchmark: Numba counts the cores when it is loaded."""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

import benchmarks
from benchmarks import machine
from benchmarks.graphs import CACHE

NAMES = (
    "kernels",
    "runs",
    "first_run",
    "client_memory",
    "memory",
    "waves",
    "checksums",
    "writing",
    "peers",
    "explorer",
    "gpu",
    "gpu_runs",
    "ids",
    "all_to_all",
    "letters",
    "scaling",
    "shards",
    "workers",
    "shard_counts",
)


def _cpus(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


def main() -> None:
    """Run the benchmark that the first argument names."""
    name, arguments = (sys.argv[1], sys.argv[2:]) if len(sys.argv) > 1 else ("", [])
    if name not in NAMES:
        sys.exit(benchmarks.__doc__)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--threads", type=int, default=2, help="threads, and cores the process is pinned to (2)")
    common.add_argument("--cpus", type=_cpus, metavar="N,N", help="which cores; left out: the first ones allowed")
    common.add_argument("--cache", type=Path, default=CACHE, help=f"folder of generated graphs ({CACHE})")
    known, _ = common.parse_known_args(arguments)
    machine.pin(known.threads, known.cpus)
    benchmark = importlib.import_module(f"benchmarks.{name}")
    parser = argparse.ArgumentParser(
        f"python -m benchmarks {name}",
        parents=[common],
        description=benchmark.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    benchmark.add_options(parser)
    options = parser.parse_args(arguments)
    print(f"{machine.describe()}\n", flush=True)
    benchmark.report(options)


if __name__ == "__main__":
    main()
