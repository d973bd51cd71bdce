"""Commands that log in with bearer tokens: of a file, and for credentials; by either library."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas_broker.security.sasl_settings import OAUTHBEARER_MODULE
from barnabas_broker.testing import Broker
from tests.broker.cli.conftest import run_command
from tests.broker.server.network.test_token_endpoint import SIGNER, TokenProvider
from tests.oracle.tokens import key_set

COMMON = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER"}
URL = "sasl.oauthbearer.token.endpoint.url"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """It takes signed tokens, and nothing else."""
    keys = tmp_path_factory.mktemp("keys") / "keys.json"
    keys.write_bytes(key_set(SIGNER))
    settings = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
        "sasl.oauthbearer.expected.audience": "kafka",
        f"listener.name.sasl_plaintext.oauthbearer.{URL}": (keys.parent / "token").as_uri(),
    }
    (keys.parent / "token").write_text(SIGNER.token("broker", aud="kafka"))
    with Broker(settings) as started:
        yield started


@pytest.fixture
def provider() -> Iterator[TokenProvider]:
    """Gives tokens of alice."""
    started = TokenProvider()
    yield started
    started.close()


def config(directory: Path, **changes: str) -> str:
    """A file of Java's properties."""
    file = directory / "client.properties"
    given = {**COMMON, **{name.replace("_", "."): value for name, value in changes.items()}}
    file.write_text("".join(f"{name}={value}\n" for name, value in given.items()))
    return str(file)


def test_credentials(broker: Broker, provider: TokenProvider, tmp_path: Path) -> None:
    """By librdkafka and by the client of this project, with extensions."""
    login = 'clientId="alice" clientSecret="wonderland" scope="kafka" extension_traceId="7"'
    changes = {URL.replace(".", "_"): provider.url}
    file = config(tmp_path, sasl_jaas_config=f"{OAUTHBEARER_MODULE} required {login};", **changes)
    given = ("--command-config", file, "-b", broker.listeners["SASL_PLAINTEXT"])
    run_command("topics", "create", "orders", *given)
    run_command("produce", "orders", *given, stdin=b"one\n")
    read = run_command("consume", "orders", "--from-beginning", "--max-messages", "1", *given)
    assert "one" in read.stdout
    assert "1001" in run_command("log-dirs", "describe", *given).stdout
    assert {form for _, form in provider.asked} == {b"grant_type=client_credentials&scope=kafka"}


def test_a_token_in_a_file(broker: Broker, tmp_path: Path) -> None:
    """As a sidecar writes it; an expired one is refused before it is sent."""
    token = tmp_path / "token"
    token.write_text(SIGNER.token(aud="kafka"))
    file = config(
        tmp_path,
        sasl_jaas_config=f"{OAUTHBEARER_MODULE} required;",
        sasl_oauthbearer_token_endpoint_url=token.as_uri(),
    )
    given = ("--command-config", file, "-b", broker.listeners["SASL_PLAINTEXT"])
    run_command("topics", "list", *given)
    run_command("log-dirs", "describe", *given)
    token.write_text(SIGNER.token(aud="kafka", exp=1))
    for words in (("topics", "list"), ("log-dirs", "describe")):
        refused = run_command(*words, *given, fails=1)
        assert "the token has expired" in refused.stderr


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, f"{URL} is missing"),
        ({URL: "https://idp.example.com"}, "needs clientId and clientSecret"),
        ({"sasl.jaas.config": f'{OAUTHBEARER_MODULE} required unsecuredLoginStringClaim_sub="x";'},
         "unsecuredLoginStringClaim_sub is not supported"),
        ({"sasl.jaas.config": f"{OAUTHBEARER_MODULE} required"}, "one login module"),
        ({"sasl.login.callback.handler.class": "com.example.Mine"}, "com.example.Mine"),
    ],
)  # fmt: skip
def test_invalid_login_settings_are_refused_by_name(
    tmp_path: Path, changes: dict[str, str], reason: str
) -> None:
    """Before anything is connected to."""
    file = config(tmp_path, **{name.replace(".", "_"): it for name, it in changes.items()})
    reason = "sasl.login.callback.handler.class" if reason.startswith("com.") else reason
    for words in (("topics", "list"), ("log-dirs", "describe")):
        done = run_command(*words, "--command-config", file, "-b", "127.0.0.1:1", fails=2)
        assert reason in done.stderr
