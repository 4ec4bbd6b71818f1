"""S3 servers on the loopback interface that handle conditional writes as some stores do."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal
from urllib.request import Request, urlopen

import fsspec

Treatment = Literal["obey", "ignore", "501 Not Implemented", "400 Bad Request"]
"""How a server handles the header If-None-Match of a PUT."""
_ERROR = "<?xml version='1.0'?><Error><Code>{}</Code><Message>{}</Message></Error>"
_CODES = {"501 Not Implemented": "NotImplemented", "400 Bad Request": "InvalidArgument"}


@contextmanager
def s3_server(treatment: Treatment = "obey") -> Iterator[dict[str, Any]]:
    """Moto's S3 server with the bucket `bucket` with this behaviour. Yields storage options.

    Buckets are deleted at the end: Moto keeps them for the process, where a module's fixtures may be made again.
    """
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    s3 = DomainDispatcherApplication(create_backend_app)

    def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        if environ["REQUEST_METHOD"] == "PUT" and "HTTP_IF_NONE_MATCH" in environ and treatment != "obey":
            if treatment != "ignore":
                body = _ERROR.format(_CODES[treatment], "a header you provided is unknown").encode()
                environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
                start_response(treatment, [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))])
                return [body]
            del environ["HTTP_IF_NONE_MATCH"]
        return s3(environ, start_response)

    server = make_server("127.0.0.1", 0, answer, threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    address = f"http://127.0.0.1:{server.server_port}"
    options = {"key": "theaccesskey", "secret": "thesecretkey", "client_kwargs": {"endpoint_url": address}}
    try:
        fsspec.filesystem("s3", **options).makedirs("bucket", exist_ok=True)
        yield options
        with urlopen(Request(f"{address}/moto-api/reset", method="POST")):
            pass
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
