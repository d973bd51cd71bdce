"""The TLS of a listener: stores, versions, ciphers, and principals of certificates."""

import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from barnabas_broker.security.listener_tls import ListenerTls, listener_tls
from barnabas_broker.security.principals import Principal
from barnabas_broker.security.ssl_principals import (
    certificate_principal,
    distinguished_name,
    parse_rules,
)
from barnabas_broker.security.stores import StoreError
from barnabas_kafka.settings.broker import BrokerSettings
from barnabas_kafka.settings.definitions import SettingError
from tests.oracle.certificates import Certificate

AUTHORITY = Certificate("authority")
BROKER = Certificate("broker", AUTHORITY, host="localhost")
ALICE = Certificate("alice", AUTHORITY)
KEY = "ssl.keystore.location"


def read(given: dict[str, str]) -> ListenerTls:
    """The TLS of a listener with these settings."""
    return listener_tls(BrokerSettings.from_mapping(given), "OUT")


def shown_by(found: ListenerTls, client: ssl.SSLContext) -> bytes:
    """The certificate that a client is shown; raises SSLError as the client does."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = found.context.wrap_bio(to_server, to_client, server_side=True)
    asking = client.wrap_bio(to_client, to_server, server_hostname="localhost")
    for _ in range(4):
        for side in (asking, server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    return asking.getpeercert(binary_form=True) or b""


def trusting() -> ssl.SSLContext:
    """A client that trusts the authority."""
    return ssl.create_default_context(cadata=AUTHORITY.pem.decode())


def pem_in_one_line(path: Path) -> str:
    """As a properties file has it."""
    return path.read_text().replace("\n", " ")


def test_key_stores_of_every_form(tmp_path: Path) -> None:
    """PEM and PKCS12 files, and PEM in the settings; a type is told by the name of the file."""
    pem = BROKER.write_pem(tmp_path / "broker.pem")
    encrypted = BROKER.write_pem(tmp_path / "encrypted.pem", password="s3cret")
    pkcs12 = BROKER.write_pkcs12(tmp_path / "broker.p12", "s3cret")
    nameless = BROKER.write_pkcs12(tmp_path / "broker.keystore", "s3cret")
    inline = pem_in_one_line(pem)
    forms = [
        {KEY: str(pem)},
        {KEY: str(encrypted), "ssl.key.password": "s3cret", "ssl.keystore.type": "PEM"},
        {KEY: str(pkcs12), "ssl.keystore.password": "s3cret"},
        {KEY: str(nameless), "ssl.keystore.password": "s3cret"},
        {f"listener.name.out.{KEY}": str(pem), KEY: "/nowhere.pem"},
        {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.key": inline,
            "ssl.keystore.certificate.chain": inline,
        },
    ]
    own = ssl.PEM_cert_to_DER_cert(BROKER.pem.decode())
    for form in forms:
        assert shown_by(read(form), trusting()) == own, form


def test_clients_are_asked_for_certificates(tmp_path: Path) -> None:
    """Required, requested or neither; the trust store says whose are accepted."""
    key = {KEY: str(BROKER.write_pem(tmp_path / "broker.pem"))}
    trust = {"ssl.truststore.location": str(AUTHORITY.write_trust(tmp_path / "trust.pem"))}
    inline = {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": pem_in_one_line(tmp_path / "trust.pem"),
    }
    with_alice = trusting()
    with_alice.load_cert_chain(ALICE.write_pem(tmp_path / "alice.pem"))
    with_stranger = trusting()
    stranger = Certificate("stranger", Certificate("another authority"))
    with_stranger.load_cert_chain(stranger.write_pem(tmp_path / "stranger.pem"))
    assert shown_by(read(key), trusting())
    for form in (trust, inline):
        required = {**key, **form, "ssl.client.auth": "required"}
        requested = {**key, **form, "ssl.client.auth": "requested"}
        assert shown_by(read(required), with_alice)
        assert shown_by(read(requested), trusting())
        for settings, client in ((required, trusting()), (requested, with_stranger)):
            with pytest.raises(ssl.SSLError):
                shown_by(read(settings), client)


def test_versions_and_ciphers(tmp_path: Path) -> None:
    """TLS 1.2 and 1.3 only; ciphers of 1.2 by Java's names."""
    key = {KEY: str(BROKER.write_pem(tmp_path / "broker.pem"))}
    old = trusting()
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    assert shown_by(read(key), old)
    with pytest.raises(ssl.SSLError):
        shown_by(read({**key, "ssl.enabled.protocols": "TLSv1.3"}), old)
    chosen = {
        **key,
        "ssl.enabled.protocols": "TLSv1.2",
        "ssl.cipher.suites": "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    }
    assert shown_by(read(chosen), old)
    old.set_ciphers("ECDHE-ECDSA-AES128-GCM-SHA256")
    with pytest.raises(ssl.SSLError):
        shown_by(read(chosen), old)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "ssl.keystore.location: a TLS listener needs"),
        ({"ssl.enabled.protocols": "TLSv1.1"}, "only TLSv1.2 and TLSv1.3"),
        ({"ssl.cipher.suites": "TLS_RSA_WITH_RC4_128_MD5"}, "is not offered"),
        ({"ssl.cipher.suites": "TLS_AES_128_GCM_SHA256"}, "cannot be chosen"),
        ({"ssl.keystore.key": "x"}, "certificate.chain: a key needs a certificate chain"),
        ({KEY: "broker.pem", "ssl.client.auth": "required"}, "need a trust store"),
        ({KEY: "broker.pem", "ssl.principal.mapping.rules": "RULE:x"}, "mapping.rules"),
    ],
)
def test_settings_that_do_not_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, str], message: str
) -> None:
    """Each is named with what is wrong."""
    BROKER.write_pem(tmp_path / "broker.pem")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingError, match=message):
        read(given)


def test_stores_that_do_not_work(tmp_path: Path) -> None:
    """A file that is not there, of the wrong type or with another password."""
    pkcs12 = BROKER.write_pkcs12(tmp_path / "broker.p12", "s3cret")
    for given in (
        {KEY: str(tmp_path / "absent.pem")},
        {KEY: str(pkcs12), "ssl.keystore.password": "other"},
        {KEY: str(pkcs12), "ssl.keystore.type": "BCFKS", "ssl.keystore.password": "s3cret"},
        {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.key": "none",
            "ssl.keystore.certificate.chain": "none",
        },
    ):
        with pytest.raises(StoreError):
            read(given)
    assert not [name for name in tmp_path.iterdir() if name.name != "broker.p12"]


NAME = x509.Name(
    [
        x509.NameAttribute(NameOID.COUNTRY_NAME, "CZ"),
        x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Castle, Inc."),
        x509.NameAttribute(NameOID.COMMON_NAME, "Alice"),
    ]
)


def test_names_as_java_writes_them() -> None:
    """RFC 2253: the last attribute first, commas escaped, numbers where there is no keyword."""
    assert distinguished_name(NAME.public_bytes()) == "CN=Alice,O=Castle\\, Inc.,C=CZ"
    mail = x509.Name([x509.NameAttribute(NameOID.EMAIL_ADDRESS, "a@b")])
    assert distinguished_name(mail.public_bytes()) == "1.2.840.113549.1.9.1=#1603614062"


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a=b#c", "a\\=b\\#c"),
        (" a  b ", "\\ a  b\\ "),
        ("\r", "\\\r"),
        ("a,O=x", "a\\,O\\=x"),
        ("\0", "\\00"),
        ("ü\n", "ü\n"),
    ],
)
def test_odd_characters_as_java_writes_them(text: str, written: str) -> None:
    """No name looks like another one with more attributes."""
    attribute = x509.NameAttribute(NameOID.COMMON_NAME, text, _validate=False)
    assert distinguished_name(x509.Name([attribute]).public_bytes()) == f"CN={written}"


def test_attributes_without_keyword_and_values_that_are_no_text() -> None:
    """Their number, or their keyword, with the whole value in hexadecimal digits."""
    serial = x509.Name([x509.NameAttribute(NameOID.SERIAL_NUMBER, "12")])
    assert distinguished_name(serial.public_bytes()) == "2.5.4.5=#13023132"
    bits = bytes.fromhex("300d310b3009060355040303020061")
    assert distinguished_name(bits) == "CN=#03020061"


@pytest.mark.parametrize("cut", range(1, 40, 3))
def test_names_that_are_cut_short(cut: int) -> None:
    """They are refused like any client without a name."""
    with pytest.raises(ValueError, match=r"malformed|unpack"):
        distinguished_name(NAME.public_bytes()[:-cut])


@pytest.mark.parametrize(
    ("rules", "user"),
    [
        ("DEFAULT", "CN=Alice,O=Castle\\, Inc.,C=CZ"),
        ("RULE:^CN=(.*?),.*$/$1/", "Alice"),
        ("RULE:^CN=(.*?),.*$/$1/L", "alice"),
        ("RULE:^CN=(.*?),.*$/$1@$1/U", "ALICE@ALICE"),
        ("RULE:^OU=(.*)$/$1/ , DEFAULT", "CN=Alice,O=Castle\\, Inc.,C=CZ"),
        (r"RULE:^CN=(\w+),.*$/\$$1/,DEFAULT", "$Alice"),
        ("RULE:^CN=(.*?)$/$1/", "Alice,O=Castle\\, Inc.,C=CZ"),
        ("RULE:^OU=(.*)$/$1/", None),
        # Kafka has what the pattern finds replaced, which is shorter than what it can match.
        ("RULE:CN=(.*?)(,.*)?/$1/", "Alice,O=Castle\\, Inc.,C=CZ"),
        ("RULE:(.*)/<$1>/", "<CN=Alice,O=Castle\\, Inc.,C=CZ><>"),
        ("RULE:.*/x/,DEFAULT", "xx"),
    ],
)
def test_mapping_rules(rules: str, user: str | None) -> None:
    """The first that matches the whole name counts."""
    name = distinguished_name(NAME.public_bytes())
    found = [rule.apply(name) for rule in parse_rules(rules)]
    assert next((each for each in found if each is not None), None) == user


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("(?i)^CN=super$", "CN=\u017fuper"),
        ("(?i)^CN=kafka$", "CN=\u212aafka"),
        (r"^CN=(\w+)$", "CN=älice"),
        (r"^CN=broker-(\d)$", "CN=broker-\u0661"),
        (r"^CN=(\S+)\s.*$", "CN=alice\u00a0x"),
    ],
)
def test_other_letters_are_not_taken_for_those_of_a_rule(pattern: str, name: str) -> None:
    """Classes of characters are ASCII as in Java, and so are upper and lower case."""
    (rule,) = parse_rules(f"RULE:{pattern}/admin/")
    assert rule.apply(name) is None


@pytest.mark.parametrize("rules", ["RULE:a", "RULE:(/x/", "RULE:a/$1/", "RULE:a/b/X", "default"])
def test_rules_that_are_none(rules: str) -> None:
    """They are refused when the broker starts."""
    with pytest.raises(ValueError, match=r"RULE|pattern|group"):
        parse_rules(rules)


def test_the_principal_of_a_certificate() -> None:
    """By the rules, and nobody's where none matches."""
    der = ssl.PEM_cert_to_DER_cert(ALICE.pem.decode())
    assert certificate_principal(der, parse_rules("DEFAULT")) == Principal("User", "CN=alice")
    assert certificate_principal(der, parse_rules("RULE:CN=x/x/")) is None
