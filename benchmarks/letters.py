"""What letters between many workers cost by Dask's comms: each worker sends one to each other, and gets one from each.

    python -m benchmarks letters --peers 1,31,255 --repeats 30

One process has a connection for each peer, and one other process answers on all of them: so each sends and receives as
many letters as a worker does in one exchange, on a core of its own. *Processor* is the time of the first process, which
what else the machine does is not in. Medians of the rounds, after some that do not count.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from statistics import median
from typing import Any

from distributed.comm.core import CommClosedError, connect, listen

from benchmarks import ROOT
from benchmarks.table import markdown

WARM_UP = 5


@dataclass(frozen=True)
class Letters:
    """Rounds of so many letters each way."""

    peers: int
    seconds: list[float]
    """Wall time of each round."""
    processor: list[float]
    """Processor time of the process that sends first."""


async def _answer(comm: Any) -> None:
    with suppress(CommClosedError):
        while True:
            await comm.write(await comm.read())


async def _serve() -> None:
    """Answer until the standard input ends, which it does when the process that started this one is gone."""
    async with listen("tcp://127.0.0.1:0", _answer) as listener:
        print(listener.contact_address, flush=True)
        await asyncio.to_thread(sys.stdin.read)


async def _rounds(address: str, peers: int, words: int, repeats: int) -> Letters:
    comms = [await connect(address) for _ in range(peers)]
    letter = {"words": bytes(4 * words)}

    async def swap(comm: Any) -> None:
        await comm.write(letter)
        await comm.read()

    seconds, processor = [], []
    for _ in range(WARM_UP + repeats):
        start, busy = time.perf_counter(), time.process_time()
        await asyncio.gather(*map(swap, comms))
        seconds.append(time.perf_counter() - start)
        processor.append(time.process_time() - busy)
    for comm in comms:
        await comm.close()
    return Letters(peers, seconds[WARM_UP:], processor[WARM_UP:])


def measure(peers: list[int], words: int, repeats: int) -> list[Letters]:
    """Rounds with each number of peers."""
    command = [sys.executable, "-m", "benchmarks.letters"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        try:
            address = process.stdout.readline().strip()
            return [asyncio.run(_rounds(address, count, words, repeats)) for count in peers]
        finally:
            process.stdin.close()


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    parser.add_argument("--peers", default="1,31,255", help="other workers, with commas between")
    parser.add_argument("--words", type=int, default=64, help="uint32 words of a letter (64)")
    parser.add_argument("--repeats", type=int, default=30, help="rounds that are timed (30)")


def report(options: argparse.Namespace) -> None:
    """Measure and print."""
    found = measure([int(count) for count in options.peers.split(",")], options.words, options.repeats)
    rows = [
        [str(one.peers), *(f"{1e3 * median(taken):.2f}" for taken in (one.seconds, one.processor))] for one in found
    ]
    print(markdown(("peers", "an exchange, ms", "processor, ms"), rows))


if __name__ == "__main__":
    asyncio.run(_serve())
