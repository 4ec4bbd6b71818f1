"""Messages with arrays on a GPU's substitute travel array by array, without pickling."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from itertools import combinations
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distributed.protocol.cuda import cuda_deserialize, cuda_serialize
from distributed.protocol.serialize import deserialize, serialize

import drive
import foreign
import runs
from edgemill.pipeline.cluster.session import register_payloads
from edgemill.tasks.device import MemorySpace
from edgemill.tasks.inputs.open_source import open_source
from edgemill.tasks.messages import Bundle, Payload, collect
from edgemill.tasks.publish.lambda_columns import BucketResults
from foreign import Foreign


def _send(array: Foreign) -> tuple[dict[str, Any], list[Any]]:
    return {"elsewhere": True}, [array]


def _receive(header: dict[str, Any], frames: list[Any]) -> Any:
    assert header == {"elsewhere": True}
    return frames[0]


@pytest.fixture(scope="module", autouse=True)
def registered() -> None:
    cuda_serialize.register(Foreign, _send)  # type: ignore[no-untyped-call]
    cuda_deserialize.register(Foreign, _receive)  # type: ignore[no-untyped-call]
    register_payloads()


def filled(kind: Any, start: int) -> Any:
    """A payload with an array of the substitute in each field."""
    return kind(**{f.name: Foreign(np.arange(start + i, 9)) for i, f in enumerate(fields(kind))})


def arrays_of(value: Any) -> list[Any]:
    if isinstance(value, Foreign):
        return [value]
    return [found for f in fields(value) for found in arrays_of(getattr(value, f.name))]


def arrived(sent: Bundle[Any]) -> Bundle[Any]:
    """The bundle, serialized and deserialized as between workers."""
    header, frames = serialize(sent, serializers=("cuda", "dask", "pickle"))
    assert header["serializer"] == "cuda"
    found: Bundle[Any] = deserialize(header, frames, deserializers=("cuda", "dask", "pickle"))
    return found


@pytest.mark.parametrize("kind", sorted(set(Payload.__subclasses__()) - {Bundle}, key=attrgetter("__name__")))
def test_arrays_travel_as_they_are(kind: Any) -> None:
    sent = Bundle(3, {0: filled(kind, 0), 7: filled(kind, 1)}, {0: 9, 7: 8})
    found = arrived(sent)
    assert (found.sender, found.rows, list(found.parts)) == (3, sent.rows, [0, 7])
    for receiver, payload in sent.parts.items():
        assert type(found.parts[receiver]) is kind
        for one, other in zip(arrays_of(payload), arrays_of(found.parts[receiver]), strict=True):
            assert one is other  # the same object: it was never pickled


def test_no_array_elsewhere_is_pickled_on_the_way_to_dense_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In any message: two triangles and a larger group, with vertices in all three buckets."""

    def refused(self: Foreign, protocol: int) -> Any:
        raise TypeError("an array elsewhere was pickled")

    seen: set[str] = set()

    def travelled(receiver: int, bundles: Iterable[Bundle[Any]]) -> dict[int, Any]:
        found = list(map(arrived, bundles))
        seen.update(type(part).__name__ for bundle in found for part in bundle.parts.values())
        return collect(receiver, found)

    monkeypatch.setattr(Foreign, "__reduce_ex__", refused)
    monkeypatch.setattr("edgemill.pipeline.stages.exchange.collect", travelled)
    edges = [pair for group in ((0, 3, 6), (1, 4, 7), (2, 5, 8, 9)) for pair in combinations(group, 2)]
    source = open_source(str(runs.write_rows(tmp_path / "rows.parquet", edges)))
    with foreign.with_kernels():
        ingested = drive.ingest(source, buckets=3, space=MemorySpace.DEVICE)
        levels = [np.arange(len(own), dtype=np.int32, like=own.low) % 2 for own in ingested.edges]
        results = [BucketResults(own.bucket, k, k, k) for own, k in zip(ingested.edges, levels, strict=True)]
        drive.extract(ingested, results, MemorySpace.DEVICE)
    assert {"Outline", "Answer"} < seen
