"""TLS between driver, scheduler and workers: only processes with a certificate of the authority can connect."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dask
import pytest
from distributed import Client, Security

import runs
from certificates import Certificate, certificate
from edgemill.pipeline import ClusterLost, Result, UsageError, mine
from edgemill.pipeline.cluster.connecting.start import connect
from edgemill.pipeline.settings.models import ClusterSettings

Mine = Callable[..., Result]
HOW: dict[str, Any] = {"device": "cpu", "partitions": 3}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("certificates")


@pytest.fixture(scope="module")
def ours(folder: Path) -> Certificate:
    return certificate(folder, "ours")


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    return runs.write_rows(path, [(a, b) for a in range(30) for b in range(a) if (a * b) % 3])


@pytest.fixture(scope="module")
def address(ours: Certificate) -> Iterator[str]:
    """A scheduler that accepts TLS only, with a worker in this process."""
    roles = ("client", "scheduler", "worker")
    encrypted = Security(
        require_encryption=True,
        tls_ca_file=ours.tls_ca_file,
        **{f"tls_{role}_cert": ours.tls_cert_file for role in roles},
        **{f"tls_{role}_key": ours.tls_key_file for role in roles},
    )
    with runs.cluster(n_workers=1, processes=False, threads_per_worker=2, security=encrypted) as client:
        yield str(client.scheduler_info()["address"])


@pytest.mark.slow
def test_workers_started_here(
    rows: Path, tmp_path: Path, ours: Certificate, mined: Mine, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    @contextmanager
    def connected(settings: ClusterSettings, *_: object) -> Iterator[Client]:
        with connect(settings) as client:
            seen.extend([client.scheduler_info()["address"], *client.scheduler_info()["workers"]])
            yield client

    monkeypatch.setattr("edgemill.pipeline.run.full.connect", connected)
    both = tmp_path / "both.pem"
    both.write_text(Path(ours.tls_cert_file).read_text() + Path(ours.tls_key_file).read_text())
    cluster = {"workers": 2, "tls_ca_file": ours.tls_ca_file, "tls_cert_file": str(both)}
    result = mine(rows, tmp_path / "out", cluster=cluster, **HOW)
    assert len(seen) == 3
    assert all(address.startswith("tls://127.0.0.1:") for address in seen)
    assert result.edges.to_table() == mined(rows, **HOW).edges.to_table()
    key = Path(ours.tls_key_file).read_text().splitlines()[1]
    for file in filter(Path.is_file, (tmp_path / "out").rglob("*")):
        assert key.encode() not in file.read_bytes()


def test_a_running_scheduler(rows: Path, tmp_path: Path, ours: Certificate, address: str, mined: Mine) -> None:
    assert address.startswith("tls://")
    result = mine(rows, tmp_path / "out", cluster={"scheduler": address, **ours._asdict()}, **HOW)
    assert result.edges.to_table() == mined(rows, **HOW).edges.to_table()


def test_the_configuration_of_dask(rows: Path, tmp_path: Path, ours: Certificate, address: str) -> None:
    tls = "distributed.comm.tls"
    given = {f"{tls}.ca-file": ours[0], f"{tls}.client.cert": ours[1], f"{tls}.client.key": ours[2]}
    with dask.config.set(given):
        mine(rows, tmp_path / "out", scheduler=address, **HOW)
    with (
        dask.config.set(given | {f"{tls}.ca-file": "absent"}),
        pytest.raises(UsageError, match=r"distributed\.comm\.tls.*usable"),
    ):
        mine(rows, tmp_path / "again", scheduler=address, **HOW)


def test_a_plain_client_is_refused(rows: Path, tmp_path: Path, address: str) -> None:
    with pytest.raises(UsageError, match=r"tcp://.*tls://.*cluster.tls_ca"):
        mine(rows, tmp_path / "out", scheduler=address.replace("tls", "tcp"), **HOW)
    with pytest.raises(UsageError, match=r"tls://.*cluster\.tls_ca_file"):
        mine(rows, tmp_path / "out", scheduler=address, **HOW)
    assert not (tmp_path / "out").exists()


def test_a_stranger_is_refused(rows: Path, tmp_path: Path, folder: Path, ours: Certificate, address: str) -> None:
    """A certificate of another authority is refused, and a client that trusts another one refuses the scheduler."""
    theirs = certificate(folder, "theirs")
    for stranger in (theirs, theirs._replace(tls_ca_file=ours.tls_ca_file), ours._replace(tls_ca_file=theirs[0])):
        with pytest.raises(ClusterLost, match=r"answers.*tls://"):
            mine(
                rows,
                tmp_path / "out",
                cluster={"scheduler": address, "waiting_seconds": 1, **stranger._asdict()},
                **HOW,
            )


def test_a_scheduler_without_tls(rows: Path, tmp_path: Path, ours: Certificate) -> None:
    with runs.cluster(n_workers=0, processes=False, protocol="tcp") as client:
        plain = client.scheduler_info()["address"]
        for address in (plain, plain.removeprefix("tcp://")):
            refused = rf"{address} is not encrypted, and cluster\.tls_ca_file is set: use tls://"
            with pytest.raises(UsageError, match=refused):
                mine(rows, tmp_path / "out", cluster={"scheduler": address, **ours._asdict()}, **HOW)
        with pytest.raises(ClusterLost, match=r"answers.*tls://"):
            tls = plain.replace("tcp", "tls")
            mine(rows, tmp_path / "out", cluster={"scheduler": tls, "waiting_seconds": 1, **ours._asdict()}, **HOW)


def test_encryption_that_dask_is_to_require(rows: Path, tmp_path: Path, ours: Certificate) -> None:
    """A run in one process needs no certificates. A run that opens ports is refused without them."""
    required = {"distributed.comm.require-encryption": True}
    with dask.config.set(required):
        with pytest.raises(UsageError, match=r"tcp://.*tls://"):
            mine(rows, tmp_path / "out", scheduler="tcp://127.0.0.1:9", **HOW)
        with pytest.raises(UsageError, match="require-encryption"):
            mine(rows, tmp_path / "out", workers=1, **HOW)
        with connect(ClusterSettings(device="cpu")) as client:
            assert client.scheduler_info()["address"].startswith("inproc://")
        with connect(ClusterSettings(device="cpu", workers=1, **ours._asdict())) as client:
            assert client.scheduler_info()["address"].startswith("tls://")
    assert not (tmp_path / "out").exists()


def test_files_that_do_not_serve(rows: Path, tmp_path: Path, folder: Path, ours: Certificate) -> None:
    other = certificate(folder, "other")
    secret = certificate(folder, "secret", password=b"hush")
    cases: list[tuple[dict[str, Any], str]] = [
        ({**ours._asdict(), "tls_ca_file": "absent.pem"}, r"cluster\.tls_ca_file: cannot read absent\.pem: No such"),
        ({**ours._asdict(), "tls_key_file": str(tmp_path)}, r"cluster\.tls_key_file: cannot read .*: Is a directory"),
        ({**ours._asdict(), "tls_ca_file": str(rows)}, r"cluster\.tls_ca_file: .* holds no certificate \(PEM\)"),
        ({**ours._asdict(), "tls_key_file": other.tls_key_file}, r"are no certificate and its key .*[mM]ismatch"),
        (secret._asdict(), r"are no certificate and its key without a password .*encrypted"),
        ({**ours._asdict(), "tls_key_file": None}, r"and the key in it are no certificate and its key"),
        (
            {**ours._asdict(), "tls_cert_file": None},
            r"tls_ca_file and cluster\.tls_cert_file must be set together|set that too",
        ),
        ({"tls_key_file": "key.pem"}, r"cluster\.tls_key_file is the key of cluster\.tls_cert_file: set that too"),
        ({**ours._asdict(), "protocol": "ucxx"}, r'protocol"?[=:] ?"ucxx"}? is not encrypted'),
    ]
    for settings, text in cases:
        for workers in (None, 2):
            with pytest.raises(UsageError, match=text):
                mine(rows, tmp_path / "out", cluster={"workers": workers, **settings}, **HOW)
