"""What is released: one version everywhere, and a wheel and an sdist that install and run as the images do."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version

from in_process import call

ROOT = Path(__file__).resolve().parent.parent
INSTALL = ROOT / "docker" / "install.sh"
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
NOT_SOURCES = (".git", ".venv", "out", "build", "dist", "*.egg-info", "__pycache__", ".*_cache", ".hypothesis")
SHOWN = re.compile(
    r"edgemill(?:==|[:-])(\d+\.\d+[\w.]*?)(?=-cpu|-gpu|-py3|\.tar\.gz|\.whl|[\s`'\")\],;]|\.?$)", re.MULTILINE
)

ONLY_OURS = """
[mypy]
strict = True
follow_imports = skip
[mypy-edgemill.*]
follow_imports = normal
"""
"""Settings of mypy that leave out the packages that edgemill needs, which take most of the time."""


def run(*command: str | Path, folder: Path | None = None, **environment: str) -> str:
    """A command's output; its errors are the test's."""
    clean = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "PYTHONSAFEPATH"}}
    done = subprocess.run(command, cwd=folder, env=clean | environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def contents(wheel: Path) -> dict[str, str]:
    """The files of a wheel by the hash of what is in them."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: hashlib.sha256(archive.read(name)).hexdigest() for name in archive.namelist()}


def only(folder: Path, pattern: str) -> Path:
    [path] = folder.glob(pattern)
    return path


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment made by the steps of the images: the pinned builder, the pinned packages, the wheel."""
    folder = tmp_path_factory.mktemp("release")
    tree, builder, installed = folder / "tree", folder / "builder", folder / "installed"
    shutil.copytree(ROOT, tree, symlinks=True, ignore=shutil.ignore_patterns(*NOT_SOURCES))
    run(INSTALL, "packages", builder, ROOT / "docker" / "requirements-build.txt", PYTHON=sys.executable)
    build = (builder / "bin" / "python", "-m", "build", "--no-isolation")
    run(*build, "--outdir", folder / "dist", tree)  # the sdist, and the wheel from it
    run(*build, "--outdir", folder / "direct", "--wheel", tree)
    sdist, wheel = only(folder / "dist", "*.tar.gz"), only(folder / "dist", "*.whl")
    assert (sdist.name, wheel.name) == (f"edgemill-{VERSION}.tar.gz", f"edgemill-{VERSION}-py3-none-any.whl")
    assert contents(wheel) == contents(only(folder / "direct", "*.whl"))
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {path.relative_to(ROOT).as_posix() for path in sources()} <= names
    run(sys.executable, "-m", "twine", "check", "--strict", sdist, wheel)

    packages = ROOT / "docker" / "requirements-cpu.txt"
    run(INSTALL, "packages", installed, packages, PYTHON=sys.executable, PIP_COMPILE="0")
    assert run(INSTALL, "wheel", installed, wheel, PYTHON=sys.executable) == f"edgemill {VERSION}\n"
    return installed


def mined(installed: Path, folder: Path, *options: str, **environment: str) -> dict[str, Any]:
    """The manifest of a run by the command of the environment."""
    graph = ROOT / "tests" / "graphs" / "facebook_combined.parquet"
    command = installed / "bin" / "edgemill", "run", "--input", graph, "--output", "out", "--overwrite"
    run(*command, *options, folder=folder, **environment)
    manifest: dict[str, Any] = json.loads((folder / "out" / "manifest.json").read_text())
    assert manifest["counts"]["triangles"] == 1_612_010
    return manifest


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_from_the_sources_to_a_result(installed: Path, tmp_path: Path) -> None:
    check_import(installed / "bin" / "python", tmp_path / "user.py")
    assert mined(installed, tmp_path, "--device", "auto")["versions"]["edgemill"] == VERSION
    assert (tmp_path / "out" / "report.html").stat().st_size > 0
    pip = (sys.executable, "-m", "pip", "--python", installed / "bin" / "python", "--disable-pip-version-check")
    run(*pip, "check")  # the lock has all that the wheel asks for
    names = {package["name"] for package in json.loads(run(*pip, "list", "--format", "json"))}
    assert not [name for name in names if re.search(r"cu\d|cuda|cupy|rmm|ucx|nvidia", name)]


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_kernels_of_the_images_are_all_that_runs_call(installed: Path, tmp_path: Path) -> None:
    run(INSTALL, "kernels", installed)
    cache = tmp_path / "cache"
    for options in ((), ("--workers", "2", "--partitions", "2"), ("--method", "band")):
        mined(installed, tmp_path, "--device", "cpu", *options, EDGEMILL_CACHE_DIR=str(cache))
        assert not [*cache.rglob("*.nbc")], f"a run {options} compiled a kernel"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_wheel_with_compiled_kernels(installed: Path, tmp_path: Path) -> None:
    """It is for this Python, and brings the kernels where the cache looks for those of an environment."""
    python, kernels, tree = installed / "bin" / "python", tmp_path / "kernels", installed.parent / "tree"
    folder = Path(run(python, "-c", "from edgemill.kernels.runtime import cache; print(cache.folder())").strip())
    (kernels / folder.name).mkdir(parents=True)
    for name in ("kernel.nbi", "kernel.1.nbc", "rows-x86-64-v3.compiled", "rows.lock"):
        (kernels / folder.name / name).write_text(name)
    build = (installed.parent / "builder" / "bin" / "python", "-m", "build", "--no-isolation", "--wheel")
    run(*build, "--outdir", tmp_path, tree, EDGEMILL_KERNELS=str(kernels))
    tag = f"{sys.implementation.name[0]}p{sys.version_info[0]}{sys.version_info[1]}"
    wheel = only(tmp_path, f"edgemill-{VERSION}-{tag}-{tag}-manylinux_2_28_{platform.machine()}.whl")
    run(sys.executable, "-m", "twine", "check", "--strict", wheel)
    data = f"edgemill-{VERSION}.data/data/share/edgemill/kernels/{folder.name}/"
    names = {name for name in contents(wheel) if "/share/" in name}
    assert names == {data + name for name in ("kernel.nbi", "kernel.1.nbc", "rows-x86-64-v3.compiled")}
    assert {name for name in contents(only(installed.parent / "dist", "*.whl")) if ".dist-info" not in name} == {
        name for name in contents(wheel) if ".dist-info" not in name
    } - names


def check_import(python: Path, script: Path) -> None:
    """What is installed is imported, within the checkout too, and its types are there for those who use it."""
    found = run(
        python, "-c", "import edgemill; print(edgemill.__file__, edgemill.__version__, edgemill.Result)", folder=ROOT
    )
    file, version, shown = found.split(" ", 2)
    assert Path(file).is_relative_to(python.parents[1]) and version == VERSION and "edgemill" in shown
    config = script.with_name("mypy.ini")
    config.write_text(ONLY_OURS)
    check_types = (sys.executable, "-m", "mypy", "--config-file", config, "--python-executable", python)
    script.write_text('import edgemill\n\nreveal_type(edgemill.mine)\nedgemill.mine("rows", "out", partition=2)\n')
    checked = subprocess.run([*check_types, script], cwd=script.parent, capture_output=True, text=True)
    assert "-> edgemill.pipeline.results.result.Result" in checked.stdout
    assert checked.returncode == 1 and 'Unexpected keyword argument "partition"' in checked.stdout
    assert checked.stdout.count("error:") == 1


def sources() -> list[Path]:
    """What a clone has and an sdist must have too."""
    folders = ("package", "kernels", "tasks", "pipeline", "docker", "docs", "configs", "tests", "benchmarks")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file()]
    return [path for path in files if "__pycache__" not in path.parts]


def test_the_version_is_the_same_everywhere() -> None:
    assert call("--version").output == f"edgemill {VERSION}\n"
    planned = run("make", "--dry-run", "--no-print-directory", "images", folder=ROOT)
    assert re.search(rf"--tag edgemill:{re.escape(VERSION)}-\$target ", planned)
    pages = [
        ROOT / "README.md",
        *(path for folder in ("docs", "configs", "docker") for path in (ROOT / folder).rglob("*")),
    ]
    shown = {
        (path.relative_to(ROOT).as_posix(), found)
        for path in pages
        if path.suffix in {".md", ".yaml", ".yml", ".sbatch", ".sh", ".py", ".toml"} or path.name == "Dockerfile"
        for found in SHOWN.findall(path.read_text())
    }
    assert {found for _, found in shown} <= {VERSION}, shown


def test_the_metadata_has_the_licences() -> None:
    """METADATA of the installed package names each file that pyproject.toml names, and the file is beside it."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["license-files"]
    package = distribution("edgemill")
    assert package.metadata.get_all("License-File") == declared
    texts = [package.read_text(f"licenses/{name}") for name in declared]
    assert texts == [(ROOT / name).read_text() for name in declared]
    expression = package.metadata["License-Expression"]
    shown = {"Apache-2.0": "Apache License", "MIT": "Permission is hereby granted"}
    assert set(expression.split(" AND ")) == shown.keys()
    assert all(any(words in text for text in texts if text) for words in shown.values())


def test_the_changelog_begins_with_this_version() -> None:
    check_changelog(ROOT, VERSION)


def check_changelog(folder: Path, version: str) -> None:
    """A version under way is `[Unreleased]`; a release has its number and its day."""
    headings = re.findall(r"^## (.*)", (folder / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert f'\nversion = "{version}"' in (folder / "pyproject.toml").read_text()
    if Version(version).is_devrelease:
        assert headings[0] == "[Unreleased]"
    else:
        assert re.fullmatch(rf"\[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d", headings[0])
    released = [
        re.fullmatch(r"\[(\S+)\] - \d{4}-\d\d-\d\d", heading) for heading in headings if heading != "[Unreleased]"
    ]
    numbers = [Version(found[1]) for found in released if found]
    assert len(numbers) == len(released)
    assert numbers == sorted(numbers, reverse=True)
    assert not numbers or numbers[0] <= Version(version)


def test_the_steps_of_a_release(tmp_path: Path) -> None:
    """What docs/releasing.md says of the number, done to a copy: a release, then the version after it."""
    for name in ("pyproject.toml", "CHANGELOG.md", "README.md"):
        shutil.copy(ROOT / name, tmp_path)
    for name in ("docs", "configs", "docker"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "page.md").write_text(f"image: registry.example.com/edgemill:{VERSION}-cpu\n")
    shutil.copytree(ROOT / "configs" / "kubernetes", tmp_path / "configs" / "kubernetes")
    run("git", "init", "--quiet", folder=tmp_path)
    run("git", "add", ".", folder=tmp_path)
    page = (ROOT / "docs" / "releasing.md").read_text()
    blocks = re.findall(r"^\*\*(\d)\..*?^```\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    first, last = (re.sub(r"^git (commit|push).*\n", "", dict(blocks)[step], flags=re.MULTILINE) for step in "17")
    for script, number in ((first, "NEW"), (first + last, "NEXT")):
        run("git", "checkout", "--quiet", ".", folder=tmp_path)
        version = run("bash", "-euc", f"{script}\necho ${number}", folder=tmp_path).strip()
        assert Version(version).is_devrelease == (number == "NEXT")
        check_changelog(tmp_path, version)
        assert {(tmp_path / name / "page.md").read_text() for name in ("docs", "configs", "docker")} == {
            f"image: registry.example.com/edgemill:{version}-cpu\n"
        }
        named = {file.name: file.read_text() for file in (tmp_path / "configs" / "kubernetes").iterdir()}
        assert [name for name, text in named.items() if VERSION in text and version != VERSION] == []
        assert f"tag: {version}-gpu" in named["helm-gpu.yaml"]
