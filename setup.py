"""The packages of the distribution: package/ is `edgemill`, and the layers beside it are its subpackages."""

from setuptools import find_packages, setup

LAYERS = ("kernels", "tasks", "pipeline")

setup(
    packages=[
        "edgemill",
        *(f"edgemill.{layer}" for layer in LAYERS),
        *(f"edgemill.{layer}.{name}" for layer in LAYERS for name in find_packages(layer)),
    ]
)
