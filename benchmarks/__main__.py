"""Runs a benchmark by its name. Pins the process before Numba is imported, as Numba counts the cores at import."""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

import benchmarks
from benchmarks import record
from benchmarks.common import machine
from benchmarks.common.graphs import CACHE

FOLDERS = {
    "update": "updates",
    "nights": "updates",
    "gpu": "gpus",
    "gpu_bands": "gpus",
    "gpu_shards": "gpus",
    "gpu_programs": "gpus",
    "gpu_ranks": "gpus",
    "gpu_stream": "gpus",
    "gpu_gathers": "gpus",
    "scaling": "scaling",
}
"""Folders of the benchmarks that are in one."""
NAMES = (
    "kernels",
    "runs",
    "first_run",
    "client_memory",
    "memory",
    "shards",
    "programs",
    "program_orders",
    "communities",
    "similar_pairs",
    "predictions",
    "bands",
    *FOLDERS,
    "record",
)


def _cpus(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


def main() -> None:
    """Run the benchmark that the first argument names."""
    name, arguments = (sys.argv[1], sys.argv[2:]) if len(sys.argv) > 1 else ("", [])
    if name not in NAMES:
        sys.exit(benchmarks.__doc__)
    if name == "record":
        parser = _parser(name, record.__doc__)
        record.add_options(parser)
        record.report(parser.parse_args(arguments))
        return
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--threads", type=int, default=2, help="threads, and cores the process is pinned to (2)")
    common.add_argument("--cpus", type=_cpus, metavar="N,N", help="which cores (the first ones allowed)")
    common.add_argument("--cache", type=Path, default=CACHE, help=f"folder of generated graphs ({CACHE})")
    common.add_argument("--results", type=Path, metavar="FILE", help="append the figures to this file, for `record`")
    common.add_argument("--machine", default="", help="name of the machine in the results (the processor)")
    known, _ = common.parse_known_args(arguments)
    machine.pin(known.threads, known.cpus)
    module = f"{FOLDERS[name]}.{name}" if name in FOLDERS else name
    benchmark = importlib.import_module(f"benchmarks.{module}")
    parser = _parser(name, benchmark.__doc__, common)
    benchmark.add_options(parser)
    options = parser.parse_args(arguments)
    print(f"{machine.describe()}\n", flush=True)
    rows = benchmark.report(options)
    if options.results is not None:
        where = options.machine or machine.short_name(options.threads)
        command = record.command_of(sys.argv[1:])
        found = record.figures(name, where, benchmark.HEAD, rows, benchmark.KEYS, benchmark.RECORDED, command)
        record.append(options.results, found)


def _parser(name: str, text: str | None, *parents: argparse.ArgumentParser) -> argparse.ArgumentParser:
    return argparse.ArgumentParser(
        f"python -m benchmarks {name}",
        parents=parents,
        description=text,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


if __name__ == "__main__":
    main()
