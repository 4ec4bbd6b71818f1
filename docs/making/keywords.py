"""Make pipeline/calls/keywords.py and programs.py from the settings and the catalogue of vertex programs: the keywords
of `edgemill.mine`, and a function for each program, with their types.

python docs/making/keywords.py

Editors and type checkers read source alone, so the types of the keywords must stand there as text. A test says when
they are not those of the settings.
"""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import get_args

from edgemill.pipeline.messages.docstrings import field_docstrings
from edgemill.pipeline.programs.catalogue import CATALOGUE, Entry
from edgemill.pipeline.settings.models import SECTIONS
from edgemill.pipeline.settings.sources import KEYWORDS
from edgemill.tasks.inputs.formats.formats import FormatChoice

FILE = Path(__file__).resolve().parents[2] / "pipeline" / "calls" / "keywords.py"
PROGRAMS = FILE.with_name("programs.py")
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
HEAD_OF_PROGRAMS = '''"""A function for each vertex program, made by docs/making/keywords.py: do not edit.

A function runs its program alone, without λ. `edges` is what `edgemill.mine` takes: a path, a list of paths, a table or
a graph. Further keywords are those of `mine`, such as `directed`, `where`, `workers`, `client` and `output`. Errors are
those of `mine`. The result is the table of vertices, a pyarrow dataset (`to_pandas`, `to_polars`, `to_arrow`, …).
"""

from __future__ import annotations

{imports}

from ..cluster.client import Client
from ..results.frames.table import ResultTable
from .keywords import RunKeywords
from .running import columns_of
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
    of_programs = {entry.section for entry in CATALOGUE.values() if entry.section is not None} | {"programs"}
    apart = {name for name in every if name in of_programs or KEYWORDS.get(name, "").partition(".")[0] in of_programs}
    about = "What all functions that run take by name: whole sections of settings, and single settings."
    parts.append(_class("RunKeywords", about, {name: own for name, own in every.items() if name not in apart}))
    about = "What `mine` takes by name: also which programs run, and their parameters."
    parts.append(_class("Keywords", about, {name: own for name, own in every.items() if name in apart}, "RunKeywords"))
    return _formatted("\n\n".join(parts))


def made_programs() -> str:
    """The text of the module of programs, as the catalogue and the settings say now."""
    functions = "\n\n".join(_function(name, entry) for name, entry in CATALOGUE.items())
    imports = "from collections.abc import Sequence\n" if "Sequence[" in functions else ""
    imports += f"from typing import Any{', Literal' if 'Literal[' in functions else ''}, Unpack"
    return _formatted(HEAD_OF_PROGRAMS.replace("{imports}", imports) + "\n\n" + functions)


def _function(name: str, entry: Entry) -> str:
    fields = {} if entry.section is None else _fields(entry.section)
    model = SECTIONS[entry.section].model_fields if entry.section else {}
    parameters = [f"{field}: {kind} = {model[field].default!r}" for field, (kind, _) in fields.items()]
    keywords = ", ".join([*parameters, "client: Client | None = None", "progress: bool | None = None"])
    title = entry.title if len(entry.title) < 110 else "\n    ".join(textwrap.wrap(entry.title, 110))
    lines = [
        f"def {name}(edges: Any, /, *, {keywords}, **settings: Unpack[RunKeywords]) -> ResultTable:",
        f'    """{title}',
        "",
    ]
    own = entry.edges or entry.columns
    columns, meanings = ", ".join(f"`{c.name}`" for c in own), " ".join(f"`{c.name}`: {c.meaning}" for c in own)
    first = "Columns: `id`, `degree`"
    if entry.edges:
        first = "The result is the table of edges, of a run with λ. Columns: both ids, `support`, `lambda`"
    about = [f"{first}, {columns}. {meanings}"]
    about += [f"`{field}`: {meaning}" for field, (_, meaning) in fields.items()]
    for paragraph in about:
        lines += [f"    {line}" for line in textwrap.wrap(paragraph, 115)] + [""]
    given = ", ".join(f'"{field}": {field}' for field in fields)
    lines[-1] = '    """'
    return "\n".join([*lines, f'    return columns_of("{name}", edges, {{{given}}}, client, progress, settings)'])


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
    text = ast.unparse(annotation).replace("tuple[str, ...]", "Sequence[str]")
    return text.replace("FormatChoice", f"Literal{list(get_args(FormatChoice))}")


def _formatted(text: str) -> str:
    command = (sys.executable, "-m", "ruff", "format", "--stdin-filename", str(FILE), "-")
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True, cwd=FILE.parent).stdout


def main() -> None:
    """Write the modules that are not what the settings say."""
    for file, text in ((FILE, made()), (PROGRAMS, made_programs())):
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")
            print(file.relative_to(file.parents[2]))


if __name__ == "__main__":
    main()
