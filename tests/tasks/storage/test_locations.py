"""Normal forms of locations, and locations inside of others."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from edgemill.tasks.errors import UsageError
from edgemill.tasks.storage.folders import file_system, folder_at
from edgemill.tasks.storage.locations import location_of, normalized


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("/a/b", "/a/b"),
        ("/a/b/", "/a/b"),
        ("/", "/"),
        ("a/b/", "a/b"),
        ("~/a", "~/a"),
        ("file:///a/b", "/a/b"),
        ("FILE:///a/b", "/a/b"),
        ("file:/a/b", "/a/b"),
        ("local:///a/b/", "/a/b"),
        ("Local:///a", "/a"),
        ("local:a", "a"),
        ("file://a%20b", "a%20b"),
        ("S3://Bucket/Key/", "s3://Bucket/Key"),
        ("memory:///a", "memory:///a"),
        ("Simplecache::S3://B/k", "simplecache::s3://B/k"),
        ("date: 2026", "date: 2026"),
    ],
)
def test_normal_forms(given: str, expected: str) -> None:
    assert normalized(given) == expected
    assert normalized(expected) == expected
    assert folder_at(given).url == expected


@pytest.mark.parametrize(
    "given",
    ["data:,abc", "DATA:text/plain,abc", "data://x", "a\0b", "", "s3://", "memory://", "file://", "local:", "s3:///"],
)
def test_invalid_locations(given: str) -> None:
    with pytest.raises(UsageError):
        normalized(given)
    with pytest.raises(UsageError):
        file_system(given, {})


def test_a_working_directory_that_was_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    for relative in ("a", "./a", "file:a", "a/../b"):
        with pytest.raises(UsageError, match="working directory"):
            folder_at(relative)
    for whole in ("/a", "file:///a", "s3://a/b"):
        folder_at(whole)
    monkeypatch.chdir(tmp_path)


SAME = [
    [
        "{root}/real/a",
        "{root}/real/a/",
        "{root}//real/./a",
        "{root}/real/b/../a",
        "{root}/link/a",
        "file://{root}/link/a",
    ],
    ["local://{root}/real", "LOCAL:{root}/link", "real", "./link/", "simplecache::file://{root}/real"],
    [
        "s3://b/k",
        "s3a://b/k/",
        "S3://b//k",
        "s3://b/x/../k",
        "filecache::s3://b/k",
        "blockcache::simplecache::s3a://b/./k",
    ],
    ["gs://b/k", "gcs://b/k"],
    ["memory://b/k", "memory:///b/k", "memory://b//k/"],
    ["file:///b%20k"],
    ["file:///b k"],
    ["s3://B/k"],
]


def test_equal_and_other_locations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    monkeypatch.chdir(tmp_path)
    found = [{location_of(given.format(root=tmp_path)) for given in group} for group in SAME]
    assert [len(group) for group in found] == [1] * len(SAME)
    assert len(set().union(*found)) == len(SAME)


@pytest.mark.parametrize(
    ("inner", "outer", "lies"),
    [
        ("/a/b", "/a", True),
        ("/a", "/a", True),
        ("/ab", "/a", False),
        ("/a", "/a/b", False),
        ("/a", "/", True),
        ("s3://b/k", "s3a://b", True),
        ("s3://bb/k", "s3://b", False),
        ("s3://a/b", "/a", False),
        ("memory://a/b", "s3://a", False),
        ("simplecache::s3://a/b", "s3://a", True),
        ("zip://x::file:///a/b.zip", "/a", True),
    ],
)
def test_a_location_inside_another(inner: str, outer: str, lies: bool) -> None:
    assert location_of(inner).is_inside(location_of(outer)) is lies


def test_the_home_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert location_of("~/a") == location_of(f"{tmp_path}/a") == location_of("file://~/a")
    assert location_of("~/a").path == os.path.realpath(tmp_path / "a")
