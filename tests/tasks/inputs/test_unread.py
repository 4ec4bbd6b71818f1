"""Graph formats that are not read: told by their first lines under any name, and converted by the command that the
message has. No table is taken for one of them.
"""

from __future__ import annotations

import bz2
import gzip
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import networkx
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgemill.tasks.errors import InputError
from edgemill.tasks.ingest.reading import read_rows
from edgemill.tasks.inputs.formats.form import Form
from edgemill.tasks.inputs.formats.unread import why_content_not_read, why_not_read
from edgemill.tasks.inputs.open_source import open_source
from edgemill.tasks.inputs.sources import plan_blocks

GRAPH = networkx.Graph([(1, 2), (2, 3), (1, 3), (3, 4)])


def written(write: Callable[[networkx.Graph, str], object]) -> Callable[[Path], bytes]:
    def content(folder: Path) -> bytes:
        write(networkx.relabel_nodes(GRAPH, str), str(folder / "written"))
        return (folder / "written").read_bytes()

    return content


def _node_link(graph: networkx.Graph, path: str) -> None:
    Path(path).write_text(json.dumps(networkx.node_link_data(graph, edges="links"), indent=1))


FORMATS: dict[str, Callable[[Path], bytes]] = {
    "GraphML": written(networkx.write_graphml),
    "GEXF": written(networkx.write_gexf),
    "GML": lambda _: (
        b'Creator "Mark Newman on Fri Jul 21 2006"\ngraph\n[\n  directed 0\n'
        + b"".join(b"  node\n  [\n    id %d\n  ]\n" % node for node in GRAPH)
        + b"".join(b"  edge\n  [\n    source %d\n    target %d\n  ]\n" % edge for edge in GRAPH.edges)
        + b"]\n"
    ),
    "Pajek": written(networkx.write_pajek),
    "METIS": lambda _: b"% made by hand\n4 4\n2 3\n1 3\n1 2 4\n3\n",
    "METIS with weights": lambda _: b"4 4 011 2\n7 7 2 5 3 5\n7 7 1 5 3 5\n7 7 1 5 2 5 4 5\n7 7 3 5\n",
    "DIMACS": lambda _: b"c 9th challenge\np sp 4 4\na 1 2 803\na 2 3 1\na 1 3 4\na 3 4 5\n",
    "DIMACS of colours": lambda _: b"p edge 4 4\ne 1 2\ne 2 3\ne 1 3\ne 3 4\n",
    "DIMACS of PACE": lambda _: b"c tree width\np tw 4 4\n1 2\n2 3\n1 3\n3 4\n",
    "LEDA": lambda _: (
        b"LEDA.GRAPH\nstring\nint\n-2\n4\n|{1}|\n|{2}|\n|{3}|\n|{4}|\n4\n"
        b"1 2 0 |{1}|\n2 3 0 |{1}|\n1 3 0 |{1}|\n3 4 0 |{1}|\n"
    ),
    "graph6": lambda _: networkx.to_graph6_bytes(networkx.convert_node_labels_to_integers(GRAPH)),
    "sparse6": lambda _: networkx.to_sparse6_bytes(networkx.convert_node_labels_to_integers(GRAPH)),
    "UCINET DL": lambda _: b"dl n=4\nformat = edgelist1\ndata:\n1 2\n2 3\n1 3\n3 4\n",
    "node-link JSON": written(_node_link),
}
FROM_0 = {"graph6", "sparse6", "UCINET DL"}
"""Their converters number vertices from 0."""


def convert(message: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> set[frozenset[int]]:
    """Run the command of a message, and read the edges of the file that it makes."""
    monkeypatch.chdir(folder)
    library, _, command = message.partition("for example with ")[2].partition(": ")
    if library == "awk":
        subprocess.run(["bash", "-c", command], check=True)
    else:
        igraph = pytest.importorskip("igraph")
        exec(command, {"networkx": networkx, "pandas": pandas, "igraph": igraph, "json": json})
    source = open_source(str(next(folder.glob("edges.*"))))
    found = [read_rows(source, block) for block in plan_blocks(source, 100)]
    return {
        frozenset(map(int, map(str, pair)))
        for own in found
        for pair in zip(own.source.tolist(), own.target.tolist(), strict=True)
    }


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(
    ("file", "choice", "pack"),
    [
        ("graph.txt", "auto", bytes),
        ("graph.csv", "csv", bytes),
        ("graph.tsv.gz", "tsv", gzip.compress),
        ("graph.bz2", "auto", bz2.compress),
        ("graph.jsonl", "jsonl", bytes),
        ("graph.mtx", "auto", bytes),
    ],
)
def test_a_graph_format_is_named_and_converted(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    file: str,
    choice: str,
    pack: Callable[[bytes], bytes],
) -> None:
    path = tmp_path / file
    path.write_bytes(pack(FORMATS[name](tmp_path)))
    with pytest.raises(InputError) as caught:
        open_source(str(path), form=Form(format=choice))
    message = str(caught.value)
    assert all(fact in message for fact in (str(path), name.split(" of ")[0].split(" with ")[0]))
    if "unpack it, and" in message:
        path.with_suffix("").write_bytes(FORMATS[name](tmp_path))
    found = convert(message, tmp_path, monkeypatch)
    shift = name in FROM_0
    assert found == {frozenset(end - shift for end in edge) for edge in GRAPH.edges}


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"strict digraph G {\n  a -> b;\n}\n", r"is DOT, .*networkx\.nx_pydot\.read_dot"),
        (b"<!DOCTYPE html>\n<html><head>\n<title>Sign in</title>", "is an HTML page"),
        (b"<?xml version='1.0'?>\n<edges><edge a='1' b='2'/></edges>\n", "is XML"),
        (b"edges.csv".ljust(257, b"\0") + b"ustar\x0000" + bytes(300), "is a tar archive: unpack it"),
        (b"%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 2\n", "--input-format mtx"),
    ],
)
def test_other_contents_are_named(tmp_path: Path, content: bytes, why: str) -> None:
    path = tmp_path / "edges.csv"
    path.write_bytes(content)
    with pytest.raises(InputError, match=why):
        open_source(str(path))


@pytest.mark.parametrize(
    ("file", "format"),
    [("a.graphml", "GraphML"), ("a.NET", "Pajek"), ("a.graph.gz", "METIS"), ("USA-road.gr", "DIMACS"), ("a.gv", "DOT")],
)
def test_a_suffix_names_the_format(tmp_path: Path, file: str, format: str) -> None:
    """The same name with another content is read if the user says what it is."""
    path = tmp_path / file
    path.write_bytes((gzip.compress if file.endswith(".gz") else bytes)(b"1 2\n2 3\n1 3\n"))
    with pytest.raises(InputError, match=rf"{format}.*--input-format"):
        open_source(str(path))
    source = open_source(str(path), form=Form(format="csv"))
    assert len(read_rows(source, plan_blocks(source, 9)[0])) == 3


WORDS = st.sampled_from(
    [
        *("graph", "node", "p", "c", "a", "e", "sp", "edge", "dl", "n=3", "*", "vertices"),
        *("<b>", "1", "2", "3", "4", "10", "11", "-1", "0.5"),
    ]
)


@given(
    st.integers(2, 5).flatmap(lambda width: st.lists(st.tuples(*[WORDS] * width), min_size=1, max_size=12)),
    st.sampled_from([",", "\t", " ", ";"]),
    st.booleans(),
)
def test_no_table_is_taken_for_a_graph_format(rows: list[tuple[str, ...]], delimiter: str, whole: bool) -> None:
    """Not even one that has the words of a format: all its lines have equally many fields."""
    text = "".join(f"{delimiter.join(row)}\n" for row in rows).encode()
    assert why_content_not_read("a.csv", text, whole) is None


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=10), st.booleans())
def test_no_edge_list_is_taken_for_metis(rows: list[tuple[int, int]], whole: bool) -> None:
    text = "".join(f"{one} {other}\n" for one, other in rows).encode()
    assert why_content_not_read("a.txt", text, whole) is None


def test_the_lines_of_a_metis_file_must_agree() -> None:
    right = b"4 4\n2 3\n1 3\n1 2 4\n3\n"
    assert "METIS" in str(why_content_not_read("a.txt", right, True))
    for wrong in (
        b"4 5\n2 3\n1 3\n1 2 4\n3\n",
        b"4 4\n2 3\n1 3\n1 2\n3\n",
        b"6 4\n2 3\n1 3\n1 2 4\n3\n",
        b"4 4\n2 3\n1 3\n",
    ):
        assert why_content_not_read("a.txt", wrong, True) is None
    assert why_not_read("a.unknown") is None
