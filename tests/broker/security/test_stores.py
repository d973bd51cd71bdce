"""Key stores and trust stores, each against a peer that takes it."""

from __future__ import annotations

import datetime as dt
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates
from cryptography.x509.oid import NameOID

from barnabas_broker.security.stores import Store, StoreError, load_identity, load_trust
from tests.oracle.certificates import Certificate

PASSWORD = "changeit"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What one server and one client have, in each format."""
    directory = tmp_path_factory.mktemp("files")
    authority = Certificate("authority")
    server, client = Certificate("server", authority, host="here"), Certificate("client", authority)
    server.write_pem(directory / "server.pem")
    client.write_pem(directory / "plain.pem")
    client.write_pem(directory / "encrypted.pem", password=PASSWORD)
    for name in ("client.p12", "modern.jks"):
        client.write_pkcs12(directory / name, PASSWORD)
    authority.write_trust(directory / "trust.pem")
    for name in ("trust.p12", "modern-trust.jks"):
        authority.write_trust(directory / name, PASSWORD)
    server.write_trust(directory / "only-the-server.pem")
    Certificate("stranger").write_trust(directory / "other.pem")
    (directory / "weak.p12").write_bytes(weak_store())
    (directory / "empty.pem").write_text("nothing\n")
    (directory / "store.jks").write_bytes(b"\xfe\xed\xfe\xed")
    return directory


def weak_store() -> bytes:
    """A PKCS12 key store with an RSA key that is too short."""
    key = rsa.generate_private_key(65537, 1024)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "weak")])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + dt.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    encryption = BestAvailableEncryption(PASSWORD.encode())
    return serialize_key_and_certificates(b"own", key, certificate, None, encryption)


def store(file: Path, password: str | None = None, kind: str | None = None) -> Store:
    """That file."""
    return Store(path=file, kind=kind, password=password)


def shaken(files: Path, client: ssl.SSLContext) -> str:
    """Shake hands in memory with the server, which demands a certificate; whose it was."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.verify_mode = ssl.CERT_REQUIRED
    load_identity(server, store(files / "server.pem"))
    load_trust(server, store(files / "trust.pem"))
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    there = server.wrap_bio(to_server, to_client, server_side=True)
    here = client.wrap_bio(to_client, to_server, server_hostname="here")
    for _ in range(4):
        for side in (here, there):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    shown = there.getpeercert()
    assert shown is not None
    return str(shown["subject"][0][0][1])


@pytest.mark.parametrize(
    ("trusted", "own"),
    [
        (("trust.pem", None), ("plain.pem", None)),
        (("trust.p12", PASSWORD), ("client.p12", PASSWORD)),
        (("modern-trust.jks", PASSWORD), ("modern.jks", PASSWORD)),
        (("only-the-server.pem", None), ("encrypted.pem", PASSWORD)),
    ],
)
def test_stores_that_serve(
    files: Path, trusted: tuple[str, str | None], own: tuple[str, str | None]
) -> None:
    """In either format, whatever its name; a trusted certificate needs no authority above it."""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    load_trust(client, store(files / trusted[0], trusted[1]))
    load_identity(client, store(files / own[0], own[1]))
    assert shaken(files, client) == "client"


def test_others_are_not_trusted(files: Path) -> None:
    """Only what is in the store counts."""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    load_trust(client, store(files / "other.pem"))
    load_identity(client, store(files / "plain.pem"))
    with pytest.raises(ssl.SSLCertVerificationError):
        shaken(files, client)


@pytest.mark.parametrize(
    ("file", "password", "kind", "reason"),
    [
        ("client.p12", "wrong", None, "the password is wrong"),
        ("encrypted.pem", "wrong", None, "the password is wrong"),
        ("encrypted.pem", None, None, "the password is wrong"),
        ("plain.pem", None, "PKCS12", "it is a PEM file; give PEM as the type"),
        ("empty.pem", None, "PKCS12", "it is no PKCS12 store"),
        ("trust.p12", PASSWORD, None, "there is no private key"),
        ("trust.pem", None, None, "does not hold a private key"),
        ("weak.p12", PASSWORD, None, "a certificate has a key below 2048 bits"),
        ("none.pem", None, None, "No such file"),
        ("none.p12", None, None, "No such file"),
        ("store.jks", None, None, "keytool -importkeystore -srckeystore store.jks -destkeystore"),
        ("store.jks", None, "PKCS12", "JKS is not read"),
        ("client.p12", "wrong", "JKS", "the password is wrong"),
        ("store.jks", None, "BCFKS", "the type BCFKS is not read"),
        ("store", None, None, "give the type of the store"),
    ],
)
def test_key_stores_that_do_not(
    files: Path, file: str, password: str | None, kind: str | None, reason: str
) -> None:
    """One line that names the file, and what to do."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    with pytest.raises(StoreError) as caught:
        load_identity(context, store(files / file, password, kind))
    assert str(caught.value).startswith(str(files / file))
    assert reason in str(caught.value)


def test_trust_stores_without_certificates(files: Path) -> None:
    """An empty one would trust nobody, which nobody means."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    with pytest.raises(StoreError, match="there is no certificate in it"):
        load_trust(context, store(files / "empty.pem"))
