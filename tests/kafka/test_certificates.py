"""Certificates as OpenSSL, which clients and brokers verify with, takes them."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from barnabas_kafka.certificates import (
    CertificateError,
    KeyPair,
    check_authority,
    create_authority,
    issue,
    pair_of,
    pkcs12,
    read_certificate,
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


def test_what_is_read_is_what_was_issued(authority: KeyPair) -> None:
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
def test_what_no_certificate_can_say(authority: KeyPair, name: str, host: str) -> None:
    """Common names and hosts that X.509 has no form for are refused."""
    with pytest.raises(CertificateError, match=r"is no (common name|host)"):
        issue(authority, name, hosts=[host], now=NOW, validity=YEAR)


def test_what_a_bundle_has(authority: KeyPair) -> None:
    """Certificates in their order; a key before the first of them makes a pair."""
    other = create_authority("other", now=NOW, days=1)
    bundle = authority.certificate + other.certificate
    assert split_bundle(bundle) == (authority.certificate, other.certificate)
    assert split_bundle("") == ()
    assert pair_of(other.key + bundle) == KeyPair(certificate=bundle, key=other.key)
    assert pair_of(bundle) is None
    assert pair_of(other.key) is None
