"""How a broker connects to a listener of others: with its certificate, trust, user and password."""

import ssl
from pathlib import Path

import pytest

from barnabas_broker.security.client_security import ClientSecurity, client_security
from barnabas_broker.security.jaas import Sections, parse
from barnabas_broker.security.listener_tls import listener_tls
from barnabas_broker.security.sasl_settings import OAUTHBEARER_MODULE, PLAIN_MODULE, SCRAM_MODULE
from barnabas_kafka.client.sasl import OAuthBearer, Plain, Scram
from barnabas_kafka.settings.broker import BrokerSettings
from barnabas_kafka.settings.definitions import SettingError
from barnabas_kafka.settings.listeners import SecurityProtocol
from tests.oracle.certificates import Certificate

AUTHORITY = Certificate("authority")
BROKER = Certificate("broker", AUTHORITY, host="localhost")
MECHANISM = "sasl.mechanism.inter.broker.protocol"
JAAS = "listener.name.in.{}.sasl.jaas.config"


def read(
    protocol: SecurityProtocol, given: dict[str, str], sections: Sections | None = None
) -> ClientSecurity:
    """The client's role on the listener IN of a broker with these settings."""
    settings = BrokerSettings.from_mapping(given)
    tls = listener_tls(settings, "IN") if protocol.tls else None
    return client_security(
        settings, "IN", protocol, tls=tls, sections=sections or {}, tokens=lambda it: lambda: it.url
    )


@pytest.fixture
def stores(tmp_path: Path) -> dict[str, str]:
    """A key store and the trust store that fits it."""
    return {
        "ssl.keystore.location": str(BROKER.write_pem(tmp_path / "broker.pem")),
        "ssl.truststore.location": str(AUTHORITY.write_trust(tmp_path / "trust.pem")),
    }


def test_the_other_broker_is_verified(stores: dict[str, str]) -> None:
    """Its chain always, its host name unless that is turned off for the listener."""
    found = read(SecurityProtocol.SSL, stores)
    assert found.tls is not None
    assert (found.tls.verify_mode, found.tls.check_hostname) == (ssl.CERT_REQUIRED, True)
    key = "listener.name.in.ssl.endpoint.identification.algorithm"
    unchecked = read(SecurityProtocol.SASL_SSL, {**stores, key: "", **with_plain()})
    assert unchecked.tls is not None
    assert (unchecked.tls.verify_mode, unchecked.tls.check_hostname) == (ssl.CERT_REQUIRED, False)
    with pytest.raises(SettingError, match=f"{key}=.*only https"):
        read(SecurityProtocol.SSL, {**stores, key: "ldaps"})


@pytest.mark.parametrize("client_auth", ["none", "requested", "required"])
def test_a_broker_that_would_not_trust_itself(
    tmp_path: Path, stores: dict[str, str], client_auth: str
) -> None:
    """Is refused at the start, as in Kafka: others would not get on with it either."""
    read(SecurityProtocol.SSL, {**stores, "ssl.client.auth": client_auth})
    other = Certificate("another authority").write_trust(tmp_path / "other.pem")
    given = {**stores, "ssl.truststore.location": str(other), "ssl.client.auth": client_auth}
    with pytest.raises(SettingError, match=r"truststore.*do not fit each other.*listener IN"):
        read(SecurityProtocol.SSL, given)
    del given["ssl.truststore.location"]
    if client_auth == "none":  # The machine's authorities do not know it.
        with pytest.raises(SettingError, match="do not fit each other"):
            read(SecurityProtocol.SSL, given)


def with_plain() -> dict[str, str]:
    """The login module of the listener for PLAIN."""
    module = f'{PLAIN_MODULE} required username="broker" password="secret" user_broker="secret";'
    return {MECHANISM: "PLAIN", JAAS.format("plain"): module}


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_users_come_from_the_login_module(mechanism: str) -> None:
    """Of the setting first, then of the listener's section, then of that of all listeners."""
    module = SCRAM_MODULE
    sections = parse(
        f'KafkaServer {{ {module} required username="all" password="a"; }};'
        f'in.KafkaServer {{ {module} required username="in" password="i"; }};'
    )
    setting = f'{module} required username="set" password="s";'
    given = {MECHANISM: mechanism, JAAS.format(mechanism.lower()): setting}
    protocol = SecurityProtocol.SASL_PLAINTEXT
    assert read(protocol, given, sections).mechanism == Scram("set", "s", mechanism)  # type: ignore[arg-type]
    del given[JAAS.format(mechanism.lower())]
    assert read(protocol, given, sections).mechanism == Scram("in", "i", mechanism)  # type: ignore[arg-type]
    only = {"KafkaServer": sections["KafkaServer"]}
    assert read(protocol, given, only).mechanism == Scram("all", "a", mechanism)  # type: ignore[arg-type]
    assert read(protocol, with_plain()).mechanism == Plain("broker", "secret")
    assert "secret" not in repr(read(protocol, with_plain()))


@pytest.mark.parametrize(
    "module",
    [
        "",
        f"{SCRAM_MODULE} required;",
        f'{SCRAM_MODULE} required username="a";',
        f'{SCRAM_MODULE} required password="a";',
        f'{SCRAM_MODULE} required username="a" password="b" tokenauth="true";',
    ],
)
def test_a_login_module_without_user_or_password(module: str) -> None:
    """The setting that lacks them is named, without what it has."""
    given = {MECHANISM: "SCRAM-SHA-256"}
    if module:
        given[JAAS.format("scram-sha-256")] = module
    name = JAAS.format("scram-sha-256")
    with pytest.raises(SettingError, match=rf"{name}: .*brokers.*(password|delegation tokens)"):
        read(SecurityProtocol.SASL_PLAINTEXT, given)


def test_bearer_tokens() -> None:
    """Come from where the listener's settings say, for what its login module says."""
    options = 'clientId="broker" clientSecret="secret" extension_of="IN"'
    server = 'unsecuredValidatorScopeClaimName="s"'
    endpoint = "listener.name.in.oauthbearer.sasl.oauthbearer.token.endpoint.url"
    given = {
        MECHANISM: "OAUTHBEARER",
        endpoint: "https://idp/token",
        JAAS.format("oauthbearer"): f"{OAUTHBEARER_MODULE} required {options} {server};",
    }
    found = read(SecurityProtocol.SASL_PLAINTEXT, given).mechanism
    assert isinstance(found, OAuthBearer)
    assert (found.token_provider(), found.extensions) == ("https://idp/token", {"of": "IN"})
    del given[endpoint]
    with pytest.raises(SettingError, match=r"brokers connect.*token.endpoint.url is missing"):
        read(SecurityProtocol.SASL_PLAINTEXT, given)


def test_brokers_without_security() -> None:
    """PLAINTEXT needs neither stores nor users."""
    assert read(SecurityProtocol.PLAINTEXT, {}) == ClientSecurity(
        SecurityProtocol.PLAINTEXT, None, None
    )
