"""A certificate authority for development and tests: a directory with its key and certificate.

`authority.pem` is what clients trust, `authority.key` signs. Issued certificates are one PEM file
each, key and chain, which brokers and clients take as a key store. Production has an authority of
its own: this one keeps its key in a file, and cannot revoke.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CERTIFICATE: Final = "authority.pem"
KEY: Final = "authority.key"
AUTHORITY_DAYS: Final = 3650
BACKDATED: Final = dt.timedelta(minutes=5)
"""Clocks of other machines may be behind."""

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class PkiError(Exception):
    """What cannot be done, in one line."""


class Authority:
    """One that signs. Its key is an EC key on P-256, as are those that it issues."""

    def __init__(self, directory: Path) -> None:
        """Read it; raises PkiError where there is none."""
        self._directory = directory
        try:
            key = load_pem_private_key((directory / KEY).read_bytes(), None)
            self.certificate = x509.load_pem_x509_certificate(
                (directory / CERTIFICATE).read_bytes()
            )
        except OSError as error:
            raise PkiError(f"{error.filename}: {error.strerror}") from None
        except (ValueError, TypeError) as error:
            raise PkiError(f"{directory}: its key or certificate cannot be read: {error}") from None
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise PkiError(f"{directory / KEY}: it is no EC key")
        if key.public_key() != self.certificate.public_key():
            raise PkiError(f"{directory}: key and certificate do not belong together")
        self._key = key

    @classmethod
    def init(cls, directory: Path, name: str) -> Authority:
        """Make one in a directory, which is made if need be; raises PkiError if there is one."""
        directory.mkdir(parents=True, exist_ok=True)
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _subject(name)
        certificate = (
            _unsigned(subject, subject, key.public_key(), days=AUTHORITY_DAYS)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
            .sign(key, hashes.SHA256())
        )
        write_new(directory / KEY, _key_pem(key), private=True)
        write_new(directory / CERTIFICATE, certificate.public_bytes(Encoding.PEM), private=False)
        return cls(directory)

    @property
    def trust(self) -> Path:
        """The trust store."""
        return self._directory / CERTIFICATE

    def issue(
        self, name: str, hosts: Sequence[str], *, days: int, file: Path | None = None
    ) -> Path:
        """Write a key with its certificate to a new file; raises PkiError."""
        if file is None and _NAME.fullmatch(name) is None:
            raise PkiError(f"{name}: give a file name, or a name of letters, digits, '.', '-', '_'")
        file = file or self._directory / f"{name}.pem"
        key = ec.generate_private_key(ec.SECP256R1())
        unsigned = (
            _unsigned(_subject(name), self.certificate.subject, key.public_key(), days=days)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(
                x509.ExtendedKeyUsage(
                    [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
                ),
                critical=False,
            )
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                critical=False,
            )
        )
        if hosts:
            names = x509.SubjectAlternativeName([_host(host) for host in hosts])
            unsigned = unsigned.add_extension(names, critical=False)
        certificate = unsigned.sign(self._key, hashes.SHA256())
        chain = certificate.public_bytes(Encoding.PEM) + self.certificate.public_bytes(Encoding.PEM)
        write_new(file, _key_pem(key) + chain, private=True)
        return file


def certificates(file: Path) -> list[x509.Certificate]:
    """Those of a PEM file, in its order; raises PkiError where there is none."""
    try:
        return x509.load_pem_x509_certificates(file.read_bytes())
    except OSError as error:
        raise PkiError(f"{file}: {error.strerror}") from None
    except ValueError as error:
        raise PkiError(f"{file}: {error}") from None


def names(certificate: x509.Certificate) -> list[str]:
    """The hosts that a certificate is for."""
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return []
    return [str(each.value) for each in found.value]


def write_new(file: Path, data: bytes, *, private: bool) -> None:
    """Write a file that does not exist yet; no other user ever reads a private one."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    try:
        descriptor = os.open(file, flags, 0o600 if private else 0o644)
    except FileExistsError:
        raise PkiError(f"{file} exists; it is not replaced") from None
    except OSError as error:
        raise PkiError(f"{file}: {error.strerror}") from None
    try:
        os.write(descriptor, data)
    finally:
        os.close(descriptor)


def _subject(name: str) -> x509.Name:
    try:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    except ValueError as error:
        raise PkiError(f"{name!r} is no common name: {error}") from None


def _unsigned(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, *, days: int
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(now + dt.timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host.strip("[]")))
    except ValueError:
        pass
    try:
        return x509.DNSName(host)
    except ValueError as error:
        raise PkiError(f"{host!r} is no host: {error}") from None


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
