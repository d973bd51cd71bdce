"""Key stores and trust stores for tests of TLS: an authority, and what it issues."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.hazmat.primitives.serialization.pkcs12 import (
    PKCS12Certificate,
    serialize_java_truststore,
)

from barnabas_kafka.certificates import create_authority, issue, pkcs12

DAYS = 2


class Certificate:
    """An authority, or what one has issued: a key with its certificate, in memory."""

    def __init__(
        self,
        name: str,
        signer: Certificate | None = None,
        *,
        host: str = "",
        more_hosts: Sequence[str] = (),
    ) -> None:
        """An authority where there is no signer; a host is a name or an address."""
        now = dt.datetime.now(dt.UTC)
        if signer is None:
            self.pair = create_authority(name, now=now, days=DAYS)
        else:
            hosts = [*([host] if host else []), *more_hosts]
            validity = dt.timedelta(days=DAYS)
            self.pair = issue(signer.pair, name, hosts=hosts, now=now, validity=validity)

    @property
    def pem(self) -> bytes:
        """The certificate alone."""
        return self.pair.certificate.encode()

    def write_pem(self, file: Path, *, password: str | None = None) -> Path:
        """Key and certificate as a key store in text."""
        key = self.pair.key.encode()
        if password is not None:
            key = load_pem_private_key(key, None).private_bytes(
                Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(password.encode())
            )
        file.write_bytes(key + self.pem)
        return file

    def write_pkcs12(self, file: Path, password: str) -> Path:
        """Key and certificate as a PKCS12 key store."""
        file.write_bytes(pkcs12(self.pair, name="own", password=password))
        return file

    def write_trust(self, file: Path, password: str | None = None) -> Path:
        """The certificate as a trust store: PKCS12 where there is a password, else PEM."""
        if password is None:
            file.write_bytes(self.pem)
        else:
            held = PKCS12Certificate(x509.load_pem_x509_certificate(self.pem), b"authority")
            encryption = BestAvailableEncryption(password.encode())
            file.write_bytes(serialize_java_truststore([held], encryption))
        return file
