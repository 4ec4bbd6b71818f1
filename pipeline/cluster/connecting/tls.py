"""TLS between the driver, the scheduler and the workers. Certificates come from the settings, or from Dask's own."""

from __future__ import annotations

import socket
import ssl
from urllib.parse import urlsplit

import dask
from distributed import Security
from distributed.comm.addressing import get_address_host_port, parse_address

from ....tasks.errors import UsageError
from ...settings.models import ClusterSettings

_LIKE = "it is like tcp://host:8786"
_PROBE_SECONDS = 5
_REQUIRED = "Dask's configuration distributed.comm.require-encryption"
_ROLES = ("client", "scheduler", "worker")


def security(settings: ClusterSettings) -> Security | None:
    """The certificate of the settings, for all parts of the cluster; None leaves it to Dask's configuration.

    Raises UsageError for a file that is missing or cannot be used, with the name of its setting.
    """
    authority, certificate, key = settings.tls_ca_file, settings.tls_cert_file, settings.tls_key_file
    if authority is None or certificate is None:
        return None
    _check("tls_ca_file", authority)
    _check("tls_cert_file", certificate)
    if key is not None:
        _check("tls_key_file", key)
    context = ssl.create_default_context()
    try:
        context.load_verify_locations(authority)
    except ssl.SSLError as error:
        raise UsageError(f"cluster.tls_ca_file: {authority} holds no certificate (PEM): {error}") from error
    try:
        context.load_cert_chain(certificate, key, password=_no_password)
    except (ssl.SSLError, _Encrypted) as error:
        raise UsageError(
            f"cluster.tls_cert_file, cluster.tls_key_file: {certificate} and {key or 'the key in it'} are no "
            f"certificate and its key without a password (PEM): {error}"
        ) from error
    return Security(
        require_encryption=True,
        tls_ca_file=authority,
        **{f"tls_{role}_cert": certificate for role in _ROLES},
        **{f"tls_{role}_key": key for role in _ROLES},
    )


def is_encrypted(chosen: Security | None) -> bool:
    """Whether a cluster with this security must use TLS."""
    return bool((chosen or Security()).require_encryption)


def check_address(address: str, chosen: Security | None) -> None:
    """Raises UsageError if no scheduler can have this address, or if the certificates do not fit it."""
    try:
        scheme, _ = parse_address(address)
        host, port = get_address_host_port(address)
    except ValueError as error:
        raise UsageError(
            f"cluster.scheduler: {address!r} is not the address of a scheduler: {error}; {_LIKE}"
        ) from error
    if not host or not 0 < port < 65536:
        raise UsageError(f"cluster.scheduler: {address!r} is not the address of a scheduler; {_LIKE}")
    if chosen is None and dask.config.get("distributed.client.security-loader", None):
        return
    if is_encrypted(chosen) and scheme != "tls":
        reason = f"{_REQUIRED} is true" if chosen is None else "cluster.tls_ca_file is set"
        raise UsageError(f"cluster.scheduler: {address} is not encrypted, and {reason}: use tls://")
    if scheme == "tls" and not _has_certificate(chosen, "client"):
        raise UsageError(
            f"cluster.scheduler: {address} needs certificates: set cluster.tls_ca_file, cluster.tls_cert_file and "
            "cluster.tls_key_file, or Dask's distributed.comm.tls"
        )


def check_processes(chosen: Security | None) -> None:
    """Raises UsageError if processes started here must use TLS and have no certificates."""
    if is_encrypted(chosen) and not all(_has_certificate(chosen, role) for role in _ROLES):
        raise UsageError(
            f"{_REQUIRED} is true, and there are no certificates: set cluster.tls_ca_file, cluster.tls_cert_file and "
            "cluster.tls_key_file, or Dask's distributed.comm.tls"
        )


def _has_certificate(chosen: Security | None, role: str) -> bool:
    try:
        return (chosen or Security()).get_connection_args(role)["ssl_context"] is not None
    except (OSError, ValueError) as error:
        raise UsageError(f"Dask's configuration distributed.comm.tls names no usable certificates: {error}") from error


def speaks_tls(address: str) -> bool:
    """Whether the server at `tcp://host:port` starts a TLS handshake, whatever certificate it has."""
    server = urlsplit(address if "://" in address else f"tcp://{address}")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with (
            socket.create_connection((server.hostname or "", server.port or 0), _PROBE_SECONDS) as plain,
            context.wrap_socket(plain),
        ):
            return True
    except ssl.SSLError as error:
        return "ALERT" in (error.reason or "")  # it asks for a certificate first
    except (OSError, ValueError):
        return False


class _Encrypted(Exception):
    """A key with a password, for which Dask would ask on the terminal of every process."""


def _no_password() -> str:
    raise _Encrypted("the key is encrypted")


def _check(name: str, path: str) -> None:
    try:
        with open(path, "rb"):
            pass
    except OSError as error:
        raise UsageError(f"cluster.{name}: cannot read {path}: {error.strerror}") from error
