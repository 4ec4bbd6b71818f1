"""TLS between the driver, the scheduler and the workers: certificates from the settings, else from Dask's own."""

from __future__ import annotations

import socket
import ssl
from urllib.parse import urlsplit

import dask
from distributed import Security

from ..tasks.errors import UsageError
from .settings import ClusterSettings

__all__ = ["check_address", "is_encrypted", "security", "speaks_tls"]

_PROBE_SECONDS = 5


def security(settings: ClusterSettings) -> Security | None:
    """The settings' certificate, for all parts of the cluster; None if there is none, and Dask's configuration holds.

    Raises UsageError that names the setting of a file that is missing or unfit.
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
            f"cluster.tls_cert_file, tls_key_file: {certificate} and {key or 'the key in it'} are no certificate and "
            f"its key without a password (PEM): {error}"
        ) from error
    roles = ("client", "scheduler", "worker")
    return Security(
        require_encryption=True,
        tls_ca_file=authority,
        **{f"tls_{role}_cert": certificate for role in roles},
        **{f"tls_{role}_key": key for role in roles},
    )


def is_encrypted(chosen: Security | None) -> bool:
    """Whether a cluster started with `chosen` would have to speak TLS."""
    return bool((chosen or Security()).require_encryption)


def check_address(address: str, chosen: Security | None) -> None:
    """Raises UsageError if the scheduler's address and the certificates do not go together."""
    if chosen is not None and "://" in address and not address.startswith("tls://"):
        raise UsageError(f"cluster.scheduler: {address} is not encrypted, and cluster.tls_ca_file is set: use tls://")
    if not address.startswith("tls://") or dask.config.get("distributed.client.security-loader", None):
        return
    try:
        context = (chosen or Security()).get_connection_args("client")["ssl_context"]
    except (OSError, ValueError) as error:
        raise UsageError(f"Dask's configuration distributed.comm.tls names no usable certificates: {error}") from error
    if context is None:
        raise UsageError(
            f"cluster.scheduler: {address} needs certificates: set cluster.tls_ca_file, cluster.tls_cert_file and "
            "cluster.tls_key_file, or Dask's distributed.comm.tls"
        )


def speaks_tls(address: str) -> bool:
    """Whether what listens at `tcp://host:port` begins by TLS, whatever certificate it has."""
    place = urlsplit(address if "://" in address else f"tcp://{address}")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with (
            socket.create_connection((place.hostname or "", place.port or 0), _PROBE_SECONDS) as plain,
            context.wrap_socket(plain),
        ):
            return True
    except ssl.SSLError as error:
        return "ALERT" in (error.reason or "")  # it wants a certificate from us at once
    except (OSError, ValueError):
        return False


class _Encrypted(Exception):
    """A key that wants a password; Dask would ask for it on the terminal of every process."""


def _no_password() -> str:
    raise _Encrypted("the key is encrypted")


def _check(name: str, path: str) -> None:
    try:
        with open(path, "rb"):
            pass
    except OSError as error:
        raise UsageError(f"cluster.{name}: cannot read {path}: {error.strerror}") from error
