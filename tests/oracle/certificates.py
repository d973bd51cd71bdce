"""Certificates for tests of TLS: an authority, and whom it vouches for."""

from __future__ import annotations

import datetime as dt
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)
from cryptography.x509.oid import NameOID

LIFE = dt.timedelta(days=2)


class Certificate:
    """A key with its certificate, in memory; `chain` is its own and those above it, as PEM."""

    def __init__(
        self,
        name: str,
        signer: Certificate | None = None,
        *,
        host: str = "",
        key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey | None = None,
    ) -> None:
        """Signed by itself where nobody else does; `host` is a name or an address."""
        self.key = key or ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        now = dt.datetime.now(dt.UTC)
        unsigned = (
            x509.CertificateBuilder()
            .subject_name(self.name)
            .issuer_name(self.name if signer is None else signer.name)
            .public_key(self.key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - LIFE)
            .not_valid_after(now + LIFE)
            .add_extension(x509.BasicConstraints(ca=signer is None, path_length=None), True)
        )
        if host:
            unsigned = unsigned.add_extension(x509.SubjectAlternativeName([_host(host)]), False)
        signing_key = self.key if signer is None else signer.key
        self.certificate = unsigned.sign(signing_key, hashes.SHA256())

    @property
    def pem(self) -> bytes:
        """The certificate alone."""
        return self.certificate.public_bytes(Encoding.PEM)

    def write_pem(self, file: Path, *, password: str | None = None) -> Path:
        """Key and certificate as a key store in text."""
        file.write_bytes(
            self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, _encryption(password))
            + self.pem
        )
        return file

    def write_pkcs12(self, file: Path, password: str) -> Path:
        """Key and certificate as a PKCS12 key store."""
        file.write_bytes(
            pkcs12.serialize_key_and_certificates(
                b"own", self.key, self.certificate, None, _encryption(password)
            )
        )
        return file

    def write_trust(self, file: Path, password: str | None = None) -> Path:
        """The certificate as a trust store: PKCS12 where there is a password, else PEM."""
        if password is None:
            file.write_bytes(self.pem)
        else:
            held = pkcs12.PKCS12Certificate(self.certificate, b"authority")
            file.write_bytes(pkcs12.serialize_java_truststore([held], _encryption(password)))
        return file


def _encryption(password: str | None) -> KeySerializationEncryption:
    return NoEncryption() if password is None else BestAvailableEncryption(password.encode())


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
