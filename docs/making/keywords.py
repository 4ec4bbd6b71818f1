"""Make pipeline/python_api/keywords.py from the settings: the keywords of `edgemill.mine`, with their types.

python docs/making/keywords.py

Editors and type checkers read source alone, so the types of the keywords must stand there as text. A test says when
they are not those of the settings.
"""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path

from edgemill.pipeline.settings.declared_programs import field_docstrings
from edgemill.pipeline.settings.models import SECTIONS
from edgemill.pipeline.settings.sources import KEYWORDS

FILE = Path(__file__).resolve().parents[2] / "pipeline" / "python_api" / "keywords.py"
PATHS = frozenset(
    (
        "checkpoint.path",
        "cluster.local_directory",
        "cluster.scheduler_file",
        "cluster.tls_ca_file",
        "cluster.tls_cert_file",
        "cluster.tls_key_file",
        "input.path",
        "input.vertices",
        "monitoring.performance_report",
        "monitoring.textfile",
        "output.path",
    )
)
"""Settings that are text and take an `os.PathLike` from Python, too."""
OR_FRAMES = ("input.vertices",)
"""Settings that take a table of another library from Python, too."""
Fields = dict[str, tuple[str, str]]
"""Of each setting its type, as source, and its meaning."""
HEAD = '''"""The keywords of `edgemill.mine`, made by docs/making/keywords.py from the settings: do not edit."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict
'''


def made() -> str:
    """The text of the module, as the settings say now."""
    sections = {section: _fields(section) for section in SECTIONS}
    parts = [HEAD]
    whole: Fields = {}
    for section, model in SECTIONS.items():
        about = str(model.__doc__)
        parts.append(_class(_class_name(section), about, sections[section]))
        kind = f"{_class_name(section)} | Mapping[str, Any]"  # code that makes a section need not name its type
        path = sections[section][KEYWORDS[section].partition(".")[2]][0] if section in KEYWORDS else None
        whole[section] = (kind if path is None else f"{path} | {kind}", about)
    alone = {name: setting.split(".") for name, setting in KEYWORDS.items() if name not in SECTIONS}
    single = {name: sections[section][last] for name, (section, last) in alone.items()}
    every = whole | single
    apart = {name for name in every if "programs" in (name, KEYWORDS.get(name, "").partition(".")[0])}
    about = "What all functions that run take by name: whole sections of settings, and single settings."
    parts.append(_class("RunKeywords", about, {name: own for name, own in every.items() if name not in apart}))
    about = "What `mine` takes by name: also which programs run."
    parts.append(_class("Keywords", about, {name: own for name, own in every.items() if name in apart}, "RunKeywords"))
    return _formatted("\n\n".join(parts))


def _class_name(section: str) -> str:
    return f"{section.capitalize()}Section"


def _class(name: str, about: str, fields: Fields, base: str = "TypedDict") -> str:
    lines = [f"class {name}({base}, total=False):", f'    """{about}"""', ""]
    for field, (kind, meaning) in fields.items():
        lines += [f"    {field}: {kind}", f'    """{meaning}"""']
    return "\n".join(lines)


def _fields(section: str) -> Fields:
    model = SECTIONS[section]
    (definition,) = ast.parse(inspect.getsource(model)).body
    assert isinstance(definition, ast.ClassDef)
    found: Fields = {}
    about = field_docstrings(model)
    for node in definition.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            name = node.target.id
            if name in model.model_fields:
                kind = _kind(node.annotation)
                if f"{section}.{name}" in PATHS:
                    kind = kind.replace("str", "str | os.PathLike[str]")
                if f"{section}.{name}" in OR_FRAMES:
                    kind = "Any"
                found[name] = (kind, " ".join(about[name].split()))
    assert found.keys() == model.model_fields.keys(), section
    return found


def _kind(annotation: ast.expr) -> str:
    """The type, without what pydantic is told beside it."""
    match annotation:
        case ast.Subscript(value=ast.Name(id="Annotated"), slice=ast.Tuple(elts=[kind, *_])):
            annotation = kind
    return ast.unparse(annotation).replace("tuple[str, ...]", "Sequence[str]")


def _formatted(text: str) -> str:
    command = (sys.executable, "-m", "ruff", "format", "--stdin-filename", str(FILE), "-")
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True, cwd=FILE.parent).stdout


def main() -> None:
    """Write the module if it is not what the settings say."""
    text = made()
    if FILE.read_text(encoding="utf-8") != text:
        FILE.write_text(text, encoding="utf-8")
        print(FILE.relative_to(FILE.parents[2]))


if __name__ == "__main__":
    main()
