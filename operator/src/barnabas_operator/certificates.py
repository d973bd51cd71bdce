"""Certificates as the operator makes and reads them; only this module imports `cryptography`."""

from __future__ import annotations

import ipaddress
import secrets
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Final, TypeVar

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from barnabas_operator.names import ORGANIZATION
from barnabas_operator.plan.certificates import BEGIN, CertificateView, KeyPair, is_address

# Clocks of nodes differ: a certificate is valid a little before it is issued.
BACKDATED: Final = timedelta(minutes=5)

Signer = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
Extension = TypeVar("Extension", bound=x509.ExtensionType)


class CertificateError(Exception):
    """A certificate or key cannot be used; the message has nothing of the key."""


def create_authority(name: str, *, now: datetime, days: int) -> KeyPair:
    """A new certificate authority. Its name is unlike that of every other: clients trust both."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, ORGANIZATION),
            x509.NameAttribute(NameOID.COMMON_NAME, f"{name} {secrets.token_hex(4)}"),
        ]
    )
    builder = _builder(subject, subject, key.public_key(), now=now, days=days)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_key_usage(authority=True), critical=True)
    return _pair(builder.sign(key, hashes.SHA256()), key)


def issue(
    authority: KeyPair,
    common_name: str,
    *,
    hosts: Collection[str] = (),
    organization: str = "",
    now: datetime,
    validity: timedelta,
) -> KeyPair:
    """A certificate and a new key. With `hosts` it is for servers too, else for clients alone.

    The principal of a client is its name alone: only what the operator runs has an organization.
    """
    signer, above = _load(authority)
    key = ec.generate_private_key(ec.SECP256R1())
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, common_name)]
    if organization:
        parts.insert(0, x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization))
    # No certificate outlives the one that it is verified with.
    until = min(now + validity, above.not_valid_after_utc)
    builder = _builder(x509.Name(parts), above.subject, key.public_key(), now=now, until=until)
    builder = builder.add_extension(
        x509.BasicConstraints(ca=False, path_length=None), critical=True
    )
    builder = builder.add_extension(_key_usage(authority=False), critical=True)
    usages = [ExtendedKeyUsageOID.CLIENT_AUTH]
    if hosts:
        usages.append(ExtendedKeyUsageOID.SERVER_AUTH)
        names = x509.SubjectAlternativeName([_general_name(host) for host in sorted(hosts)])
        builder = builder.add_extension(names, critical=False)
    builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
    builder = builder.add_extension(_authority_key(above), critical=False)
    return _pair(builder.sign(signer, hashes.SHA256()), key)


def read_certificate(text: str) -> CertificateView:
    """What the first certificate of a PEM text says; raises CertificateError."""
    found = _parse(text)
    common = found.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    names = _extension(found, x509.SubjectAlternativeName)
    above = _extension(found, x509.AuthorityKeyIdentifier)
    hosts: set[str] = set()
    if names is not None:
        hosts.update(names.get_values_for_type(x509.DNSName))
        hosts.update(map(str, names.get_values_for_type(x509.IPAddress)))
    return CertificateView(
        common_name=str(common[0].value) if common else "",
        subject=found.subject.rfc4514_string(),
        issuer=found.issuer.rfc4514_string(),
        key_id=_key_id(found),
        authority_key_id=(above.key_identifier if above else None) or b"",
        hosts=frozenset(hosts),
        not_before=found.not_valid_before_utc,
        not_after=found.not_valid_after_utc,
    )


def check_authority(pair: KeyPair, *, now: datetime | None) -> None:
    """Raises CertificateError unless clients can trust this alone, and the key is its own.

    Without `now` it may have expired.
    """
    _, found = _load(pair)
    constraints = _extension(found, x509.BasicConstraints)
    if constraints is None or not constraints.ca:
        raise CertificateError("the certificate is not that of a certificate authority")
    usage = _extension(found, x509.KeyUsage)
    if usage is not None and not usage.key_cert_sign:
        raise CertificateError("the key usage of the certificate forbids to sign certificates")
    if pair.certificate.count(BEGIN) != 1:
        raise CertificateError("there must be one certificate: a root, without a chain")
    try:
        found.verify_directly_issued_by(found)
    except (InvalidSignature, ValueError, TypeError) as error:
        text = "the certificate is not signed by itself: clients trust it alone, without a chain"
        raise CertificateError(text) from error
    check_pair(pair)
    if now is None:
        return
    if found.not_valid_before_utc > now:
        text = f"the certificate is not valid before {found.not_valid_before_utc:%Y-%m-%dT%H:%M}"
        raise CertificateError(text)
    if found.not_valid_after_utc <= now:
        raise CertificateError(f"the certificate expired at {found.not_valid_after_utc:%Y-%m-%d}")


def normalized(pair: KeyPair) -> KeyPair:
    """The pair with its certificate alone, and a line break at its end: as others can follow it."""
    _, found = _load(pair)
    return KeyPair(certificate=_pem(found), key=pair.key)


def check_pair(pair: KeyPair) -> None:
    """Raises CertificateError unless the key is that of the certificate."""
    key, found = _load(pair)
    if _public(key.public_key()) != _public(found.public_key()):
        raise CertificateError("the key is not that of the certificate")


def pkcs12(pair: KeyPair, *, name: str, password: str) -> bytes:
    """Certificate and key as a PKCS#12 file."""
    signer, found = _load(pair)
    return serialize_key_and_certificates(
        name.encode(),
        signer,
        found,
        None,
        serialization.BestAvailableEncryption(password.encode()),
    )


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    *,
    now: datetime,
    days: int = 0,
    until: datetime | None = None,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(until or now + timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _key_usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=authority,
        crl_sign=authority,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(host: str) -> x509.GeneralName:
    if is_address(host):
        return x509.IPAddress(ipaddress.ip_address(host))
    return x509.DNSName(host)


def _authority_key(above: x509.Certificate) -> x509.AuthorityKeyIdentifier:
    return x509.AuthorityKeyIdentifier(_key_id(above), None, None)


def _key_id(found: x509.Certificate) -> bytes:
    own = _extension(found, x509.SubjectKeyIdentifier)
    if own is not None:
        return own.digest
    public = found.public_key()
    if not isinstance(public, (rsa.RSAPublicKey, ec.EllipticCurvePublicKey)):
        raise CertificateError("the key is neither RSA nor of an elliptic curve")
    return x509.SubjectKeyIdentifier.from_public_key(public).digest


def _extension(found: x509.Certificate, kind: type[Extension]) -> Extension | None:
    try:
        return found.extensions.get_extension_for_class(kind).value
    except x509.ExtensionNotFound:
        return None
    except ValueError as error:
        raise CertificateError("the certificate has extensions that cannot be read") from error


def _load(pair: KeyPair) -> tuple[Signer, x509.Certificate]:
    try:
        key = serialization.load_pem_private_key(pair.key.encode(), None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        # The parser's own words may have parts of what it has read.
        raise CertificateError("the key is no private key in PEM without a password") from None
    if not isinstance(key, (ec.EllipticCurvePrivateKey, rsa.RSAPrivateKey)):
        raise CertificateError("the key is neither RSA nor of an elliptic curve")
    return key, _parse(pair.certificate)


def _parse(text: str) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(text.encode())
    except ValueError:
        raise CertificateError("the certificate is no PEM of X.509") from None


def _public(key: object) -> bytes:
    if not isinstance(key, (rsa.RSAPublicKey, ec.EllipticCurvePublicKey)):
        return b""
    return key.public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> KeyPair:
    pem = serialization.Encoding.PEM
    private = key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return KeyPair(certificate=_pem(certificate), key=private.decode())


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()
