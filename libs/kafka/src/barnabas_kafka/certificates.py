"""X.509 certificates: authorities, what they issue, and what a certificate says.

Text is PEM. Keys that are generated here are EC keys on P-256; RSA keys are read, too. No error
message has anything of a key in it.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, TypeVar

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

BEGIN: Final = "-----BEGIN CERTIFICATE-----"
# The files of a development authority: what clients trust, and what signs.
AUTHORITY_CERTIFICATE: Final = "authority.pem"
AUTHORITY_KEY: Final = "authority.key"
# Clocks of other machines may be behind: a certificate is valid a little before it is issued.
BACKDATED: Final = timedelta(minutes=5)
SHORTEST_RSA: Final = 2048
_SERVER_USAGES: Final = frozenset(
    (ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE)
)

Signer = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
Extension = TypeVar("Extension", bound=x509.ExtensionType)


class CertificateError(Exception):
    """A certificate or key cannot be used or made, in one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPair:
    """A certificate and its private key."""

    certificate: str
    key: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateView:
    """What a certificate says."""

    common_name: str
    subject: str
    issuer: str
    # The ids of its own key and of the key that signed it.
    key_id: bytes
    authority_key_id: bytes
    hosts: frozenset[str]
    not_before: datetime
    not_after: datetime
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerIdentity:
    """What a server shows: its certificate with those between it and an authority, and its key."""

    pair: KeyPair
    # Of the authorities that clients have to trust, PEM; empty where none is known.
    authorities: str


def create_authority(
    common_name: str, *, organization: str = "", now: datetime, days: int
) -> KeyPair:
    """A new certificate authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _subject(common_name, organization)
    until = now + timedelta(days=days)
    builder = _builder(subject, subject, key.public_key(), now=now, until=until, authority=True)
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

    The principal of a client has its organization in it, too: CN=alice is another one. Raises
    CertificateError where the authority has expired.
    """
    signer, above = _load(authority)
    if above.not_valid_after_utc <= now:
        ended = above.not_valid_after_utc
        text = f"the certificate of the authority expired at {ended:%Y-%m-%dT%H:%M}"
        raise CertificateError(text)
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _subject(common_name, organization)
    # No certificate outlives the one that it is verified with.
    until = min(now + validity, above.not_valid_after_utc)
    builder = _builder(
        subject, above.subject, key.public_key(), now=now, until=until, authority=False
    )
    usages = [ExtendedKeyUsageOID.CLIENT_AUTH]
    if hosts:
        usages.append(ExtendedKeyUsageOID.SERVER_AUTH)
        names = x509.SubjectAlternativeName([_general_name(host) for host in sorted(hosts)])
        builder = builder.add_extension(names, critical=False)
    builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
    builder = builder.add_extension(
        x509.AuthorityKeyIdentifier(_key_id(above), None, None), critical=False
    )
    return _pair(builder.sign(signer, hashes.SHA256()), key)


def read_certificate(text: str) -> CertificateView:
    """What the first certificate of a text says; raises CertificateError."""
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
        sha256=found.fingerprint(hashes.SHA256()).hex(":"),
    )


def split_bundle(bundle: str) -> tuple[str, ...]:
    """Each certificate of a text, in its order."""
    return tuple(f"{BEGIN}{part}" for part in bundle.split(BEGIN)[1:])


def pair_of(text: str) -> KeyPair | None:
    """The key and the certificate in one text; None if it has not both."""
    private, begin, certificate = text.partition(BEGIN)
    return KeyPair(certificate=begin + certificate, key=private) if begin and private else None


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
    if not _signed(found, found):
        text = "the certificate is not signed by itself: clients trust it alone, without a chain"
        raise CertificateError(text)
    check_pair(pair)
    if now is not None:
        _check_dates(found, now)


def server_identity(
    chain: str, key: str, *, authorities: str = "", now: datetime
) -> ServerIdentity:
    """What a server can show and clients verify, in the form that servers read: the key PKCS#8.

    The server's own certificate comes first in the chain. Without `authorities` the last one counts
    as such if it is signed by itself. Raises CertificateError.
    """
    signer, found = _load(KeyPair(certificate=chain, key=key))
    if signer.public_key() != found.public_key():
        raise CertificateError("the key is not that of the first certificate")
    usage = _extension(found, x509.ExtendedKeyUsage)
    if usage is not None and not _SERVER_USAGES & set(usage):
        raise CertificateError("the extended key usage of the certificate is not for servers")
    _check_dates(found, now)
    certificates = _parse_all(chain, "the certificate chain")
    for each in certificates:
        _check_strength(each)
    trusted = _parse_all(authorities, "the authorities") if authorities.strip() else []
    if trusted:
        _check_leads_to(certificates, trusted)
    elif _signed(certificates[-1], certificates[-1]):
        trusted = certificates[-1:]
    private = signer.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return ServerIdentity(
        pair=KeyPair(certificate="".join(map(_pem, certificates)), key=private.decode()),
        authorities="".join(map(_pem, trusted)),
    )


def is_named(host: str, names: Collection[str]) -> bool:
    """Whether the names of a certificate have a host; a `*` in one is any first label."""
    host = host.strip("[]").lower()
    _, dot, domain = host.partition(".")
    known = {name.lower() for name in names}
    return host in known or bool(dot and f"*.{domain}" in known)


def normalized(pair: KeyPair) -> KeyPair:
    """The pair with its certificate alone, and a line break at its end: as others can follow it."""
    _, found = _load(pair)
    return KeyPair(certificate=_pem(found), key=pair.key)


def check_pair(pair: KeyPair) -> None:
    """Raises CertificateError unless the key is that of the certificate."""
    key, found = _load(pair)
    if key.public_key() != found.public_key():
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


def _check_dates(found: x509.Certificate, now: datetime) -> None:
    if found.not_valid_before_utc > now:
        text = f"the certificate is not valid before {found.not_valid_before_utc:%Y-%m-%dT%H:%M}"
        raise CertificateError(text)
    if found.not_valid_after_utc <= now:
        raise CertificateError(f"the certificate expired at {found.not_valid_after_utc:%Y-%m-%d}")


def _check_strength(found: x509.Certificate) -> None:
    """What OpenSSL shows at its default security level; a signature by oneself proves nothing."""
    name, key = found.subject.rfc4514_string(), found.public_key()
    if isinstance(key, rsa.RSAPublicKey) and key.key_size < SHORTEST_RSA:
        raise CertificateError(f"the key of {name} is RSA of less than {SHORTEST_RSA} bits")
    try:
        weak = isinstance(found.signature_hash_algorithm, hashes.SHA1 | hashes.MD5)
    except UnsupportedAlgorithm:
        weak = True
    if weak and not _signed(found, found):
        raise CertificateError(f"the signature of {name} is by an algorithm that is not secure")


def _check_leads_to(chain: list[x509.Certificate], authorities: list[x509.Certificate]) -> None:
    reached, others = chain[0], chain[1:]
    while not any(reached == each or _signed(reached, each) for each in authorities):
        above = next((each for each in others if _signed(reached, each)), None)
        if above is None:
            name = reached.issuer.rfc4514_string()
            raise CertificateError(f"neither chain nor authorities have the certificate of {name}")
        others.remove(above)
        reached = above


def _signed(found: x509.Certificate, above: x509.Certificate) -> bool:
    """Whether a certificate was issued with the key of another one."""
    try:
        found.verify_directly_issued_by(above)
    except (InvalidSignature, UnsupportedAlgorithm, ValueError, TypeError):
        return False
    return True


def _parse_all(text: str, what: str) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(text.encode())
    except ValueError:
        raise CertificateError(f"{what} cannot be read: PEM of X.509 is needed") from None


def _subject(common_name: str, organization: str) -> x509.Name:
    parts = [(NameOID.ORGANIZATION_NAME, organization)] if organization else []
    parts.append((NameOID.COMMON_NAME, common_name))
    try:
        return x509.Name([x509.NameAttribute(oid, value) for oid, value in parts])
    except ValueError as error:
        raise CertificateError(f"{common_name!r} is no common name: {error}") from None


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    *,
    now: datetime,
    until: datetime,
    authority: bool,
) -> x509.CertificateBuilder:
    constraints = x509.BasicConstraints(ca=authority, path_length=0 if authority else None)
    usage = x509.KeyUsage(
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
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(until)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        .add_extension(constraints, critical=True)
        .add_extension(usage, critical=True)
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host.strip("[]")))
    except ValueError:
        pass
    try:
        return x509.DNSName(host)
    except ValueError as error:
        raise CertificateError(f"{host!r} is no host: {error}") from None


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


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> KeyPair:
    pem = serialization.Encoding.PEM
    private = key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return KeyPair(certificate=_pem(certificate), key=private.decode())


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()
