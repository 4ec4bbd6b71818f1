"""Make what editors and type checkers need as text, since they read source alone. Tests say when it is out of date.

python docs/making/keywords.py

It makes pipeline/python_api/keywords.py from the settings: the keywords of `edgemill.mine`, with their types. And it
copies the public names in pipeline/__init__.py to package/__init__.py.
"""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

from edgemill.pipeline.settings.declared_programs import field_docstrings
from edgemill.pipeline.settings.models import SECTIONS
from edgemill.pipeline.settings.sources import KEYWORDS

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "pipeline" / "python_api" / "keywords.py"
PACKAGE = ROOT / "package" / "__init__.py"
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


def package_with_names() -> str:
    """The text of package/__init__.py, with the public names of the pipeline."""
    listed = (ROOT / "pipeline" / "__init__.py").read_text(encoding="utf-8")
    found = [*re.findall(r"^    from \.\S+ import (\w+) as \1$", listed, re.MULTILINE), "__version__"]
    names = sorted(found, key=lambda name: (not name[0].isupper(), name.lower()))  # as ruff sorts
    lines = "".join(f"    from .pipeline import {name} as {name}\n" for name in names)
    before, start, rest = PACKAGE.read_text(encoding="utf-8").partition("if TYPE_CHECKING:")
    first, _, rest = rest.partition("\n")
    rest = re.sub(r"^    from \.pipeline import .*\n", "", rest, flags=re.MULTILINE)
    return f"{before}{start}{first}\n{lines}{rest}"


def main() -> None:
    """Write each module that is not what it should be."""
    for file, text in ((FILE, made()), (PACKAGE, package_with_names())):
        if file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")
            print(file.relative_to(ROOT))


if __name__ == "__main__":
    main()
