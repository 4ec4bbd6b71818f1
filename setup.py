"""The packages of the distribution: package/ is `edgemill`, and the layers beside it are its subpackages.

If EDGEMILL_KERNELS names a folder of compiled kernels (`make compiled`), the wheel has them, and is for the Python and
the processors that they are compiled for.
"""

import os
import platform
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.bdist_wheel import bdist_wheel

LAYERS = ("kernels", "tasks", "pipeline")
KERNELS = os.environ.get("EDGEMILL_KERNELS")


class CompiledWheel(bdist_wheel):
    """A wheel for this Python. Kernels need no other libraries than Numba does, whose wheels have this tag."""

    def finalize_options(self) -> None:
        """As for a wheel with extension modules."""
        self.plat_name = f"manylinux_2_28_{platform.machine()}"
        super().finalize_options()
        self.root_is_pure = False


def kernels(folder: Path) -> list[tuple[str, list[str]]]:
    """The files of the cache `folder`, by the folder of an environment that `kernels.runtime.cache` reads first."""
    [compiled] = folder.iterdir()  # from the present sources alone
    kept = [path for path in sorted(compiled.iterdir()) if path.suffix in {".nbi", ".nbc", ".compiled"}]
    return [(f"share/edgemill/kernels/{compiled.name}", list(map(str, kept)))]


setup(
    packages=[
        "edgemill",
        *(f"edgemill.{layer}" for layer in LAYERS),
        *(f"edgemill.{layer}.{name}" for layer in LAYERS for name in find_packages(layer)),
    ],
    data_files=kernels(Path(KERNELS)) if KERNELS else [],
    cmdclass={"bdist_wheel": CompiledWheel} if KERNELS else {},
)
