"""The settings of OAUTHBEARER: of the listener's mechanism, of the listener, of the broker."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas_broker.security.bearer_settings import (
    SIGNED_HANDLERS,
    UNSECURED_HANDLER,
    SignedTokenSettings,
    UnsecuredTokenSettings,
    bearer_settings,
    key_file,
)
from barnabas_broker.security.sasl_settings import OAUTHBEARER_MODULE, listener_sasl
from barnabas_kafka.settings.broker import BrokerSettings
from barnabas_kafka.settings.definitions import SettingError

URL = "sasl.oauthbearer.jwks.endpoint.url"
HANDLER = "listener.name.out.oauthbearer.sasl.server.callback.handler.class"
HANDLER_OF_ALL = "sasl.server.callback.handler.class"
HANDLER_OF_SCRAM = "listener.name.out.scram-sha-256.sasl.server.callback.handler.class"
OAUTHBEARER = {"sasl.enabled.mechanisms": "OAUTHBEARER"}


def of_login(handler: str) -> str:
    """The setting for the handler that gives credentials, not for the one that checks them."""
    return handler.replace(".server.", ".login.")


def settings(**given: str) -> BrokerSettings:
    """A broker's settings; `_` stands for a dot."""
    return BrokerSettings.from_mapping({**OAUTHBEARER, **given})


def test_signed_tokens() -> None:
    """Where the keys are, and what has to be in a token."""
    given = {
        URL: "https://idp:8443/keys",
        "sasl.oauthbearer.expected.audience": "a, b",
        "sasl.oauthbearer.expected.issuer": "https://idp",
        "listener.name.out.sasl.oauthbearer.clock.skew.seconds": "7",
        "listener.name.out.oauthbearer.sasl.oauthbearer.sub.claim.name": "azp",
        HANDLER: SIGNED_HANDLERS[0],
    }
    options = {"ssl.truststore.location": "/trust.pem", "password": "wonder"}
    found = bearer_settings(settings(**given), "OUT", options)
    assert isinstance(found, SignedTokenSettings)
    assert (found.audience, found.issuer) == (("a", "b"), "https://idp")
    assert (found.clock_skew_s, found.subject_claim, found.scope_claim) == (7, "azp", "scope")
    assert found.source.trust == {"ssl.truststore.location": "/trust.pem"}
    assert found.source.refresh_ms == 3_600_000
    assert found.source.file is None


def test_keys_in_a_file() -> None:
    """It is watched, like a key store."""
    given = settings(**{URL: "file:///etc/the%20keys.json"})
    assert key_file(given, "OUT") == (Path("/etc/the keys.json"),)
    found = bearer_settings(given, "OUT", {})
    assert isinstance(found, SignedTokenSettings)
    assert found.source.file == Path("/etc/the keys.json")
    assert key_file(settings(), "OUT") == ()


def test_unsecured_tokens_only_where_kafkas_handler_is_named() -> None:
    """With the options of Kafka's handler, in the listener's login module."""
    jaas = (
        f"{OAUTHBEARER_MODULE} required unsecuredValidatorPrincipalClaimName=name "
        'unsecuredValidatorRequiredScope="a b" unsecuredValidatorAllowableClockSkewMs=3000;'
    )
    given = {"listener.name.out.oauthbearer.sasl.jaas.config": jaas, HANDLER: UNSECURED_HANDLER}
    found = listener_sasl(settings(**given), "OUT", {}).bearer
    assert found == UnsecuredTokenSettings("name", "scope", ("a", "b"), 3000)
    with pytest.raises(SettingError, match="accepted only with"):
        listener_sasl(settings(**given), "IN", {})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "needs the keys"),
        ({URL: "idp/keys"}, "begins with"),
        ({URL: "ftp://idp/keys"}, "begins with"),
        ({URL: "https://"}, "begins with"),
        ({URL: "https://idp:x/"}, "begins with"),
        ({URL: "https://[/"}, "begins with"),
        ({URL: "file:"}, "begins with"),
        ({HANDLER: "com.example.Handler"}, "not loaded"),
        ({URL: "file:///keys", HANDLER_OF_ALL: UNSECURED_HANDLER}, "can have one of"),
        ({"sasl.enabled.mechanisms": "SCRAM-SHA-256", HANDLER_OF_SCRAM: "x"}, "can have one of"),
        (
            {"sasl.enabled.mechanisms": "SCRAM-SHA-256", of_login(HANDLER_OF_SCRAM): "x"},
            "login.callback.*can have one of",
        ),
        ({URL: "file:///keys", of_login(HANDLER_OF_ALL): "x"}, "login.callback.*can have one of"),
    ],
)
def test_invalid_oauthbearer_settings_fail_the_startup(given: dict[str, str], message: str) -> None:
    """The setting is named."""
    with pytest.raises(SettingError, match=message):
        listener_sasl(settings(**given), "OUT", {})


def test_a_clock_skew_that_is_no_time() -> None:
    """Of the login module's options."""
    with pytest.raises(SettingError, match="AllowableClockSkewMs"):
        bearer_settings(
            settings(**{HANDLER: UNSECURED_HANDLER}),
            "OUT",
            {"unsecuredValidatorAllowableClockSkewMs": "-1"},
        )
