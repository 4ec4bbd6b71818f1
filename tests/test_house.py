"""The house's own rules: who may import whom, what is packaged, what a light install leaves out, what names say."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib.metadata import version
from pathlib import Path

import pytest

import edgemill
import edgemill.pipeline
from edgemill.pipeline.settings.declared_programs import shipped_names

ROOT = Path(__file__).resolve().parent.parent
LAYERS = ("kernels", "tasks", "pipeline")  # each may import itself and what stands before it
FOLDERS = {"package": "edgemill", **{layer: f"edgemill.{layer}" for layer in LAYERS}}  # under their installed names
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
SOURCES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
GROUND = ("messages", "settings", "output", "events", "results", "monitor")
READING = ("queries", "compare", "report", "explorer", "notebook")
WRITING = (
    "cluster",
    "inputs",
    "stages",
    "checkpoint",
    "programs",
    "plan",
    "bounding",
    "nightly",
    "opening",
    "updating",
    "run",
    "estimates",
)
ENTRANCES = ("networkx_backend", "python_api", "cli", "preload", "__main__")
"""Rooms of `pipeline/`: those that the two wings share, the wing that reads results, the wing that makes them, and what
a user starts. A room may import those before it in its wing, and those that both wings share. Entrances may import all.
"""
TIES = {
    ("run", "report"): "a run makes the report of its result at its end",
    ("results", "notebook"): "IPython asks a result for its HTML, which needs queries",
}
"""Other ties of rooms, with their reasons."""
ONLY_IN = {
    "kernels": {"numba", "llvmlite", "cupy", "cupyx"},
    "pipeline/cluster": {"dask", "distributed", "dask_cuda", "dask_cudf", "distributed_ucxx", "ucxx"},
}
NAMES_THAT_SAY_NOTHING = {"util", "utils", "helper", "helpers", "manager", "process", "data"}
PROMISES = re.compile("|".join(("TODO", "FIXME", "XXX", "NotImplementedError")))


def module_name(path: Path) -> str:
    folder, *parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join((FOLDERS[folder], *(parts[:-1] if parts[-1] == "__init__" else parts)))


MODULES = {module_name(path): path for path in SOURCES}


@cache
def tree_of(path: Path) -> ast.Module:
    """A source as a tree; parsed by the tests alone, since every process of tests imports this module."""
    return ast.parse(path.read_text())


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of `tree_of`; to walk through a tree takes longer than to parse it, and most tests ask for all."""
    return tuple(ast.walk(tree_of(path)))


@cache
def imported(path: Path) -> tuple[tuple[str, bool], ...]:
    """Every module that a file imports anywhere, in full, and whether by a relative import."""
    return tuple(_imported(path))


def _imported(path: Path) -> Iterator[tuple[str, bool]]:
    package = module_name(path).split(".")
    if path.name != "__init__.py":
        package.pop()
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            yield from ((alias.name, False) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            whole = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                inner = f"{whole}.{alias.name}"
                yield (inner if inner in MODULES else whole), node.level > 0


def test_layers_import_downwards_and_by_relative_imports() -> None:
    wrong = []
    order = ["edgemill.kernels", "edgemill.tasks", "edgemill.pipeline", "edgemill"]  # by the first two parts of a name
    for path in SOURCES:
        own = order.index(FOLDERS[path.relative_to(ROOT).parts[0]])
        for name, relative in imported(path):
            first = name.partition(".")[0]
            if first in FOLDERS or (first == "edgemill" and not relative):
                wrong.append(f"{path.relative_to(ROOT)}: {name} is not a relative import")
            elif relative and order.index(".".join(name.split(".")[:2])) > own:
                wrong.append(f"{path.relative_to(ROOT)}: {name} lies above")
    assert not wrong


def named_modules(path: Path) -> Iterator[str]:
    """Modules that a file imports by `import_module` with a relative name."""
    package = module_name(path).split(".")
    if path.name != "__init__.py":
        package.pop()
    for node in nodes_of(path):
        if isinstance(node, ast.Call) and "import_module" in ast.unparse(node):
            for given in node.args:
                if isinstance(given, ast.Constant) and isinstance(given.value, str) and given.value.startswith("."):
                    base = module_name(path).split(".") if "__name__" in ast.unparse(node) else package
                    name = given.value.lstrip(".")
                    yield ".".join([*base[: len(base) - (len(given.value) - len(name)) + 1], name])


def room_of(module: str) -> str:
    """The room of a module of `pipeline/`; empty for others, and for `pipeline` itself."""
    layer, _, inner = module.removeprefix("edgemill.").partition(".")
    return inner.partition(".")[0] if layer == "pipeline" else ""


def test_rooms_of_the_pipeline_import_those_before_them() -> None:
    """Imports within functions count, too."""
    may = {room: {*GROUND[: GROUND.index(room)]} for room in GROUND}
    for wing in (READING, WRITING):
        may |= {room: {*GROUND, *wing[: wing.index(room)]} for room in wing}
    may |= {room: {*GROUND, *READING, *WRITING, *ENTRANCES} for room in ENTRANCES}
    assert may.keys() == {room for name in MODULES if (room := room_of(name))}
    ties: dict[tuple[str, str], list[str]] = {}
    for path in SOURCES:
        here = room_of(module_name(path))
        for name in (*(name for name, _ in imported(path)), *named_modules(path)):
            there = room_of(name)
            if here and there and there != here and there not in may[here]:
                ties.setdefault((here, there), []).append(f"{path.relative_to(ROOT)}: {name}")
    assert not {tie: names for tie, names in ties.items() if tie not in TIES}
    assert ties.keys() == TIES.keys()


def test_engines_stay_in_their_room() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in SOURCES
        for name, _ in imported(path)
        for room, engines in ONLY_IN.items()
        if name.partition(".")[0] in engines and not path.is_relative_to(ROOT / room)
    ]
    assert not wrong


def evaluations(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """What would run, or make objects of, what it is given."""
    for node in nodes:
        match node:
            case ast.Call(func=ast.Name(id="eval" | "exec" | "compile" | "__import__" as name)):
                yield name
            case ast.Attribute(value=ast.Name(id="yaml"), attr=name) if "load" in name and name != "safe_load":
                yield f"yaml.{name}"
            case ast.Call(func=ast.Attribute(value=ast.Name(id="np" | "numpy"), attr="load")):
                yield "np.load"
            case ast.keyword(arg="allow_pickle", value=value) if ast.unparse(value) != "False":
                yield "allow_pickle"


def test_nothing_is_unpickled_or_evaluated() -> None:
    """Input, checkpoints and settings are data. (Tasks and results travel between workers as Dask pickles them.)"""
    wrong = [f"{path.relative_to(ROOT)}: {name}" for path in SOURCES for name in evaluations(nodes_of(path))]
    wrong += [
        f"{path.relative_to(ROOT)}: {name}"
        for path in SOURCES
        for name, _ in imported(path)
        if name.partition(".")[0] in {"pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib"}
    ]
    assert not wrong


@pytest.mark.parametrize(
    "text",
    [
        "eval(x)",
        "exec(x)",
        "yaml.load(x)",
        "yaml.unsafe_load(x)",
        "np.load(x)",
        "read_array(x, allow_pickle=True)",
        "read_array(x, allow_pickle=given)",
    ],
)
def test_the_rule_would_notice(text: str) -> None:
    assert list(evaluations(ast.walk(ast.parse(text))))
    assert not list(
        evaluations(ast.walk(ast.parse("yaml.safe_load(x); re.compile(x); read_array(x, allow_pickle=False)")))
    )


def test_shapes_of_arrays_like_others_are_tuples() -> None:
    """`cupy.zeros_like(a, shape=0)` has the shape of `a`, since CuPy takes 0 for no shape."""
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in SOURCES
        for node in nodes_of(path)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr.endswith("_like")
        for keyword in node.keywords
        if keyword.arg == "shape" and not isinstance(keyword.value, ast.Tuple)
    ]
    assert not wrong


def test_no_circles() -> None:
    graph = {module: {name for name, _ in imported(path) if name in MODULES} for module, path in MODULES.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as circle:
        pytest.fail(" → ".join(circle.args[1]))


def test_folders_are_packages() -> None:
    """setup.py finds folders with an `__init__.py`."""
    files = {path for folder in FOLDERS for path in (ROOT / folder).rglob("*")}
    folders = {path.parent for path in files if path.suffix in {".py", ".cu", ".cuh"}}
    assert all((folder / "__init__.py").exists() for folder in folders)
    assert all((ROOT / folder / "py.typed").exists() for folder in FOLDERS)
    assert PROJECT["tool"]["setuptools"]["package-dir"] == {name: folder for folder, name in FOLDERS.items()}


def test_no_folder_of_the_checkout_hides_the_installed_package() -> None:
    """Whoever has installed a wheel and works in the checkout imports what is installed."""
    assert not (ROOT / "edgemill").exists() and not (ROOT / "edgemill.py").exists()


def test_what_is_not_python_is_packaged() -> None:
    patterns = PROJECT["tool"]["setuptools"]["package-data"]
    folders = {name: path.parent for name, path in MODULES.items() if path.name == "__init__.py"}
    globs = {name: [*patterns["*"], *patterns.get(name, [])] for name in folders}
    packaged = {path for name, folder in folders.items() for glob in globs[name] for path in folder.glob(glob)}
    files = {path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.is_file()}
    others = {path for path in files if path.suffix != ".py"}
    assert not {path for path in others - packaged if path.parent.name != "__pycache__"}


def test_type_checker_sees_the_folders() -> None:
    shown = ROOT / ".typing" / "edgemill"
    assert all((shown / layer).resolve() == ROOT / layer for layer in LAYERS)
    assert all((shown / name).resolve() == ROOT / "package" / name for name in ("__init__.py", "py.typed"))
    assert (ROOT / ".typing" / "tests").resolve() == ROOT / "tests"


def test_light_install_has_no_gpu_package() -> None:
    assert not [
        text for text in PROJECT["project"]["dependencies"] if re.search(r"cu\d|cuda|cupy|cudf|rmm|ucx|nvidia", text)
    ]


def test_importing_the_public_api_loads_nothing_heavy() -> None:
    heavy = ("numba", "llvmlite", "cupy", "distributed", "dask_cuda", "pyarrow", "pandas", "scipy", "bokeh", "jinja2")
    ask = f"import sys, edgemill, edgemill.pipeline.cli; print(*sys.modules.keys() & set({heavy}))"
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_an_update_loads_no_dask() -> None:
    """And a run that computes nothing loads no kernels either."""
    ask = """
import sys, edgemill.pipeline.run.mining, edgemill.pipeline.python_api.update_settings
import edgemill.pipeline.updating.beginning
print(*sys.modules.keys() & {"numba", "llvmlite", "dask", "distributed", "bokeh"})
import edgemill.pipeline.updating.updating
print(*sys.modules.keys() & {"dask", "distributed", "bokeh"})
"""
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_type_checkers_see_the_public_names() -> None:
    """Those that are loaded at first use, under the same names, in `edgemill` and in `edgemill.pipeline`."""
    for module in (edgemill, edgemill.pipeline):
        tree = tree_of(Path(str(module.__file__)))
        seen = {
            alias.asname or alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        assert set(module.__all__) - {"__version__", *shipped_names()} <= seen
        assert dir(module) == sorted(dir(module)) and set(module.__all__) <= set(dir(module))
        assert all(hasattr(module, name) for name in module.__all__)
    names, pipeline_names = (vars(module)["__all__"] for module in (edgemill, edgemill.pipeline))
    assert names == sorted([*pipeline_names, "run"]) == dir(edgemill)


def test_the_version_stands_in_one_place() -> None:
    number = PROJECT["project"]["version"]
    assert version("edgemill") == number
    assert not [path for path in SOURCES if number in path.read_text()]


def definitions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    for node in nodes_of(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node


def test_public_functions_and_classes_say_what_they_are() -> None:
    silent = [
        f"{path.relative_to(ROOT)}: {node.name}"
        for path in SOURCES
        for node in tree_of(path).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and not node.name.startswith("_")
        and not ast.get_docstring(node)
    ]
    assert not silent


def words(name: str) -> set[str]:
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)}


def test_names_say_something_and_nothing_is_put_off() -> None:
    names = [(path, path.stem) for path in SOURCES]
    names += [(path, node.name) for path in SOURCES for node in definitions(path)]
    assert not [f"{path.relative_to(ROOT)}: {name}" for path, name in names if words(name) & NAMES_THAT_SAY_NOTHING]
    assert not [str(path.relative_to(ROOT)) for path in SOURCES if PROMISES.search(path.read_text())]
