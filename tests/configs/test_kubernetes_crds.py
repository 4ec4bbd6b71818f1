"""The manifests of the Dask operator go by its own resource definitions, as an API server would validate them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

HERE = Path(__file__).resolve().parent
MANIFESTS = sorted((HERE.parents[1] / "configs" / "kubernetes").glob("dask*.yaml"))
OF_EVERY_RESOURCE = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}}


@cache
def definition(kind: str) -> dict[str, Any]:
    """The operator's definition of a kind."""
    with gzip.open(HERE / "crds" / f"{kind.lower()}.yaml.gz") as file:
        found: dict[str, Any] = yaml.load(file, yaml.CSafeLoader)
    return found


def strict(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema, with fields that it does not name as errors (`kubectl apply --validate=strict`)."""
    found = dict(schema)
    for name in ("properties", "patternProperties"):
        if name in found:
            found[name] = {key: strict(below) for key, below in found[name].items()}
    for name in ("items", "additionalProperties"):
        if isinstance(found.get(name), Mapping):
            found[name] = strict(found[name])
    if "properties" in found and not found.get("x-kubernetes-preserve-unknown-fields"):
        found.setdefault("additionalProperties", False)
    return found


@cache
def validator(kind: str, version: str) -> jsonschema.Draft7Validator:
    """Of resources of a kind, whole."""
    spec = definition(kind)["spec"]
    (served,) = [found for found in spec["versions"] if f"{spec['group']}/{found['name']}" == version]
    schema = served["schema"]["openAPIV3Schema"]
    return jsonschema.Draft7Validator(strict(schema | {"properties": schema["properties"] | OF_EVERY_RESOURCE}))


def mistakes(resource: Mapping[str, Any]) -> list[str]:
    """What an API server would refuse it for."""
    found = validator(resource["kind"], resource["apiVersion"]).iter_errors(resource)
    return [f"{'.'.join(map(str, error.absolute_path))}: {error.message}" for error in found]


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.name)
def test_the_operator_takes_them(path: Path) -> None:
    assert mistakes(yaml.safe_load(path.read_text())) == []


def objects(value: Any) -> Iterator[dict[str, Any]]:
    """All objects within a value, itself first, but those whose names are the user's."""
    if isinstance(value, dict):
        yield value
        for name, below in value.items():
            if name not in ("metadata", "selector", "limits", "requests", "emptyDir"):
                yield from objects(below)
    elif isinstance(value, list):
        for below in value:
            yield from objects(below)


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.name)
def test_a_mistake_anywhere_is_noticed(path: Path) -> None:
    """A field that no definition names, in each object; and what is required, left out."""
    text = json.dumps(yaml.safe_load(path.read_text()))  # each object where it stands, without YAML's anchors
    count = len(list(objects(json.loads(text))))
    assert count > 50
    for place in range(count):
        changed = json.loads(text)
        list(objects(changed))[place]["replica"] = 1
        assert mistakes(changed), place
    without = json.loads(text)
    cluster = without["spec"] if without["kind"] == "DaskCluster" else without["spec"]["cluster"]["spec"]
    del cluster["worker"]["spec"]["containers"][0]["name"]
    assert any("'name' is a required property" in mistake for mistake in mistakes(without))
