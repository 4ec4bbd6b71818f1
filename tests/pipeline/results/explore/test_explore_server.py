"""The explorer's server: hosts, methods, headers, files and errors."""

from __future__ import annotations

import http.client
import json
import re
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote

import fsspec
import psutil
import pyarrow as pa
import pyarrow.csv
import pytest

from edgemill.pipeline import Result, UsageError
from edgemill.pipeline.explorer import server
from edgemill.pipeline.explorer.server import ExplorerServer
from edgemill.pipeline.output.manifest import Manifest
from in_process import call
from serving import answer, ask, get, send, serving

WriteResult = Callable[..., Manifest]
STATIC = Path(server.__file__).parent / "static"


def test_a_browser_that_goes_away_is_no_error(served: ExplorerServer, capsys: pytest.CaptureFixture[str]) -> None:
    for error, told in ((ConnectionResetError(), ""), (TimeoutError(), ""), (ValueError("unheard of"), "unheard of")):
        try:
            raise error
        except (OSError, ValueError):
            served.handle_error(None, ("127.0.0.1", 1))
        assert told in (said := capsys.readouterr().err)
        assert bool(said) == bool(told)


def test_only_this_machine_is_listened_to(served: ExplorerServer) -> None:
    found = [
        connection.laddr
        for connection in psutil.Process().net_connections("inet")
        if connection.status == psutil.CONN_LISTEN and connection.laddr.port == served.server_port
    ]
    assert [address.ip for address in found] == ["127.0.0.1"]
    assert served.address == f"http://127.0.0.1:{served.server_port}/"


@pytest.mark.parametrize("path", ["/", "/explore.js", "/api/result", "/api/nothing"])
@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "[::1]:{port}", ""]
)
def test_another_host_is_refused(served: ExplorerServer, path: str, host: str) -> None:
    response, content = get(served, path, Host=host.format(port=served.server_port))
    assert response.status == 403
    assert b"88,234" not in content
    assert b"edges" not in content


def test_its_own_names_are_not_refused(served: ExplorerServer) -> None:
    for name in ("127.0.0.1", "localhost"):
        assert get(served, "/api/result", Host=f"{name}:{served.server_port}")[0].status == 200
    own = f"Host: 127.0.0.1:{served.server_port}\r\n".encode()
    for hosts in (b"", own + b"Host: evil.example\r\n", own + own):
        with socket.create_connection((server.ADDRESS, served.server_port)) as raw:
            raw.sendall(b"GET / HTTP/1.0\r\n" + hosts + b"\r\n")
            assert raw.makefile("rb").readline().split()[1] == b"403"


def test_the_port_that_browsers_leave_out(facebook: Result) -> None:
    with ExplorerServer(facebook) as served:
        port, served.server_port = served.server_port, 80  # as if it were port 80
        thread = threading.Thread(target=served.serve_forever)
        thread.start()
        try:
            for host, status in {
                "127.0.0.1": 200,
                "localhost:80": 200,
                "evil.example": 403,
                f"127.0.0.1:{port}": 403,
            }.items():
                connection = http.client.HTTPConnection(server.ADDRESS, port)
                connection.request("GET", "/api/result", headers={"Host": host})
                assert connection.getresponse().status == status, host
                connection.close()
        finally:
            served.shutdown()
            thread.join()


def test_a_page_of_another_site_is_refused(served: ExplorerServer) -> None:
    for site in ("cross-site", "same-site"):
        assert get(served, "/api/result", Sec_Fetch_Site=site)[0].status == 403
    for site in ("same-origin", "none"):
        assert get(served, "/api/result", Sec_Fetch_Site=site)[0].status == 200


@pytest.mark.parametrize("method", ["HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"])
def test_nothing_but_get(served: ExplorerServer, method: str) -> None:
    response, _ = send(served, method, "/api/result", {"Origin": "http://evil.example"})
    assert (response.status, response.headers["Allow"]) == (405, "GET")
    assert "Access-Control-Allow-Origin" not in response.headers


def test_headers(served: ExplorerServer) -> None:
    for path in ("/", "/explore.js", "/api/result", "/nothing"):
        headers = get(served, path, Origin="http://evil.example")[0].headers
        policy = dict(part.split(" ", 1) for part in headers["Content-Security-Policy"].split("; "))
        assert (
            policy["default-src"]
            == policy["base-uri"]
            == policy["form-action"]
            == policy["frame-ancestors"]
            == "'none'"
        )
        assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cross-Origin-Resource-Policy"] == headers["Cross-Origin-Opener-Policy"] == "same-origin"
        assert headers["Cache-Control"] == "no-store"  # another run may get the same port and address
        assert not [name for name in headers if name.startswith("Access-Control")]
        assert "Python" not in headers["Server"]


@pytest.mark.parametrize(
    "path",
    [
        "/manifest.json",
        "/../manifest.json",
        "/vendor/../../../../manifest.py",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/vendor/%2e%2e/style.css",
        "/..%2fserver.py",
        "/server.py",
        "/static/index.html",
        "/index.html",
        "//etc/passwd",
        "/etc/passwd",
        "/vendor/",
        "/vendor",
        "//[",
        "/\\..\\server.py",
        "/%00",
        "/api/",
        "/api/result/../../manifest.json",
        "http://127.0.0.1/style.css",
        "file:///etc/passwd",
    ],
)
def test_paths_of_requests_are_not_file_paths(served: ExplorerServer, path: str) -> None:
    with socket.create_connection((server.ADDRESS, served.server_port)) as raw:
        raw.sendall(f"GET {path} HTTP/1.0\r\nHost: 127.0.0.1:{served.server_port}\r\n\r\n".encode())
        with raw.makefile("rb") as answer:
            content = answer.read()
    assert content.split()[1] == b"404"
    assert content.endswith(b'{"error":"there is no such page"}')


@pytest.mark.parametrize(
    "question",
    [
        "hierarchy?component=",
        "hierarchy?component=1.5",
        "hierarchy?component=1e3",
        "hierarchy?component=99999999999999999999",
        "hierarchy?component=9223372036854775808",
        "hierarchy?component=%D9%A1",
        "hierarchy?component=1&component=2",
        "hierarchy?depth=0",
        "hierarchy?depth=25",
        "hierarchy?depth=-1",
        "hierarchy?most=201",
        "hierarchy?most=" + "1" * 5000,
        "hierarchy?most=0000000001999",
        "hierarchy?depth=00000000010",
        "hierarchy?most=%C2%B2",
        "hierarchy?more=1",
        "hierarchy?" + "&".join(f"a{n}=1" for n in range(20)),
        "vertex",
        "vertex?id=one",
        "vertex?id=",
        "vertex?id=9223372036854775808",
        "vertex?id=%FF",
        "vertex?id=" + "9" * 5000,
        "vertex?id=1;DROP",
        "largest?by=id",
        "largest?by=__class__",
        "largest?most=0",
        "drawing",
        "drawing?group=x",
        "search",
        "search?text=",
        "search?text=%20",
        "search?text=" + "x" * 201,
        "members",
        "members?group=1.5",
        "result?x=1",
    ],
)
def test_bad_requests_get_a_message(served: ExplorerServer, question: str) -> None:
    response, content = get(served, f"/api/{question}")
    assert response.status == 400
    assert 0 < len(json.loads(content)["error"]) < 300


def test_not_found(served: ExplorerServer) -> None:
    assert ask(served, "hierarchy", component=-1)[0] == 404
    assert ask(served, "drawing", group=-1)[0] == 404
    assert ask(served, "drawing", group=2**63 - 1)[0] == 404
    assert ask(served, "members", group=-1)[0] == 404
    assert get(served, "/members.csv?group=-1")[0].status == 404


def test_static_files_are_served_from_the_package(served: ExplorerServer) -> None:
    on_disk = {str(path.relative_to(STATIC)) for path in STATIC.rglob("*") if path.is_file()}
    assert {name for name, _ in server._FILES.values()} == on_disk
    for path, (name, kind) in server._FILES.items():
        response, content = get(served, path)
        assert (response.status, response.headers["Content-Type"], content) == (
            200,
            kind,
            (STATIC / name).read_bytes(),
        )


def test_vendored_files_equal_the_published_ones() -> None:
    """The files equal the builds in the npm packages byte for byte."""
    published = {
        "sigma.min.js": "58e30383ab428f832068d9d16a5215c65ba12430d438ed091c5703f398de9e16",
        "graphology.umd.min.js": "dc337efa23903f61e064c8e7e7f93a429e6855dccfc2458802b4ed30c621c087",
    }
    for name, expected in published.items():
        assert sha256((STATIC / "vendor" / name).read_bytes()).hexdigest() == expected
    licences = (STATIC / "vendor" / "LICENSES.txt").read_text()
    assert all(name in licences for name in ("sigma 3.0.3", "graphology 0.26.0", "graphology-utils", "events"))
    assert licences.count("Permission is hereby granted") == 4


def test_own_files_name_no_other_host() -> None:
    for path in STATIC.iterdir():
        if path.is_file():
            links = re.findall(r"(?:https?:)?//[\w.-]+\.\w+[^\s\"']*", path.read_text())
            assert set(links) <= {"http://www.w3.org/2000/svg"}, path


HOSTILE = ["</script><img src=x onerror=alert(1)>", "a=b&c#d", "ä \U0001f41f", "'\"\\", "x" * 300]


def test_hostile_ids_are_unchanged(made: Callable[..., Result]) -> None:
    pairs = [(a, b) for a in HOSTILE for b in HOSTILE if a < b]
    with serving(made(pairs, pa.string())) as served:
        for id in HOSTILE:
            said = answer(served, "vertex", id=id)
            assert (said["id"], said["lambda"]) == (id, 3)
        said = answer(served, "drawing", group=said["listed"]["component"])
        assert sorted(said["vertices"]["id"]) == sorted(HOSTILE)
        status, said = ask(served, "vertex", id="a")
        assert (status, said["next"][0]) == (404, "a=b&c#d")


@pytest.mark.parametrize(
    "pairs", [*(pytest.param(pairs, marks=pytest.mark.slow) for pairs in ([], [(1, 1), (2, 2)])), [(1, 2), (2, 3)]]
)
def test_results_without_dense_groups_are_shown_empty(
    made: Callable[..., Result], pairs: list[tuple[int, int]]
) -> None:
    with serving(made(pairs)) as served:
        assert answer(served, "largest") == {"count": 0, "largest": []}
        assert answer(served, "hierarchy")["node"]["children"]["count"] == len({b for a, b in pairs if a != b} and [1])
        if pairs:
            said = answer(served, "vertex", id=1)
            assert (said["listed"], len(said["groups"])) == (None, int(pairs[0] == (1, 2)))


def test_an_object_store(facebook: Result) -> None:
    store = fsspec.filesystem("memory")
    store.put(str(facebook.path), "/explored/out", recursive=True)
    try:
        with serving(Result("memory://explored/out")) as served:
            assert answer(served, "result")["name"] == "out"
            (best, *_) = answer(served, "largest")["largest"]
            assert answer(served, "drawing", group=best["component"])["members"] == best["vertices"]
            del best["members"]
            assert answer(served, "vertex", id=1912)["listed"] == best
            assert answer(served, "hierarchy", depth=3)["node"]["children"]["count"] == 1
        with serving(Result("memory://explored/out")) as served:
            store.rm("/explored/out/vertices", recursive=True)
            status, said = ask(served, "vertex", id=1912)
            assert (status, said["error"].partition(":")[0]) == (500, "cannot read memory")
            store.rm("/explored/out/manifest.json")
            assert ask(served, "vertex", id=1912)[0] == 409
    finally:
        store.rm("/explored", recursive=True)


@pytest.mark.parametrize(
    ("changes", "why"),
    [({}, "was made by an earlier release: run again"), ({"converged": False, "unsettled": 2}, "did not converge")],
)
def test_results_without_the_tables_are_refused(
    tmp_path: Path, write_result: WriteResult, changes: dict[str, Any], why: str
) -> None:
    write_result(tmp_path / "out", **changes)
    ended = call("explore", str(tmp_path / "out"))
    assert ended.exit_code == 2
    assert ended.stderr == f"Error: {tmp_path}/out has no table hierarchy, as the run {why}\n"
    assert not ended.stdout


def test_a_port_that_is_taken_is_refused(facebook: Result, served: ExplorerServer) -> None:
    with pytest.raises(UsageError, match=f"port {served.server_port} cannot be bound"):
        ExplorerServer(facebook, served.server_port)
    ended = call("explore", str(facebook.path), "--port", "70000")
    assert ended.exit_code == 2


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 0), pytest.param(signal.SIGTERM, 128 + signal.SIGTERM, marks=pytest.mark.slow)],
)
def test_the_command_serves_until_a_signal(facebook: Result, number: signal.Signals, code: int) -> None:
    command = [sys.executable, "-m", "edgemill.pipeline", "explore", str(facebook.path)]
    # Processes that a shell started in the background ignore Ctrl-C, and so do their children.
    command = ["env", "--default-signal=INT", *command]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            found = re.fullmatch(rf"{re.escape(str(facebook.path))} .*(http://127\.0\.0\.1:\d+/); .*Ctrl-C.*\n", said)
            assert found, said
            with urllib.request.urlopen(found[1]) as page:
                assert b"<title>edgemill explorer</title>" in page.read()
            with urllib.request.urlopen(f"{found[1]}api/vertex?id={quote('12')}") as page:
                assert json.load(page)["id"] == "12"
        finally:
            process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (code, "")
    assert err == ("" if code == 0 else "Error: terminated\n")
