"""Machine code of CUDA kernels that is compiled ahead of runs: what is kept, where, and which GPUs it is for."""

from __future__ import annotations

from pathlib import Path

import pytest
from cupy.cuda import nvrtc

from edgemill.kernels.gpu.compiling import ahead
from edgemill.kernels.gpu.compiling.ahead import VARIANTS
from edgemill.kernels.gpu.runtime import machine_code, source
from edgemill.kernels.runtime import cache_folder

TEXT = 'extern "C" __global__ void one(int* found) { *found = 1; }'


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """The folders of the user and of the environment for the present sources. Neither exists."""
    monkeypatch.setenv("EDGEMILL_CACHE_DIR", str(tmp_path / "user"))
    monkeypatch.setattr(cache_folder, "environment", lambda: tmp_path / "environment")
    return tmp_path / "user" / "kernels" / cache_folder.sources(), tmp_path / "environment" / cache_folder.sources()


def test_what_is_kept(folders: tuple[Path, Path]) -> None:
    user, _ = folders
    assert machine_code.find(TEXT, 90) is None
    assert not machine_code.is_kept(TEXT, 90)
    machine_code.keep(TEXT, 90)
    assert machine_code.is_kept(TEXT, 90) and not machine_code.is_kept(TEXT, 80)
    file = machine_code.find(TEXT, 90)
    assert file is not None and list(user.iterdir()) == [file]
    assert file.read_bytes().startswith(b"\x7fELF") and b"one" in file.read_bytes()
    assert file.stat().st_mode & 0o777 == 0o644
    assert machine_code.find(TEXT + " ", 90) is None


def test_environment_is_read_first_and_not_written(folders: tuple[Path, Path]) -> None:
    user, environment = folders
    machine_code.keep(TEXT, 80)
    environment.parent.mkdir()
    user.rename(environment)
    assert machine_code.is_kept(TEXT, 80)
    assert not user.exists()
    found = machine_code.find(TEXT, 80)
    assert found is not None and found.parent == environment
    machine_code.keep(TEXT, 90)
    assert len(list(environment.iterdir())) == len(list(user.iterdir())) == 1


@pytest.mark.parametrize(
    ("capability", "architecture"),
    [(70, None), (75, 75), (80, 80), (86, 80), (89, 80), (90, 90), (100, 100), (103, 100), (110, None), (121, 120)],
)
def test_gpus_run_code_of_their_major_version(
    capability: int, architecture: int | None, folders: tuple[Path, Path]
) -> None:
    for one in machine_code.ARCHITECTURES:
        machine_code.keep(TEXT, one)
    found = machine_code.find(TEXT, capability)
    assert (found and found.name.partition("-")[2]) == (architecture and f"sm_{architecture}.cubin")


def test_refused_source_leaves_no_file(folders: tuple[Path, Path]) -> None:
    with pytest.raises(RuntimeError, match='identifier "wrong"'):
        machine_code.keep("__device__ int one() { return wrong; }", 90)
    assert list(folders[0].iterdir()) == []


def test_without_a_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("no home folder")

    monkeypatch.setattr(cache_folder, "home", no_home)
    assert machine_code.find(TEXT, 90) is None
    with pytest.raises(OSError, match="home folder"):
        machine_code.keep(TEXT, 90)


def test_all_variants_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """In other processes, each variant for each architecture, and none twice."""
    few = {name: VARIANTS[name] for name in ("arrays/total", "programs/connected")}
    monkeypatch.setattr(ahead, "VARIANTS", few)
    assert ahead.compile_ahead(2, (80, 90)) == 6
    assert ahead.compile_ahead(2, (80, 90, 100)) == 3
    assert ahead.compile_ahead(2, (80, 90, 100)) == 0
    for name, variants in few.items():
        for defines in variants:
            assert machine_code.find(source.code(name, defines), 90) is not None


def test_architectures_that_the_compiler_does_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "VARIANTS", {"arrays/total": [{}]})
    monkeypatch.setattr(nvrtc, "getSupportedArchs", lambda: (70, 75, 80, 86))
    assert ahead.compile_ahead(1) == 2
    assert machine_code.find(source.code("arrays/total", {}), 90) is None


def test_order_of_macros_makes_no_difference() -> None:
    assert source.code("intersect", {"SIDE": 0, "SLOTS": 9}) == source.code("intersect", {"SLOTS": 9, "SIDE": 0})


def test_machine_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent() -> None:
        raise RuntimeError("libnvrtc.so.13 was not found")

    assert ahead.missing() == ""
    monkeypatch.setattr(nvrtc, "getVersion", absent)
    assert ahead.missing() == (
        "no NVRTC (libnvrtc.so.13 was not found): install edgemill[cu13] or cu12, which bring it"
    )
