"""How settings, a JAAS file and KAFKA_OPTS become what a broker shows to ZooKeeper."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from barnabas_broker.server.control.login_file import jvm_properties
from barnabas_broker.server.control.zookeeper_security import credentials
from barnabas_broker.server.process.startup import StartupError
from barnabas_broker.zk.credentials import Credentials, Login
from barnabas_kafka.settings.broker import BrokerSettings
from tests.oracle.certificates import Certificate

MODULE = "org.apache.zookeeper.server.auth.DigestLoginModule"
TLS = {"zookeeper.ssl.client.enable": "true"}


def shown(settings: dict[str, str], options: str = "") -> Credentials:
    """The credentials of these settings."""
    return credentials(BrokerSettings.from_mapping(settings), {"KAFKA_OPTS": options})


@pytest.fixture
def jaas(tmp_path: Path) -> Path:
    """A file with two sections for ZooKeeper and one that is not for it."""
    file = tmp_path / "kafka jaas.conf"
    file.write_text(
        f'Client {{ {MODULE} required username="kafka" password="a"; }};\n'
        f'Other {{ {MODULE} required username="other" password="b"; }};\n'
        "Kerberos { com.sun.security.auth.module.Krb5LoginModule required; };\n"
        f"Nobody {{ {MODULE} required; }};\n"
    )
    return file


def test_no_credentials_are_sent_by_default() -> None:
    """As without any security."""
    assert shown({}) == Credentials()


@pytest.mark.parametrize("form", ["{}", "file:{}", "={}"])
def test_the_jaas_file_of_the_jvm_property(jaas: Path, form: str) -> None:
    """In the JVM's property, also as a URL, and whether or not it is to replace all others."""
    option = f"-Xmx1G -Djava.security.auth.login.config='{form.format(jaas)}' -Dother=1"
    expected = Login(username="kafka", password="a", source=f"Client in {jaas}")
    assert shown({}, option).login == expected
    assert shown({"zookeeper.set.acl": "true"}, option).set_acl


def test_our_setting_is_stronger(jaas: Path) -> None:
    """The section may be another, and SASL may be switched off, by ZooKeeper's properties."""
    ours = {"barnabas.zookeeper.jaas.file": str(jaas)}
    assert shown(ours, "-Djava.security.auth.login.config=/none").login is not None
    other = shown(ours, "-Dzookeeper.sasl.clientconfig=Other").login
    assert other is not None
    assert other.username == "other"
    assert shown(ours, "-Dzookeeper.sasl.client=false").login is None


def test_a_file_for_listeners_only(jaas: Path) -> None:
    """Kafka's brokers may have one without ZooKeeper's section; who names one to us may not."""
    jaas.write_text("KafkaServer { M required; };")
    assert shown({}, f"-Djava.security.auth.login.config='{jaas}'").login is None
    with pytest.raises(StartupError, match="there is no section Client"):
        shown({"barnabas.zookeeper.jaas.file": str(jaas)})


@pytest.mark.parametrize(
    ("section", "reason"),
    [
        ("Kerberos", r"section Kerberos: .*Krb5LoginModule is not offered"),
        ("Nobody", "section Nobody: username and password are missing"),
    ],
)
def test_sections_of_no_use(jaas: Path, section: str, reason: str) -> None:
    """Refused, with the file, because the broker would else come as nobody."""
    with pytest.raises(StartupError, match=reason):
        shown(
            {"barnabas.zookeeper.jaas.file": str(jaas)},
            f"-Dzookeeper.sasl.clientconfig={section}",
        )


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    """With the setting or property that names them."""
    with pytest.raises(StartupError, match=r"login\.config=/none/j: No such file"):
        shown({}, "-Djava.security.auth.login.config=/none/j")
    file = tmp_path / "jaas"
    file.write_text("Client")
    with pytest.raises(StartupError, match=r"jaas\.file=.*: \{ is missing at the end"):
        shown({"barnabas.zookeeper.jaas.file": str(file)})


def test_properties_of_a_jvm() -> None:
    """The last one of a name counts, as for the JVM."""
    assert jvm_properties("-Da=1 -Xmx1G -Da='x y' -Db -Dc=d=e") == {"a": "x y", "b": "", "c": "d=e"}
    with pytest.raises(StartupError, match="KAFKA_OPTS"):
        jvm_properties("-Da='1")


def test_acls_need_an_identity(tmp_path: Path) -> None:
    """Kafka refuses to start, too; a certificate is somebody, TLS alone is nobody."""
    acls = {"zookeeper.set.acl": "true"}
    for settings in (acls, acls | TLS):
        with pytest.raises(StartupError, match=r"zookeeper\.set\.acl=true needs an owner"):
            shown(settings)
    own = Certificate("kafka").write_pem(tmp_path / "own.pem")
    found = shown(acls | TLS | {"zookeeper.ssl.keystore.location": str(own)})
    assert found.set_acl
    assert found.tls is not None
    assert shown(acls | {"barnabas.zookeeper.digest": "kafka:secret"}).digest == "kafka:secret"


def test_the_tls_context_follows_the_settings(tmp_path: Path) -> None:
    """One version unless more are enabled; the host's name matters unless told otherwise."""
    context = shown(TLS).tls
    assert context is not None
    assert (context.check_hostname, context.verify_mode) == (True, ssl.CERT_REQUIRED)
    version_2, version_3 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3
    assert (context.minimum_version, context.maximum_version) == (version_2, version_2)
    trust = Certificate("authority").write_trust(tmp_path / "trust.pem")
    other = shown(
        TLS
        | {
            "zookeeper.ssl.enabled.protocols": "TLSv1.3,TLSv1.2",
            "zookeeper.ssl.endpoint.identification.algorithm": "",
            "zookeeper.ssl.truststore.location": str(trust),
            "zookeeper.clientCnxnSocket": "org.apache.zookeeper.ClientCnxnSocketNetty",
        }
    ).tls
    assert other is not None
    assert (other.minimum_version, other.maximum_version) == (version_2, version_3)
    assert not other.check_hostname
    assert len(other.get_ca_certs()) == 1


def test_replaced_stores_make_another_context(tmp_path: Path) -> None:
    """Once for each change; it trusts what is in the file now, and no longer what was."""
    file = tmp_path / "trust.pem"
    Certificate("first").write_trust(file)
    own = Certificate("kafka").write_pem(tmp_path / "own.pem")
    found = shown(
        TLS
        | {
            "zookeeper.ssl.truststore.location": str(file),
            "zookeeper.ssl.keystore.location": str(own),
        }
    )
    assert found.renewed is not None
    assert found.renewed() is None
    Certificate("second").write_trust(tmp_path / "next.pem").rename(file)
    renewed = found.renewed()
    assert renewed is not None
    context, material = renewed
    assert [each["subject"] for each in context.get_ca_certs()] == [((("commonName", "second"),),)]
    assert material.trust == file.read_text()
    assert found.renewed() is None
    own.write_text("half a key")
    assert found.renewed() is None
    Certificate("kafka").write_pem(own)
    assert found.renewed() is not None


def test_ciphers_by_the_names_of_java() -> None:
    """And no others."""
    suite = "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"
    context = shown(TLS | {"zookeeper.ssl.cipher.suites": suite}).tls
    assert context is not None
    offered = {each["name"] for each in context.get_ciphers() if each["protocol"] == "TLSv1.2"}
    assert offered == {"ECDHE-RSA-CHACHA20-POLY1305"}


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("crl.enable", "true", "revoked certificates are not looked for"),
        ("ocsp.enable", "true", "revoked certificates are not looked for"),
        ("protocol", "TLSv1.1", "only TLSv1.2 and TLSv1.3"),
        ("enabled.protocols", "TLSv1.2,TLSv1", "TLSv1 is not offered"),
        ("cipher.suites", "TLS_RSA_WITH_AES_128_CBC_SHA", "is not offered, only TLS_ECDHE"),
        ("endpoint.identification.algorithm", "LDAPS", "only HTTPS is known"),
        ("truststore.location", "/none.pem", "/none.pem: No such file"),
        ("keystore.location", "/none.jks", "/none.jks: No such file"),
    ],
)
def test_unsupported_tls_settings_fail_the_startup(name: str, value: str, reason: str) -> None:
    """Told by name where TLS is asked for, and of no interest where it is not."""
    settings = {f"zookeeper.ssl.{name}": value}
    assert shown(settings).tls is None
    with pytest.raises(StartupError, match=reason) as caught:
        shown(TLS | settings)
    assert "zookeeper.ssl" in str(caught.value)


def test_sockets_and_versions_that_do_not_go_together() -> None:
    """Java's other socket has no TLS; ciphers of TLS 1.3 are OpenSSL's choice."""
    with pytest.raises(StartupError, match=r"zookeeper\.clientCnxnSocket=.*NIO: TLS needs"):
        shown(TLS | {"zookeeper.clientCnxnSocket": "org.apache.zookeeper.ClientCnxnSocketNIO"})
    chosen = {
        "zookeeper.ssl.protocol": "TLSv1.3",
        "zookeeper.ssl.cipher.suites": "TLS_AES_128_GCM_SHA256",
    }
    with pytest.raises(StartupError, match=r"ciphers of TLSv1\.3 cannot be chosen"):
        shown(TLS | chosen)
