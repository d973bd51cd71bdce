"""Certificates as OpenSSL, which clients and brokers verify with, takes them."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import NameOID

from barnabas_kafka.certificates import (
    CertificateError,
    KeyPair,
    check_authority,
    create_authority,
    is_named,
    issue,
    pair_of,
    pkcs12,
    read_certificate,
    server_identity,
    split_bundle,
)

NOW = datetime.now(tz=UTC).replace(microsecond=0)
YEAR = timedelta(days=365)


@pytest.fixture(scope="module")
def authority() -> KeyPair:
    """A new one."""
    return create_authority("quickstart cluster-ca", now=NOW, days=3650)


def _handshake(tmp_path: Path, server: KeyPair, trusted: str, host: str) -> str:
    """Both ends in memory; the common name that the server showed."""
    path = tmp_path / "server.pem"
    path.write_text(server.key + server.certificate)
    ours, theirs = ssl.MemoryBIO(), ssl.MemoryBIO()
    offered = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    offered.load_cert_chain(path)
    context = ssl.create_default_context(cadata=trusted)
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    client = context.wrap_bio(ours, theirs, server_hostname=host)
    peer = offered.wrap_bio(theirs, ours, server_side=True)
    for end in (client, peer, client, peer):
        try:
            end.do_handshake()
        except ssl.SSLWantReadError:
            continue
    found = client.getpeercert()
    assert found is not None
    return dict(part[0] for part in found["subject"])["commonName"]  # type: ignore[misc]


@pytest.mark.parametrize("host", ["a.nodes.default.svc", "boot.default.svc", "172.18.0.3"])
def test_clients_verify_every_host_that_is_named(
    tmp_path: Path, authority: KeyPair, host: str
) -> None:
    """One certificate for all brokers: names with a star, and addresses of nodes."""
    hosts = ["*.nodes.default.svc", "boot.default.svc", "172.18.0.3"]
    server = issue(authority, "brokers", hosts=hosts, now=NOW, validity=YEAR)
    assert _handshake(tmp_path, server, authority.certificate, host) == "brokers"


def test_other_hosts_and_other_authorities_are_refused(tmp_path: Path, authority: KeyPair) -> None:
    """Neither a name that is not there nor an authority that is not trusted."""
    server = issue(authority, "brokers", hosts=["a.svc"], now=NOW, validity=YEAR)
    other = create_authority("quickstart cluster-ca", now=NOW, days=3650)
    for trusted, host in ((authority.certificate, "b.svc"), (other.certificate, "a.svc")):
        with pytest.raises(ssl.SSLCertVerificationError):
            _handshake(tmp_path, server, trusted, host)
    # While an authority is replaced both are trusted.
    both = other.certificate + authority.certificate
    assert _handshake(tmp_path, server, both, "a.svc") == "brokers"


def test_an_issued_certificate_is_read_back(authority: KeyPair) -> None:
    """Names, ids and times; clients' certificates are for no host."""
    view = read_certificate(authority.certificate)
    server = read_certificate(
        issue(authority, "b", hosts=["h", "10.0.0.1", "[::1]"], now=NOW, validity=YEAR).certificate
    )
    assert server.hosts == {"h", "10.0.0.1", "::1"}
    assert (server.authority_key_id, server.issuer) == (view.key_id, view.subject)
    assert server.not_after == NOW + YEAR
    assert server.not_before < NOW
    client = read_certificate(issue(authority, "alice", now=NOW, validity=YEAR).certificate)
    assert (client.subject, client.hosts) == ("CN=alice", frozenset())


def test_no_certificate_outlives_its_authority(authority: KeyPair) -> None:
    """Its chain would no longer verify."""
    long = issue(authority, "b", now=NOW, validity=timedelta(days=36_500))
    ends = read_certificate(authority.certificate).not_after
    assert read_certificate(long.certificate).not_after == ends


def test_a_given_authority_that_cannot_issue_is_refused(authority: KeyPair) -> None:
    """Each with what is wrong; nothing of a key is in the message."""
    check_authority(authority, now=NOW)
    leaf = issue(authority, "b", hosts=["h"], now=NOW, validity=YEAR)
    other = create_authority("other", now=NOW, days=1)
    broken = KeyPair(certificate="none", key=authority.key)
    cases = {
        "not that of a certificate authority": leaf,
        "the key is not that": KeyPair(certificate=authority.certificate, key=other.key),
        "no PEM": broken,
        "no private key": KeyPair(certificate=authority.certificate, key="secret"),
        "one certificate": KeyPair(
            certificate=authority.certificate + other.certificate, key=authority.key
        ),
    }
    for text, pair in cases.items():
        with pytest.raises(CertificateError, match=text) as raised:
            check_authority(pair, now=NOW)
        assert "secret" not in str(raised.value)
    with pytest.raises(CertificateError, match="expired"):
        check_authority(other, now=NOW + timedelta(days=2))


def test_keys_are_in_no_repr(authority: KeyPair) -> None:
    """A log line with the pair has no secret."""
    assert "PRIVATE" not in repr(authority)
    assert pkcs12(authority, name="a", password="p").startswith(b"\x30")


@pytest.mark.parametrize(("name", "host"), [("x" * 65, "h"), ("", "h"), ("b", "\u00fc")])
def test_invalid_names_and_hosts_are_refused(authority: KeyPair, name: str, host: str) -> None:
    """Common names and hosts that X.509 has no form for are refused."""
    with pytest.raises(CertificateError, match=r"is no (common name|host)"):
        issue(authority, name, hosts=[host], now=NOW, validity=YEAR)


def test_bundle_of_key_and_certificates(authority: KeyPair) -> None:
    """Certificates in their order; a key before the first of them makes a pair."""
    other = create_authority("other", now=NOW, days=1)
    bundle = authority.certificate + other.certificate
    assert split_bundle(bundle) == (authority.certificate, other.certificate)
    assert split_bundle("") == ()
    assert pair_of(other.key + bundle) == KeyPair(certificate=bundle, key=other.key)
    assert pair_of(bundle) is None
    assert pair_of(other.key) is None


# --- what a server shows --------------------------------------------------------------------------


CA = x509.BasicConstraints(ca=True, path_length=None)


def _signed_by(signer: KeyPair | None, name: str, *, key: Any = None, **extensions: Any) -> KeyPair:
    """A certificate with these extensions, which an authority of our own would not issue."""
    key = key or ec.generate_private_key(ec.SECP256R1())
    private, issuer = key, x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    if signer is not None:
        private = load_pem_private_key(signer.key.encode(), None)
        issuer = x509.load_pem_x509_certificate(signer.certificate.encode()).subject
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(NOW)
        .not_valid_after(NOW + YEAR)
    )
    for extension in extensions.values():
        builder = builder.add_extension(extension, critical=False)
    found = builder.sign(private, hashes.SHA256())
    text = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    return KeyPair(certificate=found.public_bytes(Encoding.PEM).decode(), key=text.decode())


def test_a_server_shows_its_chain_and_its_key_in_the_form_that_brokers_read(
    tmp_path: Path,
) -> None:
    """A client that trusts the root alone verifies it; the key may be as `openssl` wrote it."""
    authority = _signed_by(None, "root", ca=CA)
    between = _signed_by(authority, "intermediate", ca=CA)
    hosts = x509.SubjectAlternativeName([x509.DNSName("kafka.example")])
    leaf = _signed_by(
        between, "kafka", key=rsa.generate_private_key(public_exponent=65537, key_size=2048),
        hosts=hosts,
    )  # fmt: skip
    assert "BEGIN RSA PRIVATE KEY" in leaf.key
    chain = leaf.certificate + "a remark\n" + between.certificate
    found = server_identity(chain, leaf.key, authorities=authority.certificate, now=NOW)
    assert found.pair.certificate == leaf.certificate + between.certificate
    assert "BEGIN PRIVATE KEY" in found.pair.key
    assert found.authorities == authority.certificate
    ours, theirs = ssl.MemoryBIO(), ssl.MemoryBIO()
    path = tmp_path / "server.pem"
    path.write_text(found.pair.key + found.pair.certificate)
    offered = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    offered.load_cert_chain(path)
    context = ssl.create_default_context(cadata=found.authorities)
    client = context.wrap_bio(ours, theirs, server_hostname="kafka.example")
    peer = offered.wrap_bio(theirs, ours, server_side=True)
    for end in (client, peer, client, peer):
        try:
            end.do_handshake()
        except ssl.SSLWantReadError:
            continue
    assert client.getpeercert()
    # Without them nothing is known of a public authority; a root in the chain is one.
    assert server_identity(chain, leaf.key, now=NOW).authorities == ""
    whole = chain + authority.certificate
    assert server_identity(whole, leaf.key, now=NOW).authorities == authority.certificate


def test_an_unusable_server_certificate_is_refused_with_a_reason(authority: KeyPair) -> None:
    """A broker would not start with it, or clients refuse it."""
    leaf = issue(authority, "kafka", hosts=["h"], now=NOW, validity=YEAR)
    client = issue(authority, "alice", now=NOW, validity=YEAR)
    weak = _signed_by(
        authority, "weak", key=rsa.generate_private_key(public_exponent=65537, key_size=1024)
    )
    other = create_authority("other", now=NOW, days=400)
    locked = load_pem_private_key(leaf.key.encode(), None).private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")
    )
    cases: list[tuple[str, str, str, str]] = [
        (
            "the key is not that of the first",
            authority.certificate + leaf.certificate,
            leaf.key,
            "",
        ),
        ("usage of the certificate is not for servers", client.certificate, client.key, ""),
        ("the key of CN=weak is RSA of less than 2048", weak.certificate, weak.key, ""),
        ("have the certificate of", leaf.certificate, leaf.key, other.certificate),
        ("the authorities cannot be read", leaf.certificate, leaf.key, "none"),
        ("no private key in PEM without a password", leaf.certificate, locked.decode(), ""),
        ("no PEM of X.509", "none", leaf.key, ""),
    ]
    for text, chain, key, authorities in cases:
        with pytest.raises(CertificateError, match=text):
            server_identity(chain, key, authorities=authorities, now=NOW)
    for moment, text in ((NOW + 2 * YEAR, "expired at"), (NOW - YEAR, "not valid before")):
        with pytest.raises(CertificateError, match=text):
            server_identity(leaf.certificate, leaf.key, now=moment)


@pytest.mark.parametrize(
    ("host", "named"),
    [
        ("kafka.example", True), ("B0.kafka.example", True), ("a.b.kafka.example", False),
        ("[::1]", True), ("10.0.0.1", False), ("example", False),
    ],
)  # fmt: skip
def test_a_star_in_a_certificate_is_one_label(host: str, named: bool) -> None:
    """As clients compare names (RFC 6125)."""
    assert is_named(host, {"Kafka.example", "*.kafka.example", "::1"}) is named
