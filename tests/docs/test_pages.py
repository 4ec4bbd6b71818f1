"""What the pages of docs/ say is what the code says and what the commands print."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pyarrow.parquet as pq
import pytest
import yaml

import edgemill
import pictures
import reference
import tutorial
from backends import devices
from edgemill.pipeline import cli
from edgemill.pipeline.settings.declared_programs import every_shipped
from edgemill.pipeline.settings.models import SECTIONS
from edgemill.pipeline.settings.sources import SHORT_NAMES, load_settings
from edgemill.tasks.publish.dense_tables import GROUPS_OF_PROGRAM
from edgemill.tasks.publish.writing import EDGE_VALUE_COLUMNS

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = [
    *sorted(DOCS.glob("*.md")),
    *sorted(DOCS.glob("engineering/*.md")),
    *(DOCS.parent / name for name in ("README.md", "SECURITY.md", "CONTRIBUTING.md")),
]
SETTINGS = {f"{section}.{name}" for section, holder in SECTIONS.items() for name in holder.model_fields}
SETTINGS |= {f"{name}.{key}" for name, program in every_shipped().items() for key in program.parameters}


@pytest.fixture(scope="module")
def rerun(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The tutorial as it comes out now, and the folder that it ran in."""
    if devices():
        pytest.skip("the page shows a machine without a GPU")
    folder = tmp_path_factory.mktemp("tutorial")
    (folder / "tests").symlink_to(DOCS.parent / "tests")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield tutorial.rerun(tutorial.PAGE.read_text(encoding="utf-8"), folder), folder


def test_the_tutorial_prints_what_it_says(rerun: tuple[str, Path]) -> None:
    """Slow machines, other ports, other days: nothing else may differ."""
    page = tutorial.PAGE.read_text(encoding="utf-8")
    masked = [tutorial.VARIES.sub("…", one).splitlines() for one in (page, rerun[0])]
    assert masked[0] == masked[1], "run python docs/making/tutorial.py"
    assert len(tutorial.BLOCK.findall(page)) > 10


def test_the_page_of_two_sided_tables_prints_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tests").symlink_to(DOCS.parent / "tests")
    monkeypatch.chdir(tmp_path)
    page = (DOCS / "two-sided-tables.md").read_text(encoding="utf-8")
    again = tutorial.rerun(page, tmp_path)
    assert tutorial.same(page, again), "run python docs/making/tutorial.py"
    assert len(tutorial.BLOCK.findall(page)) == 6 and "No files" not in again


def test_a_changed_answer_would_be_seen(rerun: tuple[str, Path]) -> None:
    page = rerun[0]
    assert tutorial.same(page, page)
    assert tutorial.same(page, re.sub(r"seconds     [\d.]+", "seconds     12.34", page))
    for old, new in (
        ("88,234 ", "88,235 "),
        ("0.9370", "0.9371"),
        ("DN-graphs   7", "DN-graphs   8"),
        ("ok  ", "no  "),
    ):
        assert old in page and not tutorial.same(page, page.replace(old, new, 1))


def test_the_readme_shows_the_same() -> None:
    """README.md shows what `make run` prints at its end."""
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    shown = [
        block
        for block in re.findall(r"^```\w*\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
        if "1912" in block or "88,234" in block
    ]
    page = tutorial.VARIES.sub("…", tutorial.PAGE.read_text(encoding="utf-8"))
    assert len(shown) == 1
    assert all(tutorial.VARIES.sub("…", block) in page for block in shown)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_python_and_settings_files_on_pages_are_valid(path: Path, tmp_path: Path) -> None:
    """Python parses, and names of ours are there; YAML by sections of ours is what `edgemill run` reads."""
    for kind, block in re.findall(r"^```(python|yaml)\n(.*?)^```$", path.read_text("utf-8"), re.MULTILINE | re.DOTALL):
        if kind == "python":
            for node in ast.walk(ast.parse(block)):
                if isinstance(node, ast.ImportFrom) and node.module in ("edgemill", "edgemill.pipeline"):
                    assert {name.name for name in node.names} <= set(dir(edgemill))
                if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "edgemill":
                    assert node.attr in dir(edgemill)
        elif block.partition(":")[0] in SECTIONS:
            file = tmp_path / "settings.yaml"
            file.write_text(block, encoding="utf-8")
            given = yaml.safe_load(block)
            paths = {f"{name}.path": "x" for name in ("input", "output") if "path" not in given.get(name, {})}
            load_settings(file, paths)


def test_tables_of_the_reference_are_what_the_code_says() -> None:
    made = []
    for path in sorted(DOCS.glob("*.md")):
        page = path.read_text(encoding="utf-8")
        assert reference.renewed(page) == page, f"{path.name}: run python docs/making/reference.py"
        made += [name for _, name, _ in reference.MADE.findall(page)]
    assert sorted(made) == sorted(reference.TABLES)


def test_the_table_of_settings_is_complete() -> None:
    names = {f"{section}.{name}" for section, holder in SECTIONS.items() for name in holder.model_fields}
    assert set(SHORT_NAMES.values()) < names
    rows = [row for row in reference.settings().splitlines() if row.startswith("| `")]
    assert {row.split("`")[1] for row in rows} == names
    cells = [re.split(r" +\| +", row.strip("| ")) for row in rows]
    assert all(kind and default and len(meaning) > 20 for _, kind, default, *_, meaning in cells)
    flags = {row.split("<br>`")[1].split("`")[0] for row in rows if "<br>" in row}
    assert flags == {f"--{name.replace('_', '-')}" for name in SHORT_NAMES}


def test_outputs_have_the_columns_that_the_page_lists(rerun: tuple[str, Path]) -> None:
    out, ids = rerun[1] / "out" / "facebook", ("src", "dst")
    page, about = (DOCS / "outputs.md").read_text(encoding="utf-8").split("## Files\n")
    listed: dict[str, list[tuple[str, str]]] = {}
    for section in re.split(r"^## ", page, flags=re.MULTILINE)[1:]:
        columns = re.findall(r"^\| (?:`(\w+)`|the input's \w+ column) \| (\w+) \|", section, flags=re.MULTILINE)
        listed |= dict.fromkeys(re.findall(r"`(\w+)`", section.splitlines()[0]), columns)
    tables = {path.parent.name: pq.read_schema(path) for path in out.glob("*/*.parquet")}
    assert listed.pop("attributes") == [("id", "id")]  # see tests/pipeline/frames/test_attributes.py
    assert listed.pop("distances") == [("source", "id"), ("target", "id"), ("distance", "int32")]  # on request
    for name in ("core_groups", "community_groups"):  # on request
        assert listed.pop(name) == [(field.name, str(field.type)) for field in GROUPS_OF_PROGRAM]
    of_pairs = [("source", "id"), ("rank", "int32"), ("target", "id"), ("similarity", "double")]
    assert listed.pop("similar_pairs") == of_pairs  # on request
    assert tables.keys() == listed.keys()
    for name, schema in tables.items():
        found = [("" if column.name in ids else column.name, str(column.type)) for column in schema]
        own = [(column, "int64" if kind == "id" else kind) for column, kind in listed[name]]
        assert own[: len(found)] == found, name
        assert own[len(found) :] == ([("lambda_low", "int32"), ("lambda_high", "int32")] if name == "edges" else [])
    assert {column for column, _ in listed["edges"]} == {"", *EDGE_VALUE_COLUMNS}
    files = {re.sub(r"\d+", "NNNNN", path.name) for path in out.rglob("*") if path.is_file()}
    assert files == set(re.findall(r"^\| `(?:TABLE/)?([\w.-]+)` \|", about.split("## ")[0], flags=re.MULTILINE))


@pytest.mark.slow
def test_pictures_are_what_is_drawn() -> None:
    for name, draw in pictures.PICTURES_BY_NAME.items():
        assert (pictures.PICTURES / name).read_text(encoding="utf-8") == draw(), "run python docs/making/pictures.py"
    assert {path.name for path in pictures.PICTURES.iterdir()} == set(pictures.PICTURES_BY_NAME)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_commands_and_settings_on_pages_are_there(path: Path) -> None:
    """A command of a code block has its options; what is written like a setting is one, or is in the manifest, or is a
    key of JSON, which tests/pipeline/cli/test_summary.py holds to what is printed.
    """
    page = path.read_text(encoding="utf-8")
    wrong = []
    for block in re.findall(r"^ *```\w*\n(.*?)^ *```$", page, re.MULTILINE | re.DOTALL):
        for line in re.findall(r"^(?:\$ )?edgemill (.*)", block.replace("\\\n", " "), re.MULTILINE):
            words = line.partition("  #")[0].partition("|")[0].split()
            command: click.Command = cli.edgemill
            while isinstance(command, click.Group) and words and words[0] in command.commands:
                command = command.commands[words.pop(0)]
            known = {name for one in command.params for name in one.opts} | {"--help"}
            wrong += [f"edgemill {line}: {word}" for word in words if re.match("--?[a-z]", word) and word not in known]
    manifest = set(re.findall(r"`([a-z_.]+)`", reference.record()))
    if path.name == "json.md":  # keys of documents, which tests/pipeline/cli/test_summary.py holds to what is printed
        manifest |= set(re.findall(r"`(input\.[a-z_]+)`", page))
    for section, name in re.findall(rf"\b({'|'.join([*SECTIONS, *every_shipped()])})\.([a-z_]+)\b(?![\w/.(…])", page):
        if f"{section}.{name}" not in SETTINGS | manifest and name not in (
            "py",
            "md",
            "yaml",
            "service",
            "timer",
            "cron",
        ):
            wrong.append(f"{section}.{name}")
    assert not wrong


def emitted() -> Iterator[tuple[str, set[str]]]:
    """Events of the sources, and the names that each is given beside others in a mapping."""
    for path in (file for folder in ("pipeline", "tasks") for file in (DOCS.parent / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(
                    func=ast.Attribute(attr="emit") | ast.Name(id="emit"), args=[ast.Constant(value=str(name))]
                ):
                    yield name, {word.arg for word in node.keywords if word.arg}


def test_the_table_of_events_is_complete() -> None:
    page = (DOCS / "monitoring.md").read_text(encoding="utf-8").partition("\n## The log\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.*?) \| (.*) \|$", page, re.MULTILINE)
    listed = {name: set(re.findall(r"`(\w+)`", more)) for names, more in rows for name in re.findall(r"\w+", names)}
    told: dict[str, set[str]] = {}
    for name, words in emitted():
        told[name] = told.get(name, set()) | words
    assert told.keys() == listed.keys()
    assert not {name: words - listed[name] for name, words in told.items() if words - listed[name]}
    assert len(told) > 20


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_rows_of_tables_are_whole(page: Path) -> None:
    """A row that goes on in the next line ends its table there."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    assert [line for line in text.splitlines() if line.startswith("|") and not line.rstrip().endswith("|")] == []
