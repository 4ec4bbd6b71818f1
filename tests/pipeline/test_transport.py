"""Messages that lie elsewhere travel as they are: array by array, none of them pickled."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from distributed.protocol.cuda import cuda_deserialize, cuda_serialize
from distributed.protocol.serialize import deserialize, serialize
from foreign import Foreign

from edgemill.pipeline.transport import PAYLOADS, register
from edgemill.tasks.messages import Bundle
from edgemill.tasks.triangulate import GhostEdges, Reply


def _send(array: Foreign) -> tuple[dict[str, Any], list[Any]]:
    return {"elsewhere": True}, [array]


def _receive(header: dict[str, Any], frames: list[Any]) -> Any:
    assert header == {"elsewhere": True}
    return frames[0]


@pytest.fixture(scope="module", autouse=True)
def registered() -> None:
    cuda_serialize.register(Foreign, _send)  # type: ignore[no-untyped-call]
    cuda_deserialize.register(Foreign, _receive)  # type: ignore[no-untyped-call]
    register()


def filled(kind: Any, start: int) -> Any:
    """A payload with an array elsewhere in each field."""
    nested = {"ghosts": filled(GhostEdges, start + 10)} if kind is Reply else {}
    arrays = {f.name: Foreign(np.arange(start + i, 9)) for i, f in enumerate(fields(kind)) if f.name not in nested}
    return kind(**arrays, **nested)


def arrays_of(value: Any) -> list[Any]:
    if isinstance(value, Foreign):
        return [value]
    return [found for f in fields(value) for found in arrays_of(getattr(value, f.name))]


@pytest.mark.parametrize("kind", PAYLOADS)
def test_arrays_travel_as_they_are(kind: Any) -> None:
    sent = Bundle(3, {0: filled(kind, 0), 7: filled(kind, 1)}, {0: 9, 7: 8})
    header, frames = serialize(sent, serializers=("cuda", "dask", "pickle"))
    found = deserialize(header, frames, deserializers=("cuda", "dask", "pickle"))
    assert header["serializer"] == "cuda"
    assert (found.sender, found.rows, list(found.parts)) == (3, sent.rows, [0, 7])
    for receiver, payload in sent.parts.items():
        assert type(found.parts[receiver]) is kind
        for one, other in zip(arrays_of(payload), arrays_of(found.parts[receiver]), strict=True):
            assert one is other  # the same object: it was never pickled
