"""The packages of the distribution: package/ is `edgemill`, and the layers beside it are its subpackages.

If EDGEMILL_KERNELS names a folder of compiled kernels (`make compiled`), the wheel has them, and is for the Python and
the processors that they are compiled for.
"""

import os
import platform
from pathlib import Path

from setuptools import Distribution, find_packages, setup

LAYERS = ("kernels", "tasks", "pipeline")
KERNELS = os.environ.get("EDGEMILL_KERNELS")


class Compiled(Distribution):
    """A distribution for this Python, which its wheel's name tells."""

    def has_ext_modules(self) -> bool:
        """Compiled kernels are to a wheel what extension modules are."""
        return True


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
    distclass=Compiled if KERNELS else Distribution,
    # Kernels need no other libraries than Numba does, whose wheels have this tag.
    options={"bdist_wheel": {"plat_name": f"manylinux_2_28_{platform.machine()}"}} if KERNELS else {},
)
