"""Machine code of our CUDA kernels that was compiled ahead of runs. NVIDIA's compiler, NVRTC, needs no GPU to do so.

The files are in the cache folder, or in the environment, as in images. A GPU runs code for its own compute capability
and for lower capabilities of the same major version (CUDA C++ Programming Guide, "Binary Compatibility").
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from contextlib import suppress
from pathlib import Path

from cupy.cuda import nvrtc

from ...runtime import cache_folder

ARCHITECTURES = (75, 80, 90, 100, 120)
"""Compute capabilities that code is compiled for: 10 × the major version + the minor. Other GPUs run one of these."""
OPTIONS = ("-std=c++17",)
"""Options of the compiler for all kernels."""
_AS_CUPY = ("-ftz=true", "--device-as-default-execution-space")
"""Options that CuPy adds."""


def find(text: str, capability: int) -> Path | None:
    """The file with the machine code of the source `text` for a GPU of this compute capability, if it is kept."""
    for folder in _folders():
        for architecture in sorted(ARCHITECTURES, reverse=True):
            if architecture <= capability and architecture // 10 == capability // 10:
                file = folder / _name(text, architecture)
                if file.exists():
                    return file
    return None


def is_kept(text: str, architecture: int) -> bool:
    """Whether the machine code of the source `text` for exactly this architecture is kept."""
    return any(Path(folder, _name(text, architecture)).exists() for folder in _folders())


def keep(text: str, architecture: int) -> None:
    """Compile the source `text` into the cache folder.

    Raises RuntimeError with the compiler's messages if the compiler refuses the source, and OSError if there is no
    cache folder or it cannot be written.
    """
    try:
        folder = cache_folder.home() / cache_folder.sources()
    except RuntimeError as error:
        raise OSError(str(error)) from error
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=folder, suffix=".part", delete=False) as file:
        try:
            file.write(compile_source(text, architecture))
            os.chmod(file.name, 0o644)  # other users may read it, as in images
            os.replace(file.name, folder / _name(text, architecture))
        except BaseException:
            os.unlink(file.name)
            raise


def compile_source(text: str, architecture: int) -> bytes:
    """The machine code of the source `text`. Raises RuntimeError with the messages of the compiler."""
    program = nvrtc.createProgram(text, "kernels.cu", [], [])
    try:
        nvrtc.compileProgram(program, [*OPTIONS, *_AS_CUPY, f"-arch=sm_{architecture}"])
        return bytes(nvrtc.getCUBIN(program))
    except nvrtc.NVRTCError as error:
        raise RuntimeError(nvrtc.getProgramLog(program)) from error
    finally:
        nvrtc.destroyProgram(program)


def _folders() -> list[Path]:
    folders = [cache_folder.environment()]
    with suppress(RuntimeError):  # there may be no home folder
        folders.append(cache_folder.home())
    return [folder / cache_folder.sources() for folder in folders]


def _name(text: str, architecture: int) -> str:
    whole = hashlib.sha256(repr((nvrtc.getVersion(), OPTIONS, _AS_CUPY)).encode() + text.encode())
    return f"{whole.hexdigest()[:32]}-sm_{architecture}.cubin"
