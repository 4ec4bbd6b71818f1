"""Draws docs/pictures/rooms.svg: the rooms of the code, and which of them an edge passes in each stage of a run.

python docs/making/rooms.py

All of it is read from the code: rooms are packages, a stage is a `with events.stage(NAME, …)` block, and the rooms of a
stage are those of the functions and classes that the block names, directly or through other functions.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from drawing import arrow, box, document, text

ROOT = Path(__file__).resolve().parents[2]
PICTURE = ROOT / "docs" / "pictures" / "rooms.svg"
LAYERS = ("pipeline", "tasks", "kernels")
FOLLOWED = ("pipeline.run", "pipeline.stages", "pipeline.bounding", "tasks", "kernels")
"""Rooms whose definitions are followed. Those of the cluster, settings and events serve every stage alike."""
SHOWN = ("pipeline.run", "pipeline.stages", "pipeline.bounding", "tasks.", "kernels.cpu")
"""Rooms that are shown in the column of a stage. Those of the GPU have the names of the CPU's."""
HIDDEN = {"tasks.storage", "tasks.errors", "tasks.device"}


@dataclass(frozen=True)
class Definition:
    """A function, class or block of a module."""

    module: str
    node: ast.AST


class Code:
    """The modules of the product by their names without `edgemill.`, and what their names are bound to."""

    def __init__(self, root: Path) -> None:
        files = sorted(path for layer in LAYERS for path in (root / layer).rglob("*.py"))
        self.trees = {_module(path.relative_to(root)): ast.parse(path.read_text(encoding="utf-8")) for path in files}
        self.packages = {_module(path.relative_to(root)) for path in files if path.name == "__init__.py"}

    def rooms(self, layer: str) -> list[str]:
        """Packages directly below a layer."""
        return sorted(name for name in self.packages if name.count(".") == 1 and name.startswith(f"{layer}."))

    def stages(self) -> tuple[str, ...]:
        """Names of the stages, in their order."""
        for node in self.trees["pipeline.events"].body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "STAGES":
                return tuple(ast.literal_eval(node.value))
        raise LookupError("pipeline/events.py has no STAGES")

    def blocks(self, stage: str) -> list[Definition]:
        """The `with` blocks of a stage."""
        return [
            Definition(module, node)
            for module, node in self._with_blocks
            if any(_names_stage(item.context_expr, stage) for item in node.items)
        ]

    @cached_property
    def _with_blocks(self) -> list[tuple[str, ast.With]]:
        """Every `with` block, and its module. To walk through all of the code takes longer than all else here."""
        return [
            (name, node) for name, tree in self.trees.items() for node in ast.walk(tree) if isinstance(node, ast.With)
        ]

    def rooms_of(self, stage: str) -> set[str]:
        """The rooms that a stage passes."""
        todo, seen = self.blocks(stage), set()
        while todo:
            one = todo.pop()
            if one in seen:
                continue
            seen.add(one)
            todo += [other for other in self._named(one) if other.module.startswith(FOLLOWED)]
        rooms = {self._room(one.module) for one in seen}
        return {room for room in rooms if room.startswith(SHOWN) and room not in HIDDEN}

    def _room(self, module: str) -> str:
        if module in self.packages:
            return module
        package = module.rpartition(".")[0]
        return package if package.startswith("kernels") else ".".join(package.split(".")[:2])

    def _named(self, one: Definition) -> Iterator[Definition]:
        """Definitions that a definition names."""
        bound = self._bindings(one.module)
        for node in _walk_without_types(one.node):
            if isinstance(node, ast.Name) and node.id in bound:
                yield from self._resolve(*bound[node.id])
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in bound:
                module, name = bound[node.value.id]
                whole = f"{module}.{name}" if name else module
                if whole in self.trees:
                    yield from self._resolve(whole, node.attr)
                if whole == "kernels":  # picks the backend by array type
                    yield from self._resolve("kernels.cpu", node.attr)

    @cache  # noqa: B019 — there is one Code in a process
    def _bindings(self, module: str) -> dict[str, tuple[str, str]]:
        """Each name of a module: the module that has it, and its name there; "" for a module itself."""
        tree, found = self.trees[module], {}
        package = module.split(".") if module in self.packages else module.split(".")[:-1]
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.level:
                base = ["edgemill", *package]
                whole = ".".join([*base[: len(base) - node.level + 1], *([node.module] if node.module else [])])
                whole = whole.removeprefix("edgemill").removeprefix(".")
                for alias in node.names:
                    inner = f"{whole}.{alias.name}".removeprefix(".")
                    target = (inner, "") if inner in self.trees else (whole, alias.name)
                    found[alias.asname or alias.name] = target
        found.update({node.name: (module, node.name) for node in tree.body if isinstance(node, _DEFINES)})
        return found

    def _resolve(self, module: str, name: str, depth: int = 8) -> Iterator[Definition]:
        if module not in self.trees or not name or not depth:
            return
        for node in self.trees[module].body:
            if isinstance(node, _DEFINES) and node.name == name:
                yield Definition(module, node)
                return
        bound = self._bindings(module).get(name)
        if bound and bound != (module, name):
            yield from self._resolve(*bound, depth - 1)


_DEFINES = (ast.FunctionDef, ast.ClassDef)


def _module(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _walk_without_types(node: ast.AST) -> Iterator[ast.AST]:
    """Every node below one, except those of annotations."""
    todo = [node]
    while todo:
        one = todo.pop()
        yield one
        for name, value in ast.iter_fields(one):
            if name not in {"annotation", "returns"}:
                todo += [
                    child for child in (value if isinstance(value, list) else [value]) if isinstance(child, ast.AST)
                ]


def _names_stage(expression: ast.expr, stage: str) -> bool:
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "stage"
        and bool(node.args)
        and isinstance(node.args[0], ast.Constant)
        and node.args[0].value == stage
        for node in ast.walk(expression)
    )


def drawn(code: Code | None = None) -> str:
    """The picture of `code`, this project's unless given, as SVG."""
    code = code or Code(ROOT)
    stages = code.stages()
    wide, left = 132, 96
    width = left + wide * len(stages) + 10
    parts, top = [text((14, 30), "Rooms beside the way of an edge", size=15)], 44
    passed = {stage: code.rooms_of(stage) for stage in stages}
    in_path = {room for rooms in passed.values() for room in rooms}
    for layer in LAYERS:
        others = [room for room in code.rooms(layer) if not any(one.startswith(room) for one in in_path)]
        parts.append(text((14, top + 17), f"{layer}/", "quiet"))
        columns = 7
        for at, room in enumerate(others):
            spot = (left + wide * (at % columns), top + 30 * (at // columns))
            parts.append(box(*spot, wide - 10, 24, room.partition(".")[2]))
        top += 30 * max(1, -(-len(others) // columns)) + 8
    top += 34
    parts.append(text((14, top - 8), "The way of an edge: the rooms of each stage", size=15))
    for at, stage in enumerate(stages):
        parts.append(box(left + wide * at, top, wide - 24, 26, f"<tspan font-weight='bold'>{stage}</tspan>"))
        if at:
            parts.append(arrow((left + wide * at - 24, top + 13), (left + wide * at - 2, top + 13)))
    parts.append(text((14, top + 18), "stage", "quiet"))
    top += 44
    for layer in LAYERS:
        columns_of = [sorted(room for room in passed[stage] if room.startswith(f"{layer}.")) for stage in stages]
        parts.append(text((14, top + 17), f"{layer}/", "quiet"))
        for at, rooms in enumerate(columns_of):
            for row, room in enumerate(rooms):
                parts.append(box(left + wide * at, top + 28 * row, wide - 24, 22, room.partition(".")[2]))
        top += 28 * max(1, *map(len, columns_of)) + 12
    parts.append(text((14, top + 8), "Imports go downwards: pipeline → tasks → kernels.", "quiet", size=12))
    return document(width, top + 22, "The rooms of the code, and the way of an edge through them", parts)


if __name__ == "__main__":
    PICTURE.write_text(drawn(), encoding="utf-8")
    print(PICTURE.relative_to(ROOT))
