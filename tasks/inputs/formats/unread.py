"""Formats that edgemill does not read, by the suffix or the first lines of a file, and commands that convert them."""

from __future__ import annotations

import io
import json
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import PurePosixPath
from typing import NamedTuple

from .input_format import compression_of, format_of_bytes, suffix_of

_DUCKDB: Mapping[str, str] = {
    ".xlsx": "FROM read_xlsx('{path}')",
    ".avro": "FROM read_avro('{path}')",
    ".db": "FROM sqlite_scan('{path}', 'EDGES')",
    ".sqlite": "FROM sqlite_scan('{path}', 'EDGES')",
    ".sqlite3": "FROM sqlite_scan('{path}', 'EDGES')",
    ".duckdb": "FROM EDGES",
    ".json": "FROM read_json('{path}')",
    ".xml": "FROM EDGES",
}
"""Suffix of an unsupported format → DuckDB's clause that reads it."""

_PANDAS: Mapping[str, str] = {
    ".xls": "read_excel",
    ".ods": "read_excel",
    ".pkl": "read_pickle",
    ".pickle": "read_pickle",
    ".h5": "read_hdf",
    ".hdf5": "read_hdf",
    ".sas7bdat": "read_sas",
    ".dta": "read_stata",
    ".sav": "read_spss",
}
"""Suffix of a format that DuckDB does not read either → the function of pandas that does."""

_GRAPHS: Mapping[str, str] = {
    ".graphml": "GraphML",
    ".gexf": "GEXF",
    ".gml": "GML",
    ".net": "Pajek",
    ".pajek": "Pajek",
    ".metis": "METIS",
    ".graph": "METIS",
    ".gr": "DIMACS",
    ".col": "DIMACS",
    ".dimacs": "DIMACS",
    ".dot": "DOT",
    ".gv": "DOT",
    ".leda": "LEDA",
    ".dl": "UCINET DL",
    ".g6": "graph6",
    ".s6": "sparse6",
}
"""Suffix → the graph format that it usually means."""

_PYTHON: Mapping[str, tuple[str, str]] = {
    "GraphML": ("NetworkX", "networkx.to_pandas_edgelist(networkx.read_graphml({path}))"),
    "GEXF": ("NetworkX", "networkx.to_pandas_edgelist(networkx.read_gexf({path}))"),
    "GML": ("NetworkX", "networkx.to_pandas_edgelist(networkx.read_gml({path}, label='id'))"),
    "Pajek": ("NetworkX", "networkx.to_pandas_edgelist(networkx.read_pajek({path}))"),
    "DOT": ("NetworkX and pydot", "networkx.to_pandas_edgelist(networkx.nx_pydot.read_dot({path}))"),
    "LEDA": ("NetworkX", "networkx.to_pandas_edgelist(networkx.read_leda({path}))"),
    "graph6": ("NetworkX", "networkx.to_pandas_edgelist(networkx.read_graph6({path}))"),
    "sparse6": ("NetworkX", "networkx.to_pandas_edgelist(networkx.read_sparse6({path}))"),
    "node-link JSON": (
        "NetworkX",
        "networkx.to_pandas_edgelist(networkx.node_link_graph(json.load(open({path})), edges={key}))",
    ),
    "UCINET DL": ("igraph", "igraph.Graph.Read_DL({path}).get_edge_dataframe()"),
}
"""Graph format → a library, and the expression in which it reads a file as a pandas frame of edges."""

_AWK: Mapping[str, str] = {
    "METIS": (
        'BEGIN {print "src,dst"} /^%/ {next} '
        "!n {n = 1; a = 1 + ($3 >= 100) + (int($3 / 10) % 10 ? ($4 ? $4 : 1) : 0); s = 1 + $3 % 10; next} "
        '{for (i = a; i <= NF; i += s) if (n < $i) print n "," $i; n++}'
    ),
    "DIMACS": (
        'BEGIN {print "src,dst"} $1 == "a" || $1 == "e" {print $2 "," $3} /^[0-9]/ {print $1 "," $2}'  # PACE: no letter
    ),
}
"""Graph format that no library reads → an awk program that writes its edges as CSV."""

_UNPACK: Mapping[str | None, str] = {"gzip": "gzip -dc", "zstd": "zstd -dc", "bz2": "bzip2 -dc"}
"""Compression → command that writes the content of a file to standard output."""

_MARKED_BYTES = 2**16
"""First bytes in which the marks of a format are searched."""

_MARKED_LINES = 1_000
"""First lines in which they are searched."""
_GML_FIRST = (b"#", b"creator", b"version", b"comment")
_PAJEK = re.compile(rb"\*(vertices\s+\d+|network\b|(arcs|edges)(list)?\s*$|matrix\s*$)", re.IGNORECASE)
_DIMACS = re.compile(rb"p\s+[a-z_]+\s+\d+\s+\d+(\s+\d+)?")
_DIMACS_ROW = re.compile(rb"[ae]\s+\d+\s+\d+(\s+-?\d+)?|n\s+\d+\s+\S+|\d+\s+\d+")
_DOT = re.compile(rb"(strict\s+)?(di)?graph(\s+[\w.\"]+)?\s*\{", re.IGNORECASE)
_DL = re.compile(rb"dl\s+n\s*=\s*\d+", re.IGNORECASE)
_DL_DATA = re.compile(rb"data\s*:", re.IGNORECASE)
_METIS_SIZES = re.compile(rb"\d{1,19}(\s+\d{1,19}){1,3}")
_METIS_KINDS = {0, 1, 10, 11, 100, 101, 110, 111}


def why_not_read(path: str) -> str | None:
    """Why a file with this suffix is not read, with a command that converts it; None for an unknown suffix."""
    suffix = suffix_of(path)
    quoted = path.replace("'", "''")
    unread = f"{suffix.removeprefix('.')}, which edgemill does not read"
    if suffix in _DUCKDB:
        table = _DUCKDB[suffix].format(path=quoted)
        columns = f"COPY (SELECT src, dst {table}) TO 'edges.parquet'"
        return f"{path} is {unread}; convert it, for example with DuckDB: {columns}"
    if suffix in _PANDAS:
        code = f"pandas.{_PANDAS[suffix]}({path!r}).to_parquet('edges.parquet')"
        return f"{path} is {unread}; convert it, for example with pandas: {code}"
    if suffix in _GRAPHS:
        also = "; if it has the two ends of an edge on each line, say --input-format csv"
        return _unread_graph(path, _GRAPHS[suffix]) + also
    if suffix == ".tar":
        return _unread_archive(path)
    if re.search(r"\.(zip|tgz|rar|7z|xz|lz4|br|snappy)$", path.lower()):
        return f"{path} has a compression that edgemill does not read: unpack it, or compress it with gzip or zstd"
    return None


def why_content_not_read(path: str, head: bytes, whole: bool, comment: str | None = None) -> str | None:
    """Why a file that begins with these bytes, uncompressed, is no table of text; None if nothing speaks against it.

    `whole` says that there are no further bytes. Lines that begin with `comment` are not considered.
    """
    if format_of_bytes(head) == "mtx":
        return f"{path} is a Matrix Market file: read it with --input-format mtx"
    if head[257:262] == b"ustar":
        return _unread_archive(path)
    found = _graph_format(head, whole, comment)
    if found is not None:
        return _unread_graph(path, found, head)
    begins = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if re.match(rb"<(!doctype\s+html|html)[\s>]", begins, re.IGNORECASE):
        return f"{path} is an HTML page, not data: its address may need a login or another path; download it again"
    if begins.startswith(b"<?xml "):
        return f"{path} is XML, which edgemill does not read: write its edges as CSV or Parquet"
    return None


def _unread_archive(path: str) -> str:
    return f"{path} is a tar archive: unpack it (tar -xf {shlex.quote(path)}), and name the file in it with the edges"


def _unread_graph(path: str, format: str, head: bytes = b"") -> str:
    """Why a graph format is not read, and the command that converts the file."""
    unread = f"{path} is {format}, which edgemill does not read; convert it, for example with"
    compression = compression_of(path)
    if format in _AWK:
        program, quoted = shlex.quote(_AWK[format]), shlex.quote(path)
        command = f"awk {program} {quoted}"
        if compression is not None:
            command = f"{_UNPACK[compression]} {quoted} | awk {program}"
        return f"{unread} awk: {command} > edges.csv"
    library, code = _PYTHON[format]
    plain = path
    if compression is not None and (compression == "zstd" or library != "NetworkX" or "open(" in code):
        plain = str(PurePosixPath(path).with_suffix(""))
        unread = f"{path} is {format}, which edgemill does not read; unpack it, and convert it, for example with"
    key = "links" if b'"links"' in head else "edges"
    return f"{unread} {library}: {code.format(path=repr(plain), key=repr(key))}.to_parquet('edges.parquet')"


def _graph_format(head: bytes, whole: bool, comment: str | None) -> str | None:
    """The graph format that the first lines of a file mean; None for a table or anything else."""
    begins = head[:_MARKED_BYTES].removeprefix(b"\xef\xbb\xbf")
    lines = [line for part in begins.splitlines()[:_MARKED_LINES] if (line := part.strip())]
    if comment:
        lines = [line for line in lines if not line.startswith(comment.encode())]
    if not lines:
        return None
    found = next((name for name, test in _TESTS.items() if test(lines)), None)
    if found is None and _METIS_SIZES.fullmatch(next(iter(_after(lines, (b"%",))), b"")) and _is_metis(head, whole):
        return "METIS"
    return found


def _is_xml(root: bytes) -> Callable[[Sequence[bytes]], bool]:
    mark = re.compile(rb"<" + root + rb"([\s>]|$)", re.IGNORECASE)
    begins = (b"<?xml", b"<!", b"<" + root)
    return lambda lines: lines[0].lower().startswith(begins) and any(map(mark.search, lines))


def _after(lines: Sequence[bytes], skipped: tuple[bytes, ...]) -> list[bytes]:
    """The lines from the first one that does not begin with one of `skipped`, whose letters are small."""
    first = next((at for at, line in enumerate(lines) if not line.lower().startswith(skipped)), len(lines))
    return list(lines[first:])


def _is_gml(lines: Sequence[bytes]) -> bool:
    own = b" ".join(_after(lines, _GML_FIRST)[:2])
    return re.match(rb"graph\s*\[", own, re.IGNORECASE) is not None


def _is_pajek(lines: Sequence[bytes]) -> bool:
    own = _after(lines, (b"%",))
    return bool(own) and _PAJEK.match(own[0]) is not None


def _is_dimacs(lines: Sequence[bytes]) -> bool:
    own = list(islice((line for line in lines if line.split(None, 1)[0] != b"c"), 2))
    return len(own) == 2 and bool(_DIMACS.fullmatch(own[0]) and _DIMACS_ROW.fullmatch(own[1]))


def _is_dot(lines: Sequence[bytes]) -> bool:
    return _DOT.match(b" ".join(_after(lines, (b"#", b"//", b"/*", b"*"))[:2])) is not None


def _is_node_link(lines: Sequence[bytes]) -> bool:
    """Whether text is one JSON object with lists of nodes and of edges: over several lines, or on a single one."""
    if not lines[0].startswith(b"{"):
        return False
    try:
        row = json.loads(lines[0])
        return isinstance(row.get("nodes"), list) and any(isinstance(row.get(key), list) for key in ("links", "edges"))
    except (ValueError, RecursionError):
        text = b"\n".join(lines)
        return len(lines[0]) == 1 and re.search(rb'"(nodes|links|edges)"\s*:\s*\[', text) is not None


_TESTS: Mapping[str, Callable[[Sequence[bytes]], bool]] = {
    "GraphML": _is_xml(b"graphml"),
    "GEXF": _is_xml(b"gexf"),
    "GML": _is_gml,
    "Pajek": _is_pajek,
    "DIMACS": _is_dimacs,
    "DOT": _is_dot,
    "LEDA": lambda lines: _after(lines, (b"#",))[:1] == [b"LEDA.GRAPH"],
    "UCINET DL": lambda lines: _DL.match(lines[0]) is not None and any(map(_DL_DATA.match, lines)),
    "graph6": lambda lines: lines[0].startswith(b">>graph6<<"),
    "sparse6": lambda lines: lines[0].startswith(b">>sparse6<<"),
    "node-link JSON": _is_node_link,
}
"""Graph format → a test of the first lines of a file: at least one, stripped of blanks, and none of them empty."""


def _is_metis(head: bytes, whole: bool) -> bool:
    """Whether the lines are what METIS demands: the numbers of vertices and edges, and then the neighbours of each
    vertex, which name each other. A table is never taken for it: all its lines have equally many fields.
    """
    rows = _metis_rows(head, whole)
    sizes = _metis_sizes(next(rows, []))
    if sizes is None or (near := _metis_neighbours(rows, sizes)) is None:
        return False
    if any(other <= len(near) and vertex not in near[other - 1] for vertex, own in enumerate(near, 1) for other in own):
        return False
    if whole and (sizes.vertices - len(near) > 1 or sum(map(len, near)) != 2 * sizes.edges):
        return False
    return len({len(row) for row in _metis_rows(head, whole) if row}) > 1


class _MetisSizes(NamedTuple):
    """What the first line of a METIS file says."""

    vertices: int
    edges: int
    neighbours: slice
    """The fields of each further line that name neighbours; the others are sizes and weights."""


def _metis_rows(head: bytes, whole: bool) -> Iterator[list[bytes]]:
    """The fields of each line that is no comment and, unless the head is the `whole` file, not cut off."""
    for line in io.BytesIO(head):
        if not line.startswith(b"%") and (whole or line.endswith(b"\n")):
            yield line.split()


def _metis_sizes(row: Sequence[bytes]) -> _MetisSizes | None:
    if not _METIS_SIZES.fullmatch(b" ".join(row)):
        return None
    vertices, edges, kind, weights = (int(size) for size in (*row, *(b"0", b"1")[len(row) - 2 :]))
    if kind not in _METIS_KINDS:
        return None
    first, step = kind // 100 + (weights if kind // 10 % 10 else 0), 1 + kind % 10
    return _MetisSizes(vertices, edges, slice(first, None, step))


def _metis_neighbours(rows: Iterable[Sequence[bytes]], sizes: _MetisSizes) -> list[set[int]] | None:
    """[rows] the neighbours of each vertex. None for rows without a vertex, for neighbours that are none, and for a
    vertex that an earlier one does not name as its neighbour.
    """
    near: list[set[int]] = []
    for vertex, row in enumerate(rows, 1):
        if vertex > sizes.vertices:
            if row:
                return None
            continue
        own = {int(field) if field.isdigit() and len(field) < 20 else 0 for field in row[sizes.neighbours]}
        if vertex in own or not all(0 < other <= sizes.vertices for other in own):
            return None
        if any(vertex not in near[other - 1] for other in own if other < vertex):
            return None
        near.append(own)
    return near
