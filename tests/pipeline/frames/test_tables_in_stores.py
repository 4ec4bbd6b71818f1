"""Delta and Iceberg tables in an object store, with its keys in storage options: a real S3 server on loopback."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import fsspec
import pytest
from pyiceberg.catalog.sql import SqlCatalog

import lakes
from edgemill.pipeline import Result, UsageError, mine
from edgemill.tasks.inputs.open_source import open_source
from edgemill.tasks.verify.result import verify
from in_process import call
from known_graphs import FACEBOOK
from s3_servers import s3_server

KEY, SECRET = "theaccesskey", "thesecretkey"
HOW: dict[str, Any] = {"device": "cpu", "output.report": False}


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with s3_server() as options:
        yield options["client_kwargs"]["endpoint_url"]


@pytest.fixture(scope="module")
def s3(server: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Options for fsspec of a store with s3://lake/delta and s3://lake/iceberg, each overwritten once."""
    options = {"key": KEY, "secret": SECRET, "client_kwargs": {"endpoint_url": server}}
    store = fsspec.filesystem("s3", **options)
    store.mkdir("lake")
    folder = lakes.delta(tmp_path_factory.mktemp("lake") / "t", lakes.FIRST, lakes.SECOND)
    store.put(str(folder), "lake/delta", recursive=True)
    keys = {"s3.endpoint": server, "s3.access-key-id": KEY, "s3.secret-access-key": SECRET, "s3.region": "us-east-1"}
    catalog = SqlCatalog("lake", uri="sqlite:///:memory:", **{"py-io-impl": "pyiceberg.io.fsspec.FsspecFileIO"}, **keys)
    catalog.create_namespace("of")
    table = catalog.create_table("of.t", lakes.rows(lakes.FIRST).schema, location="s3://lake/iceberg")
    table.append(lakes.rows(lakes.FIRST))
    table.overwrite(lakes.rows(lakes.SECOND))
    return options


@pytest.mark.parametrize("name", ["delta", "iceberg"])
def test_a_run_and_what_it_tells(
    s3: dict[str, Any], server: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, out = f"s3://lake/{name}", tmp_path / "out"
    how = HOW | {"input.storage_options": s3}
    result = mine(url, out, **how)
    assert result.manifest.counts.edges == len(lakes.SECOND)
    read = result.manifest.input.table
    assert read is not None
    assert (read.format, read.location) == (name, url)
    again = mine(url, out, **how)
    assert again.manifest.run == result.manifest.run
    told = "".join(path.read_text(errors="replace") for path in tmp_path.rglob("*") if path.is_file())
    assert KEY not in told
    assert SECRET not in told
    for key, value in (("ACCESS_KEY_ID", KEY), ("SECRET_ACCESS_KEY", SECRET), ("ENDPOINT_URL", server)):
        monkeypatch.setenv(f"AWS_{key}", value)
    report = verify(Result(out).place, url)
    assert report.ok, report.checks


@pytest.mark.parametrize(("path", "kind"), [("delta/*.parquet", "Delta"), ("iceberg/data", "Iceberg"), ("", "Delta")])
def test_parts_of_tables(s3: dict[str, Any], path: str, kind: str) -> None:
    with pytest.raises(UsageError, match=rf"{kind}.*s3://lake/{kind.lower()}"):
        open_source(f"s3://lake/{path}", storage_options=s3)


def test_requests_for_a_folder_of_loose_files(s3: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The search for tables takes one request for each folder of the path, for any number of files."""
    client: Any = import_module("aiobotocore.client").AioBaseClient
    store, asked = fsspec.filesystem("s3", **s3), Counter[str]()
    real = client._make_api_call

    async def counted(self: Any, operation: str, arguments: Any) -> Any:
        asked[operation] += 1
        return await real(self, operation, arguments)

    content = FACEBOOK.read_bytes()
    found = []
    for files in (1, 5):
        store.pipe({f"lake/loose/in/{number}.parquet": content for number in range(files)})
        with monkeypatch.context() as patched:
            patched.setattr(client, "_make_api_call", counted)
            asked.clear()
            open_source("s3://lake/loose/in", storage_options=s3)
            found.append(dict(asked))
    assert found[0]["ListObjectsV2"] == found[1]["ListObjectsV2"]
    assert found[1]["HeadObject"] - found[0]["HeadObject"] <= 4 * 2


def test_a_key_that_is_refused(s3: dict[str, Any], server: str) -> None:
    """The message names neither key."""
    command = ["plan", "--input", "s3://absent/delta", "--output", "/nowhere", "--set"]
    options = f"input.storage_options={{key: {KEY}, secret: {SECRET}, client_kwargs: {{endpoint_url: '{server}'}}}}"
    refused = call(*command, options)
    assert refused.exit_code in (2, 3)
    assert "s3://absent/delta" in refused.output
    assert KEY not in refused.output
    assert SECRET not in refused.output
