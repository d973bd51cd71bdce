"""`barnabas tokens` and `kafka-delegation-tokens` against a broker with delegation tokens."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from barnabas_broker.cli.kafka import delegation_tokens
from barnabas_broker.security.sasl_settings import PLAIN_MODULE, SCRAM_MODULE
from barnabas_broker.testing import Broker
from tests.broker.cli.conftest import Outcome, run_command

SETTINGS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
        f'{PLAIN_MODULE} required user_alice="secret";'
    ),
    "delegation.token.secret.key": "key",
}
ROW = re.compile(r"^(\S{22}) (\S{88}) (.*)$", re.MULTILINE)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """With a secret key, and a user."""
    with Broker(SETTINGS) as running:
        yield running


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Properties of alice's."""
    path = tmp_path_factory.mktemp("config") / "client.properties"
    path.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config="
        f'{PLAIN_MODULE} required username="alice" password="secret";\n'
    )
    return path


def tokens(broker: Broker, config: Path, *args: str, fails: int = 0) -> Outcome:
    """Run `barnabas tokens` as alice."""
    given = (*args, "--command-config", str(config))
    return run_command("tokens", *given, bootstrap=broker.listeners["SASL_PLAINTEXT"], fails=fails)


def tool(broker: Broker, config: Path, *args: str, fails: int = 0, stdin: str = "") -> str:
    """Run `kafka-delegation-tokens` as alice; what it printed."""
    main: click.Command = delegation_tokens.main
    address = ("--bootstrap-server", broker.listeners["SASL_PLAINTEXT"])
    given = (*address, "--command-config", str(config), *args)
    result = CliRunner().invoke(main, given, input=stdin)
    assert result.exit_code == fails, result.output
    return result.output if fails else result.stdout


def test_the_life_of_a_token(broker: Broker, config: Path) -> None:
    """Created, listed, renewed, and expired; its HMAC is shown once, or where it is asked for."""
    made = tokens(
        broker, config, "create", "--renewer", "User:bob", "--max-lifetime-ms", "600000",
        "--output", "json",
    ).json()  # fmt: skip
    assert (made["owner"], made["renewers"]) == ("User:alice", ["User:bob"])
    assert len(base64.b64decode(made["hmac"])) == 64
    listed = tokens(broker, config, "list", "--output", "json")
    (row,) = (each for each in listed.json() if each["token_id"] == made["token_id"])
    assert {**row, "hmac": made["hmac"]} == made
    assert made["hmac"] not in listed.stdout
    shown = tokens(broker, config, "list", "--owner", "User:alice", "--show-hmac")
    assert made["hmac"] in shown.stdout
    renewed = tokens(broker, config, "renew", "--hmac", made["hmac"], "--period-ms", "1000")
    assert renewed.stdout.startswith("The token expires at 20")
    later = tokens(broker, config, "expire", "--hmac", made["hmac"], "--period-ms", "60000")
    assert later.stdout.startswith("The token expires at 20")
    gone = tokens(broker, config, "expire", "--hmac", made["hmac"])
    assert gone.stdout == "The token is removed.\n"
    assert tokens(broker, config, "list").stdout == "There are no such tokens.\n"
    failed = tokens(broker, config, "renew", "--hmac", made["hmac"], fails=1)
    assert "DELEGATION_TOKEN_NOT_FOUND" in failed.stderr


def test_a_token_in_words(broker: Broker, config: Path) -> None:
    """What a person needs of it."""
    said = tokens(broker, config, "create").stdout
    assert re.fullmatch(
        r"Token id: \S{22}\nHMAC: \S{88}\nOwner: User:alice\nExpires: \S+Z, renewable until \S+Z\n",
        said,
    )
    token_hmac = said.split()[4]
    tokens(broker, config, "expire", "--hmac", token_hmac)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("create", "--owner", "alice"), "User:name"),
        (("create", "--renewer", ":bob"), "User:name"),
        (("list", "--owner", "User:"), "User:name"),
        (("renew", "--hmac", "!secret"), "base64"),
    ],
)
def test_invalid_arguments_are_refused(
    broker: Broker, config: Path, args: tuple[str, ...], said: str
) -> None:
    """Before anything is sent; a secret is not repeated."""
    failed = tokens(broker, config, *args, fails=2).stderr
    assert said in failed
    assert "!secret" not in failed


def test_no_tokens_in_plain_text(broker: Broker) -> None:
    """The error is the broker's."""
    failed = run_command("tokens", "create", bootstrap=broker.bootstrap_servers, fails=1)
    assert "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED" in failed.stderr


def test_kafkas_tool(broker: Broker, config: Path) -> None:
    """The life of a token by Kafka's options."""
    renewers = ("--renewer-principal", "User:bob", "--renewer-principal", "User:carol")
    made = tool(broker, config, "--create", "--max-life-time-period", "-1", *renewers)
    ((token_id, token_hmac, rest),) = ROW.findall(made)
    assert f"Created delegation token with tokenId : {token_id}\n" in made
    assert rest.split("  ")[0] == "User:alice"
    assert "[User:bob, User:carol]" in rest
    described = tool(broker, config, "--describe", "--owner-principal", "User:bob")
    assert "Total number of tokens : 1\n" in described
    assert ROW.findall(described) == [(token_id, token_hmac, rest)]
    assert "Total number of tokens : 0\n" in tool(
        broker, config, "--describe", "--owner-principal", "User:dora"
    )
    renewed = tool(broker, config, "--renew", "--renew-time-period", "-1", "--hmac", token_hmac)
    assert "Completed renew operation. New expiry date : 20" in renewed
    assert token_hmac not in renewed
    expired = tool(broker, config, "--expire", "--expiry-time-period", "-1", "--hmac", "-",
                   stdin=token_hmac)  # fmt: skip
    assert "Completed expire operation. New expiry date : 20" in expired
    assert not ROW.findall(tool(broker, config, "--describe"))


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((), "exactly one action"),
        (("--create", "--describe"), "exactly one action"),
        (("--create",), "max-life-time-period"),
        (("--renew", "--hmac", "AAAA"), "renew-time-period"),
        (("--expire", "--expiry-time-period", "1"), "hmac"),
        (("--describe", "--hmac", "AAAA"), "can't be used"),
        (("--create", "--max-life-time-period", "1", "--owner-principal", "x"), "User:name"),
        (("--renew", "--renew-time-period", "1", "--hmac", "!"), "base64"),
        (("--renew", "--renew-time-period", "1", "--hmac", "AAAA"), "TOKEN_NOT_FOUND"),
    ],
)
def test_invalid_arguments_of_kafka_delegation_tokens_are_refused(
    broker: Broker, config: Path, args: tuple[str, ...], said: str
) -> None:
    """With exit code 1, as Apache's does."""
    assert said in tool(broker, config, *args, fails=1)


def test_logging_in_with_a_token(broker: Broker, config: Path, tmp_path: Path) -> None:
    """As Kafka's tools are told to; a command that cannot do it says so."""
    made = tokens(broker, config, "create", "--output", "json").json()
    secret = made["hmac"]
    by_token = tmp_path / "token.properties"
    by_token.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-512\nsasl.jaas.config="
        f'{SCRAM_MODULE} required username="{made["token_id"]}" password="{secret}" '
        'tokenauth="true";\n'
    )
    address = broker.listeners["SASL_PLAINTEXT"]
    given = ("--command-config", str(by_token))
    assert "no such quotas" in run_command("quotas", "list", *given, bootstrap=address).stdout
    refused = run_command("topics", "list", *given, bootstrap=address, fails=2).stderr
    assert "does not log in with a delegation token" in refused
    assert secret not in refused
    by_token.write_text(by_token.read_text().replace("SCRAM-SHA-512", "PLAIN"))
    refused = run_command("quotas", "list", *given, bootstrap=address, fails=2).stderr
    assert "needs sasl.mechanism=SCRAM-SHA-256" in refused
