"""Limits that keep rooms small: files in a folder, lines in a file, imports of a module, and what exceeds them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from tests.test_house import MODULES, ROOT, imported

import rooms

FILES, LINES, IMPORTS = 12, 400, 12
"""At most this many modules in a folder, lines in a file, and other modules of the project that a module imports."""
FOLDERS = ("package", "pipeline", "tasks", "kernels", "benchmarks", "docs/making", "tests")
CODE = {".py", ".cu", ".cuh"}
MORE_IMPORTS = {
    "pipeline/calls/mine.py": "connects all parts of a call from Python",
    "pipeline/cli/running.py": "connects all parts of the commands run and plan",
    "pipeline/cli/groups.py": "three commands with a reader and a writer each",
    "pipeline/cli/results.py": "five commands on one output",
    "pipeline/checkpoint/checkpoint.py": "stores values of several rooms",
    "pipeline/estimates/estimating.py": "composes an estimate",
    "pipeline/plan/choice.py": "weighs facts of input, cluster and settings",
    "pipeline/programs/one_block.py": "composes the programs of an update",
    "pipeline/programs/running.py": "composes the stage programs",
    "pipeline/results/explore/api.py": "answers every kind of request",
    "pipeline/run/full.py": "composes a run that computes everything",
    "pipeline/run/mining.py": "composes a run",
    "pipeline/run/tables.py": "composes the stages after the graph",
    "pipeline/run/inputs/run_input.py": "takes every kind of input",
    "pipeline/stages/extracting.py": "composes the stage extract",
    "pipeline/stages/ingesting.py": "composes the stages read and number",
    "pipeline/stages/publishing.py": "composes the stage publish",
    "pipeline/stages/tiny_run.py": "calls every stage once",
    "pipeline/updating/batches/batch_input.py": "takes every kind of input as a batch",
    "pipeline/updating/carrying/beginning.py": "composes the beginning of an update",
    "pipeline/updating/carrying/unchanged.py": "makes a whole result",
    "pipeline/updating/groups/finding.py": "composes the groups of an update",
    "pipeline/updating/start.py": "reads a result, its state and the input",
    "pipeline/updating/tables.py": "composes the tables of an update",
    "pipeline/updating/updating.py": "composes an update",
    "tasks/programs/running.py": "composes the run of a program: block, carrier and orders",
    "tasks/shards/gpu/transport.py": "knows every transport",
}
"""Modules that compose others may import more; `__init__` modules, which re-export, too."""


def files() -> list[Path]:
    found = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in CODE]
    return [path.relative_to(ROOT) for path in found if "__pycache__" not in path.parts]


def test_folders_hold_few_files() -> None:
    counts = Counter(path.parent.as_posix() for path in files() if path.name != "__init__.py")
    assert {folder: count for folder, count in counts.items() if count > FILES} == {}


def test_files_are_short() -> None:
    made = Path("pipeline/calls/keywords.py")  # by docs/making/keywords.py, a line for each setting
    product = [path for path in files() if path.parts[0] != "tests" and path != made]
    lengths = {path.as_posix(): len((ROOT / path).read_text(encoding="utf-8").splitlines()) for path in product}
    assert {path: lines for path, lines in lengths.items() if lines > LINES} == {}


def test_modules_import_few_others() -> None:
    many = {}
    for name, path in MODULES.items():
        others = {other for other, _ in imported(path) if other in MODULES and other != name}
        if path.name != "__init__.py" and len(others) > IMPORTS:
            many[path.relative_to(ROOT).as_posix()] = len(others)
    assert many.keys() == MORE_IMPORTS.keys(), many


def test_every_room_says_what_it_is_for() -> None:
    for name, path in MODULES.items():
        if path.name == "__init__.py" and name.count(".") > 1:
            docstring, _, _ = path.read_text(encoding="utf-8").removeprefix('"""').partition('"""')
            assert len(docstring.splitlines()) > 2, f"{path}: say what the room is for, and where to start"


@pytest.fixture(scope="module")
def code() -> rooms.Code:
    return rooms.Code(ROOT)


def test_the_map_is_that_of_the_code(code: rooms.Code) -> None:
    assert rooms.PICTURE.read_text(encoding="utf-8") == rooms.drawn(code), "run python docs/making/rooms.py"


@pytest.mark.parametrize(
    "stage",
    [
        "read",
        "bound",
        *(pytest.param(s, marks=pytest.mark.slow) for s in ("number", "triangulate", "extract", "publish")),
    ],
)
def test_the_map_follows_the_code(code: rooms.Code, stage: str) -> None:
    layers = {room.partition(".")[0] for room in code.rooms_of(stage)}
    assert layers >= {"pipeline", "tasks"}
