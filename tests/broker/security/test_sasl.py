"""PLAIN, and the SASL settings of a listener."""

import pytest

from barnabas_broker.security.jaas import parse
from barnabas_broker.security.sasl import PlainServer, SaslError
from barnabas_broker.security.sasl_settings import PLAIN_MODULE, SCRAM_MODULE, listener_sasl
from barnabas_kafka.settings.broker import BrokerSettings
from barnabas_kafka.settings.definitions import SettingError

USERS = {"alice": "wonder", "bob": "b"}
JAAS = "listener.name.out.plain.sasl.jaas.config"
ALICE = f'{PLAIN_MODULE} required username="broker" password="x" user_alice="wonder";'
MECHANISMS = {"sasl.enabled.mechanisms": "PLAIN"}


@pytest.mark.parametrize("token", [b"\0alice\0wonder", b"alice\0alice\0wonder"])
def test_the_right_password(token: bytes) -> None:
    """With or without an authorization id."""
    exchange = PlainServer(USERS)
    assert exchange.evaluate(token) == b""
    assert exchange.user == "alice"
    with pytest.raises(SaslError):
        exchange.evaluate(token)


@pytest.mark.parametrize(
    ("token", "reported"),
    [
        (b"", "expected 3 tokens, got 1"),
        (b"\0alice\0wonder\0", "expected 3 tokens, got 4"),
        (b"\0\0wonder", "username not specified"),
        (b"\0alice\0", "password not specified"),
        (b"\0alice\0b", "Invalid username or password"),
        (b"\0nobody\0b", "Invalid username or password"),
        (b"bob\0alice\0wonder", "different from username"),
    ],
)
def test_invalid_plain_credentials_are_refused(token: bytes, reported: str) -> None:
    """In the words of Kafka's PlainSaslServer."""
    exchange = PlainServer(USERS)
    with pytest.raises(SaslError) as refused:
        exchange.evaluate(token)
    assert reported in (refused.value.client_message or "")
    assert exchange.user is None


def test_bytes_that_are_no_text() -> None:
    """They name nobody."""
    with pytest.raises(SaslError):
        PlainServer(USERS).evaluate(b"\0\xff\0x")


def settings(given: dict[str, str]) -> BrokerSettings:
    """A broker's settings."""
    return BrokerSettings.from_mapping({**MECHANISMS, **given})


def test_users_of_plain() -> None:
    """Those of the login module; the broker's own login is none of them."""
    found = listener_sasl(settings({JAAS: ALICE}), "OUT", {})
    assert found.passwords == {"alice": "wonder"}
    assert found.mechanisms == ("PLAIN",)
    assert "wonder" not in repr(found)


@pytest.mark.parametrize(
    "text",
    [
        f"{ALICE} // the users of today",
        f"/* the users */ {ALICE} /* of today */",
        f"// the users\n{ALICE}\n// of today",
    ],
)
def test_a_login_module_with_comments(text: str) -> None:
    """Kafka's JaasConfig passes over comments of both kinds, at the end, too."""
    found = listener_sasl(settings({JAAS: text}), "OUT", {})
    assert found.passwords == {"alice": "wonder"}


def test_a_listeners_own_settings_come_first() -> None:
    """Mechanisms and session lifetimes may differ between listeners."""
    own = {
        JAAS: ALICE,
        "listener.name.in.sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "listener.name.in.connections.max.reauth.ms": "5000",
    }
    assert listener_sasl(settings(own), "IN", {}).mechanisms == ("SCRAM-SHA-512",)
    assert listener_sasl(settings(own), "IN", {}).reauthentication_ms == {"SCRAM-SHA-512": 5000}
    assert listener_sasl(settings(own), "OUT", {}).reauthentication_ms == {"PLAIN": 0}
    of_mechanism = {**own, "listener.name.in.scram-sha-512.connections.max.reauth.ms": "7"}
    found = listener_sasl(settings(of_mechanism), "IN", {})
    assert found.reauthentication_ms == {"SCRAM-SHA-512": 7}


def test_sections_of_a_login_file() -> None:
    """The listener's own section, else the one for all."""
    sections = parse(
        f'out.KafkaServer {{ {PLAIN_MODULE} required user_a="1"; }};'
        f'KafkaServer {{ {SCRAM_MODULE} required; {PLAIN_MODULE} required user_b="2"; }};'
    )
    assert listener_sasl(settings({}), "OUT", sections).passwords == {"a": "1"}
    assert listener_sasl(settings({}), "OTHER", sections).passwords == {"b": "2"}
    assert listener_sasl(settings({JAAS: ALICE}), "OUT", sections).passwords == {"alice": "wonder"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sasl.enabled.mechanisms": "GSSAPI"}, "GSSAPI is not offered"),
        ({"sasl.enabled.mechanisms": "PLAIN,KERBEROS"}, "KERBEROS is not offered"),
        ({JAAS: ALICE, "sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER"}, "needs the keys"),
        ({"sasl.enabled.mechanisms": ""}, "no mechanism is enabled"),
        ({}, "PLAIN needs a"),
        ({JAAS: f"{SCRAM_MODULE} required;"}, "PLAIN needs org.apache"),
        ({JAAS: f"{PLAIN_MODULE} required"}, "malformed"),
        ({JAAS: ALICE + ALICE}, "one login module"),
    ],
)
def test_invalid_sasl_settings_fail_the_startup(given: dict[str, str], message: str) -> None:
    """The setting is named; passwords are not shown."""
    with pytest.raises(SettingError, match=message) as refused:
        listener_sasl(settings(given), "OUT", {})
    assert "wonder" not in str(refused.value)
