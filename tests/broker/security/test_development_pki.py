"""An authority for development: what it signs counts for its hosts, and its keys are private."""

from __future__ import annotations

import ssl
import stat
from pathlib import Path

import pytest

from barnabas_broker.security.development_pki import Authority, write_new
from barnabas_broker.security.stores import Store, load_identity, load_trust
from barnabas_kafka.certificates import CertificateError


def shake_hands(server_store: Path, trust: Path, host: str, client_store: Path | None) -> None:
    """Have a client and a server agree that both trust the authority; raises SSLError."""
    server, client = (
        ssl.SSLContext(it) for it in (ssl.PROTOCOL_TLS_SERVER, ssl.PROTOCOL_TLS_CLIENT)
    )
    load_identity(server, Store(path=server_store))
    load_trust(client, Store(path=trust))
    if client_store is not None:
        server.verify_mode = ssl.CERT_REQUIRED
        load_trust(server, Store(path=trust))
        load_identity(client, Store(path=client_store))
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [
        client.wrap_bio(to_client, to_server, server_hostname=host),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    for _ in range(4):
        for side in sides:
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue


def test_brokers_and_clients(tmp_path: Path) -> None:
    """A certificate of the authority counts for its hosts, in both directions, and no others."""
    authority = Authority.init(tmp_path, "development")
    broker = authority.issue("broker", ["broker-0", "127.0.0.1", "[::1]"], days=1)
    client = Authority(tmp_path).issue("alice", [], days=1)
    for host in ("broker-0", "127.0.0.1", "::1"):
        shake_hands(broker, authority.trust, host, client)
    with pytest.raises(ssl.SSLCertVerificationError, match=r"mismatch|not valid"):
        shake_hands(broker, authority.trust, "elsewhere", None)
    other = Authority.init(tmp_path / "other", "development")
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(broker, other.trust, "broker-0", None)
    # A certificate without hosts is a client's alone.
    with pytest.raises(ssl.SSLCertVerificationError, match="purpose"):
        shake_hands(client, authority.trust, "alice", None)


def test_keys_are_private_and_nothing_is_replaced(tmp_path: Path) -> None:
    """Not by a second call, nor through a symbolic link."""
    authority = Authority.init(tmp_path, "development")
    file = authority.issue("broker", [], days=1)
    for private in (file, tmp_path / "authority.key"):
        assert stat.S_IMODE(private.stat().st_mode) == 0o600
    before = file.read_bytes()
    with pytest.raises(CertificateError, match="exists; it is not replaced"):
        authority.issue("broker", [], days=1)
    with pytest.raises(CertificateError, match="exists; it is not replaced"):
        Authority.init(tmp_path, "again")
    assert file.read_bytes() == before
    (tmp_path / "link.pem").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CertificateError, match="exists"):
        write_new(tmp_path / "link.pem", "", private=True)
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("name", ["../broker", "a/b", "", ".", "x" * 65])
def test_names_that_are_no_files(tmp_path: Path, name: str) -> None:
    """A name never leads out of the directory."""
    authority = Authority.init(tmp_path, "development")
    with pytest.raises(CertificateError):
        authority.issue(name, [], days=1)


def test_an_invalid_authority_is_refused(tmp_path: Path) -> None:
    """The line says what is missing, or what does not fit."""
    with pytest.raises(CertificateError, match=r"authority\.pem: No such file"):
        Authority(tmp_path)
    Authority.init(tmp_path / "one", "one")
    Authority.init(tmp_path / "two", "two")
    (tmp_path / "one" / "authority.key").write_bytes((tmp_path / "two/authority.key").read_bytes())
    with pytest.raises(CertificateError, match="the key is not that of the certificate"):
        Authority(tmp_path / "one")
