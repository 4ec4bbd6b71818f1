"""Estimates of a graph: exact if the sample is the whole graph, else within limits."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

import drive
from edgemill.tasks.errors import InputError
from edgemill.tasks.estimate import sampling
from edgemill.tasks.estimate.estimate import Estimate, estimate
from edgemill.tasks.generate import generate
from edgemill.tasks.ids import identity
from edgemill.tasks.inputs.open_source import open_source
from known_graphs import SKIP_REASON, known_graph

ALL = 10**9


def write(
    path: Path, source: NDArray[np.int64], target: NDArray[np.int64], rows: int = 4096, text: str = ""
) -> Estimate:
    """The estimate of these rows, in row groups of `rows`, all of which are read. With `text`, ids are strings with
    that prefix.
    """
    columns = [pa.array(source), pa.array(target)]
    if text:
        columns = [pa.array([f"{text}{value:09}" for value in ids.tolist()]) for ids in (source, target)]
    pq.write_table(pa.table(columns, names=["src", "dst"]), path, row_group_size=rows)
    return estimate(open_source(str(path)), ALL)


def truth(path: Path) -> tuple[int, int, int, int]:
    """Edges, vertices, edges with triangles, and triangles."""
    ingested = drive.ingest(open_source(str(path)))
    own = drive.subgraph(ingested.owned)
    return len(ingested.owned), int(ingested.starts[-1]), len(own.number), int(own.support.sum()) // 3


@pytest.fixture(scope="module")
def rmat(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rmat")
    generate("rmat", folder, files=3, seed=3, scale=13)
    return folder


def test_a_sample_of_the_whole_graph_is_exact(tmp_path: Path) -> None:
    generate("rmat", tmp_path, files=2, seed=7, scale=11)  # 32,768 rows
    found = estimate(open_source(str(tmp_path)), ALL)
    assert (found.sample.share, found.sample.is_whole) == (1.0, True)
    edges, vertices, local, triangles = truth(tmp_path)
    assert (found.edges.likely, found.edges.least, found.edges.most) == (edges, edges, edges)
    assert found.vertices.likely == vertices
    assert found.witnesses.with_triangles == pytest.approx(local / edges, rel=0.02)  # of 16,000 edges of them
    assert found.for_output("zstd").triangles == pytest.approx(triangles, rel=0.02)


def test_all_triangles_of_a_small_graph(tmp_path: Path) -> None:
    generate("rmat", tmp_path, files=1, seed=7, scale=9)
    found = estimate(open_source(str(tmp_path)), ALL)
    edges, _, local, triangles = truth(tmp_path)
    assert found.for_output("zstd").triangles == triangles
    assert found.witnesses.with_triangles == pytest.approx(local / edges)


def test_a_sample_of_rmat(rmat: Path) -> None:
    found = estimate(open_source(str(rmat)), ALL)
    assert 0.4 < found.sample.share < 0.6
    edges, vertices, local, _ = truth(rmat)
    assert found.edges.likely == pytest.approx(edges, rel=0.05)
    assert found.vertices.likely == pytest.approx(vertices, rel=0.05)
    assert found.witnesses.with_triangles == pytest.approx(local / edges, rel=0.05)


@pytest.mark.skipif(SKIP_REASON is not None, reason=str(SKIP_REASON))
@pytest.mark.parametrize(
    "name",
    [
        "email-Enron",
        "facebook_combined",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("ca-AstroPh", "musae-github", "soc-Slashdot0902")),
    ],
)
def test_real_graphs(name: str) -> None:
    graph = known_graph(name)
    found = estimate(open_source(str(graph.path)), ALL)
    assert found.edges.likely == pytest.approx(graph.edges, rel=0.03)
    assert found.vertices.likely == pytest.approx(graph.vertices, rel=0.03)


def test_without_triangles(tmp_path: Path) -> None:
    ring = np.arange(1000)
    found = write(tmp_path / "a.parquet", ring, (ring + 1) % 1000)
    assert (found.edges.likely, found.vertices.likely) == (1000, 1000)
    assert found.witnesses.with_triangles == 0


def test_repetitions_loops_and_nulls(tmp_path: Path) -> None:
    clique = np.array(list(combinations(range(20), 2)) * 3)
    columns = [pa.array([*ends.tolist(), 5, 6, None]) for ends in (clique[:, 0], clique[:, 1])]
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table([columns[0], pa.array([*clique[:, 1].tolist(), 5, 6, 7])], names=["src", "dst"]), path)
    found = estimate(open_source(str(path)), ALL)
    assert (found.edges.likely, found.vertices.likely) == (190, 20)
    sample = found.sample
    assert (sample.rows_read, sample.self_loops, sample.left_out) == (573, 2, 1)
    assert sample.repeated.tolist() == [3] * 190


@pytest.mark.parametrize("text", ["", "id-"])
@pytest.mark.parametrize("rows", [0, 1])
def test_inputs_with_few_rows(tmp_path: Path, rows: int, text: str) -> None:
    found = write(tmp_path / "a.parquet", np.zeros(rows, np.int64), np.ones(rows, np.int64), text=text)
    assert (found.edges.likely, found.vertices.likely, found.sample.is_whole) == (rows, 2 * rows, True)
    assert found.output_bytes("zstd") >= 0


def test_only_loops(tmp_path: Path) -> None:
    found = write(tmp_path / "a.parquet", np.arange(10), np.arange(10))
    assert (found.edges.likely, found.vertices.likely, found.output_bytes("zstd")) == (0, 10, 0)


def test_strings_and_integers_have_equal_estimates(rmat: Path, tmp_path: Path) -> None:
    table = pa.concat_tables([pq.read_table(path) for path in sorted(rmat.glob("*.parquet"))])
    numbers = estimate(open_source(str(rmat)), ALL)
    strings = write(tmp_path / "a.parquet", table["src"].to_numpy(), table["dst"].to_numpy(), 50_000, "user/")
    assert strings.edges.likely == pytest.approx(numbers.edges.likely, rel=0.05)
    assert strings.vertices.likely == pytest.approx(numbers.vertices.likely, rel=0.05)
    assert strings.witnesses.with_triangles == pytest.approx(numbers.witnesses.with_triangles, rel=0.1)
    assert strings.id_bytes == pytest.approx(14, rel=0.1)
    assert strings.output_bytes("zstd") > numbers.output_bytes("zstd")


def test_hashes_of_strings() -> None:
    names = pa.array([f"{'x' * (i % 7)}{i}" for i in range(20_000)] + [""], pa.large_string())
    found = identity.hashes(names)
    assert len(np.unique(found)) == len(names)
    assert identity.hashes(names.slice(700, 5)).tolist() == found[700:705].tolist()
    assert 0.09 < np.count_nonzero(found < np.uint64(2**64 // 10)) / len(names) < 0.11


def test_a_hub_does_not_exceed_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "WITNESSES", 100)
    hub = next(i for i in range(10_000) if identity.hashes(np.array([i]))[0] < np.uint64(2**53))  # always in S
    leaves = np.arange(100_000) + 20_000
    found = write(tmp_path / "a.parquet", np.full(100_000, hub), leaves)
    assert found.sample.share < 0.001
    assert len(found.sample) < 8_000
    assert (found.edges.likely, hub in found.sample.ids) == (100_000, True)
    other = write(tmp_path / "b.parquet", np.full(100_000, hub + 1), leaves)
    assert len(other.sample) < 8_000
    assert other.edges.likely == 100_000


def symmetric(rmat: Path) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Both directions of each edge, sorted."""
    table = pa.concat_tables([pq.read_table(path) for path in sorted(rmat.glob("*.parquet"))])
    source, target = table["src"].to_numpy(), table["dst"].to_numpy()
    pairs = np.unique(np.stack([np.minimum(source, target), np.maximum(source, target)]), axis=1)
    both = np.concatenate([pairs, pairs[::-1]], axis=1)
    ascending = np.lexsort(both[::-1])
    return both[0][ascending], both[1][ascending]


def drawn(rmat: Path) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """R-MAT rows with repetitions."""
    table = pa.concat_tables([pq.read_table(path) for path in sorted(rmat.glob("*.parquet"))])
    return table["src"].to_numpy(), table["dst"].to_numpy()


@pytest.mark.parametrize(("rows_of", "off"), [(symmetric, 0.2), (drawn, 0.25)])
@pytest.mark.parametrize("part", [8, pytest.param(2, marks=pytest.mark.slow)])
def test_a_part_of_the_rows(
    rmat: Path,
    tmp_path: Path,
    rows_of: Callable[[Path], tuple[NDArray[np.int64], NDArray[np.int64]]],
    off: float,
    part: int,
) -> None:
    """The estimate is then a range and a value in it."""
    whole = write(tmp_path / "a.parquet", *rows_of(rmat), rows=512)
    found = estimate(whole.source, whole.source.rows // part)
    assert not found.sample.is_whole
    assert found.sample.rows_read <= whole.source.rows // part + 512
    assert found.edges.likely == pytest.approx(whole.edges.likely, rel=off)
    assert found.edges.least <= 1.05 * whole.edges.likely
    assert found.edges.most >= whole.edges.likely
    assert found.edges.least <= found.edges.likely <= found.edges.most
    assert found.vertices.least <= whole.vertices.likely <= found.vertices.most
    assert (found.witnesses.with_triangles, found.for_output("zstd").triangles) == (1, None)  # it does not tell


def test_a_single_row_group_is_read_in_part(rmat: Path, tmp_path: Path) -> None:
    source, target = drawn(rmat)
    whole = write(tmp_path / "a.parquet", source, target, rows=len(source))
    assert [len(file.row_groups) for file in whole.source.files] == [1]
    found = estimate(whole.source, 10_000)
    assert 9_900 < found.sample.rows_read <= 10_000
    assert found.edges.least <= whole.edges.likely <= found.edges.most


def test_the_same_sample_each_time(rmat: Path) -> None:
    source = open_source(str(rmat))
    one, other = (estimate(source, 50_000) for _ in range(2))
    assert one.sample.low.tolist() == other.sample.low.tolist()
    assert one.witnesses.support.tolist() == other.witnesses.support.tolist()


def test_a_damaged_file_is_named(rmat: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    content = bytearray((sorted(rmat.glob("*.parquet"))[0]).read_bytes())
    source = pq.ParquetFile(sorted(rmat.glob("*.parquet"))[0]).metadata.row_group(0).column(0)
    start = source.data_page_offset
    content[start : start + 2000] = bytes(2000)
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"a\.parquet.*0"):
        estimate(open_source(str(path)), ALL)


def test_a_hub_whose_hash_is_0(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S always contains it. The loop that reduces the sample still ends."""
    monkeypatch.setattr(sampling, "WITNESSES", 16)
    hub = 7046029254386353131
    assert identity.hashes(np.array([hub])).tolist() == [0]
    found = write(tmp_path / "star.parquet", np.full(5000, hub), np.arange(5000))
    assert found.edges.likely > 0
