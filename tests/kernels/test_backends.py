"""The CPU and the GPU offer the same operations, with the same parameters. No GPU is needed to compare them."""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any

import pytest

from edgemill import kernels
from edgemill.kernels import backend, cpu, filters

gpu: Any = pytest.importorskip("edgemill.kernels.gpu", exc_type=ImportError)

OPERATIONS = sorted(name for name in vars(backend.Backend) if not name.startswith("_"))
CLASSES = {
    "Changes": filters.Changes,
    "Filtering": filters.Filtering,
    "Fixpoint": backend.Fixpoint,
    "Peeling": backend.Peeling,
}
BACKENDS = pytest.mark.parametrize("module", [cpu, gpu], ids=["cpu", "gpu"])


def parameters(function: Any) -> list[tuple[str, Any]]:
    """Name and default of each parameter but `self`."""
    found = inspect.signature(function).parameters.values()
    return [(one.name, one.default) for one in found if one.name != "self"]


@BACKENDS
def test_operations_are_those_of_the_protocol(module: ModuleType) -> None:
    assert sorted(module.__all__) == OPERATIONS


@BACKENDS
@pytest.mark.parametrize("name", OPERATIONS)
def test_parameters_are_those_of_the_protocol(module: ModuleType, name: str) -> None:
    assert parameters(getattr(module, name)) == parameters(getattr(backend.Backend, name))


@pytest.mark.parametrize("name", OPERATIONS)
def test_each_operation_is_documented_in_the_package(name: str) -> None:
    operation = getattr(kernels, name.lower())
    assert operation.__doc__
    assert parameters(operation) == parameters(getattr(backend.Backend, name))


@BACKENDS
@pytest.mark.parametrize("name", CLASSES)
def test_methods_and_attributes_are_those_of_the_protocol(module: ModuleType, name: str) -> None:
    found, wanted = getattr(module, name), CLASSES[name]
    for member, value in vars(wanted).items():
        if inspect.isfunction(value) and not member.startswith("_"):
            assert parameters(getattr(found, member)) == parameters(value)
    source = inspect.getsource(found)
    for attribute in [*wanted.__annotations__, *(n for n, v in vars(wanted).items() if isinstance(v, property))]:
        assert f"self.{attribute}" in source or f"def {attribute}(" in source
