"""Certificates for tests of TLS, each of an authority of its own."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class Certificate(NamedTuple):
    """PEM files: of the authority, of a certificate that it signed, and of its key."""

    tls_ca_file: str
    tls_cert_file: str
    tls_key_file: str


def certificate(folder: Path, name: str, password: bytes | None = None) -> Certificate:
    """A new authority and a certificate from it."""
    keys = [ec.generate_private_key(ec.SECP256R1()) for _ in range(2)]
    names = [x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{name}-{part}")]) for part in ("ca", "node")]
    now = datetime.now(UTC)
    paths = []
    for place, part in enumerate(("ca", "node")):
        made = (
            x509.CertificateBuilder()
            .subject_name(names[place])
            .issuer_name(names[0])
            .public_key(keys[place].public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(hours=1))
            .add_extension(x509.BasicConstraints(ca=place == 0, path_length=None), critical=True)
            .sign(keys[0], hashes.SHA256())
        )
        paths.append(folder / f"{name}-{part}.pem")
        paths[-1].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    how = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    paths.append(folder / f"{name}-key.pem")
    paths[-1].write_bytes(keys[1].private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, how))
    return Certificate(*map(str, paths))
