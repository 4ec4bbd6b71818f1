"""Rooms: what each says that it is for, and the map that is drawn from the code."""

from __future__ import annotations

import pytest
from tests.test_house import MODULES, ROOT

import rooms


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
