"""Files of checkpoints with the right checksum, and content that edgemill does not write, which is refused."""

from __future__ import annotations

import json
import zipfile
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from edgemill.tasks.storage.array_files import DamagedFile, StoredFile, restore, store
from forging import forged, forgeries, places, text


@dataclass(frozen=True)
class Held:
    """A value of a checkpoint."""

    edges: Any
    names: Any
    count: int
    sizes: Any


TYPES = {"Held": Held}
VALUE = Held(np.arange(6, dtype=np.int32), pa.array(["a", "bc"], pa.large_string()), 3, {"a": np.ones(2)})


def rewritten(path: Path, tree: str | None = None, **more: Any) -> StoredFile:
    """The file with another tree, or other entries, and the checksum of its content."""
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    if tree is not None:
        entries["tree.json"] = tree.encode()
    with zipfile.ZipFile(path, "w", more.get("compression", zipfile.ZIP_STORED)) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    content = path.read_bytes()
    return StoredFile(f"file://{path}", len(content), sha256(content).hexdigest())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    folder = tmp_path / "kept" / "graph-1"
    folder.mkdir(parents=True)
    store(VALUE, f"file://{folder}/edges-0.zip", {}, TYPES)
    return folder / "edges-0.zip"


def test_the_tree(path: Path, tmp_path: Path) -> None:
    """Each value of the tree in turn: the file is refused, or only a plain value in it is another one."""
    with zipfile.ZipFile(path) as archive:
        tree = json.loads(archive.read("tree.json"))
    good = restore(rewritten(path), {}, TYPES)
    assert good.edges.tolist() == VALUE.edges.tolist() and good.names.equals(VALUE.names)
    content = path.read_bytes()
    for place in places(tree):
        for value in forgeries(tmp_path / "victim"):
            path.write_bytes(content)
            stored = rewritten(path, text(forged(tree, place, value)))
            try:
                found = restore(stored, {}, TYPES)
            except DamagedFile:
                continue
            assert isinstance(found, Held), (place, value)


@pytest.mark.parametrize("dtype", ["|O", "O", "<M8[s]", "|S8", "<U2", "|V8", "<i8", "<f2", "no type"])
def test_types_of_arrays(path: Path, dtype: str) -> None:
    with zipfile.ZipFile(path) as archive:
        tree = json.loads(archive.read("tree.json"))
    tree["fields"]["edges"]["array"][1] = dtype
    with pytest.raises(DamagedFile, match="edgemill writes"):
        restore(rewritten(path, json.dumps(tree)), {}, TYPES)


def test_strings_out_of_range(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        tree = json.loads(archive.read("tree.json"))
    tree["fields"]["names"] = {"strings": [tree["fields"]["edges"]["array"], tree["fields"]["names"]["strings"][1]]}
    tree["fields"]["names"]["strings"][0][1:] = ["<i8", [3]]
    with pytest.raises(DamagedFile, match="edgemill writes"):
        restore(rewritten(path, json.dumps(tree)), {}, TYPES)


def test_compressed_entries(path: Path) -> None:
    with pytest.raises(DamagedFile, match="compressed"):
        restore(rewritten(path, compression=zipfile.ZIP_DEFLATED), {}, TYPES)


def test_no_archive(path: Path) -> None:
    path.write_bytes(b"no archive")
    stored = StoredFile(f"file://{path}", 10, sha256(b"no archive").hexdigest())
    with pytest.raises(DamagedFile, match="edgemill writes"):
        restore(stored, {}, TYPES)
