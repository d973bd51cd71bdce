"""Every command that asks brokers, over SASL_SSL: by its properties file, and by the environment.

The table names each of them; a new command has to be added to it. A broker with ACLs that speaks
nothing but SASL_SSL answers, so a command that went round TLS or SASL would get nowhere.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from barnabas_broker.cli.main import VERBS, main
from barnabas_broker.testing import Broker
from barnabas_kafka.certificates import create_authority
from tests.broker.cli.conftest import run_command
from tests.oracle.apache import free_port
from tests.waiting import ATTEMPT_S, RUN, seconds

TOPIC = ("--topic", "orders")
TABLE: dict[str, tuple[str, ...]] = {
    "topics create": ("made",),
    "topics list": (),
    "topics describe": ("orders",),
    "topics alter": ("grown", "--partitions", "2"),
    "topics delete": ("doomed",),
    "configs describe": ("--entity-type", "topics", "--entity-name", "orders"),
    "configs alter": (
        "--entity-type", "topics", "--entity-name", "orders", "--add", "retention.ms=86400000",
    ),
    "acls add": ("--allow", "User:alice", "--operation", "read", *TOPIC),
    "acls list": (),
    "acls explain": ("--principal", "User:alice", "--operation", "read", *TOPIC),
    "acls remove": TOPIC,
    "quotas set": ("--user", "alice", "producer_byte_rate=1000000"),
    "quotas list": (),
    "quotas remove": ("--user", "alice", "producer_byte_rate"),
    "tokens create": (),
    "tokens list": (),
    "tokens renew": ("--hmac", "AA=="),
    "tokens expire": ("--hmac", "AA=="),
    "produce": ("orders",),
    "consume": ("orders", "--from-beginning", "--max-messages", "1"),
    "groups list": (),
    "groups describe": ("none",),
    "groups delete": ("none",),
    "groups delete-offsets": ("none", *TOPIC),
    "groups reset-offsets": ("none", *TOPIC, "--to-earliest"),
    "groups downgrade": ("none",),
    "groups plan": ("none", "--assignor", "range"),
    "transactions list": (),
    "transactions describe": ("none",),
    "transactions describe-producers": (*TOPIC, "--partition", "0"),
    "transactions find-hanging": (),
    "transactions abort": (*TOPIC, "--partition", "0", "--start-offset", "0"),
    "offsets": ("orders",),
    "log-dirs describe": (),
    "log-dirs move": ("orders:0", "--to", "/nowhere"),
    "brokers list": (),
    "brokers describe": (),
    "brokers caught-up": (),
    "brokers safe-to-restart": ("7",),
    "reassign list": (),
    "reassign plan add": ("7",),
    "reassign plan balance": (),
    "reassign plan drain": ("7",),
    "reassign plan factor": ("1", *TOPIC),
    "reassign generate": (*TOPIC, "--brokers", "{id}"),
    "reassign execute": ("{moves}",),
    "reassign verify": ("{moves}",),
    "reassign cancel": ("{moves}",),
    "elect-leaders": ("--all",),
    "cluster info": (),
    "cluster health": (),
    "cluster-id": (),
    "perf produce": ("orders", "--records", "10"),
    "perf consume": ("orders", "--records", "5"),
    "perf latency": ("orders", "--records", "3"),
}  # fmt: skip
ANSWERS = {
    "tokens create": "are not enabled", "tokens list": "are not enabled",
    "tokens renew": "are not enabled", "tokens expire": "are not enabled",
    "groups describe": "no group none", "groups delete": "none",
    "groups delete-offsets": "GROUP_ID_NOT_FOUND", "groups reset-offsets": "none",
    "groups downgrade": "none", "groups plan": "none",
    "transactions describe": "none", "transactions abort": "",
    "log-dirs move": "/nowhere", "brokers caught-up": "barnabas.admin.listener",
    "brokers safe-to-restart": "no broker 7", "reassign plan add": "7", "reassign plan drain": "7",
    "reassign generate": "", "reassign execute": "", "reassign cancel": "", "reassign verify": "",
}  # fmt: skip
"""Those that a broker of its own refuses for what was asked: part of its answer."""


def leaves(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[str]:
    """The commands below one that take a properties file."""
    if not isinstance(command, click.Group):
        if any(each.name == "command_config" for each in command.params):
            yield " ".join(path)
        return
    for name in command.list_commands(click.Context(command)):
        found = command.get_command(click.Context(command), name)
        if found is not None and (path or name in VERBS):
            yield from leaves(found, (*path, name))


def test_every_command_is_in_the_table() -> None:
    """The commands of other distributions aside."""
    assert sorted(leaves(main)) == sorted(TABLE)


@pytest.fixture(scope="module")
def orders(secured_kafka_broker: Broker) -> Broker:
    """The broker, with a topic that has a record."""
    for name in ("orders", "grown", "doomed"):
        secured_kafka_broker.create_topic(name)
    (secured_kafka_broker.directory / "moves.json").write_text(
        json.dumps(
            {"version": 1, "partitions": [{"topic": "none", "partition": 0, "replicas": [7]}]}
        )
    )
    config = ("--command-config", str(secured_kafka_broker.command_config()))
    bootstrap = secured_kafka_broker.bootstrap_servers
    run_command("produce", "orders", *config, bootstrap=bootstrap, stdin=b"a record\n")
    return secured_kafka_broker


@pytest.mark.parametrize("name", TABLE)
def test_over_tls_and_sasl(orders: Broker, name: str) -> None:
    """It is answered: with what was asked for, or with why not."""
    moves = str(orders.directory / "moves.json")
    given = {"moves": moves, "id": "1001"}
    words = [*name.split(), *(word.format(**given) for word in TABLE[name])]
    by_environment = {
        "BARNABAS_BOOTSTRAP": orders.bootstrap_servers,
        "BARNABAS_COMMAND_CONFIG": str(orders.command_config()),
    }
    done = CliRunner().invoke(main, words, input=b"x\n", env=by_environment)
    said = done.output
    assert done.exception is None or isinstance(done.exception, SystemExit), said
    assert done.exit_code != 2, said
    if name in ANSWERS:
        assert ANSWERS[name] in said
        assert not any(it in said.lower() for it in ("no kafka broker answers", "authenticat"))
    else:
        assert done.exit_code == 0, said
    assert orders.client_properties()["sasl.password"] not in said


def test_a_wrong_password_and_none(orders: Broker) -> None:
    """A command ends with what the broker says, and does not show the password."""
    wrong = ("-X", "sasl.password=wrong-secret", "--timeout", str(ATTEMPT_S))
    config = ("--command-config", str(orders.command_config()))
    for command in (("acls", "list"), ("topics", "list")):
        reported = run_command(
            *command, *config, *wrong, bootstrap=orders.bootstrap_servers, fails=1
        ).stderr
        assert "uthentication failed" in reported
        assert "wrong-secret" not in reported


@pytest.mark.parametrize(
    ("given", "reported"),
    [
        (("sasl.password=wrong-secret",), "uthentication failed"),
        (("ssl.ca.location={other}",), "certificate verify failed"),
    ],
)
@pytest.mark.parametrize("words", ["topics list", "produce orders", "consume orders"])
def test_authentication_failures_are_not_retried(
    orders: Broker, tmp_path: Path, words: str, given: tuple[str, ...], reported: str
) -> None:
    """Is told at once: nobody waits for a broker that has refused."""
    other = tmp_path / "other.pem"
    other.write_text(create_authority("other", now=datetime.now(UTC), days=1).certificate)
    properties = [it for each in given for it in ("-X", each.format(other=other))]
    config = ("--command-config", str(orders.command_config()), "--timeout", "3600")
    done = subprocess.run(
        [sys.executable, "-P", "-m", "barnabas_broker.cli", *words.split(), *config, *properties],
        env={**os.environ, "BARNABAS_BOOTSTRAP": orders.bootstrap_servers},
        capture_output=True, text=True, input="a record\n", timeout=seconds(RUN), check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert reported in done.stderr
    assert "wrong-secret" not in done.stderr


def test_a_login_without_a_mechanism(orders: Broker) -> None:
    """Kafka's default is one that is not supported: it has to be named."""
    for command in (("topics", "list"), ("acls", "list")):
        done = run_command(
            *command, "-X", "security.protocol=SASL_SSL", bootstrap=orders.bootstrap_servers,
            fails=2,
        )  # fmt: skip
        assert "set sasl.mechanism to PLAIN, SCRAM-SHA-256, SCRAM-SHA-512" in done.stderr


@pytest.mark.parametrize("words", [("topics", "list"), ("acls", "list")])
def test_the_address_in_the_file(orders: Broker, words: tuple[str, ...]) -> None:
    """It is the broker's where no other is given, by option, property or environment."""
    config = [*words, "--command-config", str(orders.command_config())]
    nowhere = f"127.0.0.1:{free_port()}"
    alone = {"BARNABAS_BOOTSTRAP": None}
    done = CliRunner().invoke(main, config, env=alone)
    assert done.exit_code == 0, done.output
    for options, env in (
        (["-b", nowhere], alone),
        (["-X", f"bootstrap.servers={nowhere}"], alone),
        ([], {"BARNABAS_BOOTSTRAP": nowhere}),
    ):
        done = CliRunner().invoke(main, [*config, *options], env=env)
        assert done.exit_code == 1
        assert nowhere in done.output


KAFKA_TOOLS = {
    "topics": ("--list",),
    "configs": ("--describe", "--entity-type", "topics", "--entity-name", "orders"),
    "acls": ("--list",),
    "consumer_groups": ("--list",),
    "log_dirs": ("--describe",),
    "broker_api_versions": (),
    "transactions": ("list",),
    "get_offsets": ("--topic", "orders"),
    "leader_election": ("--election-type", "preferred", "--all-topic-partitions"),
    "reassign_partitions": ("--list",),
    "console_consumer": ("--topic", "orders", "--from-beginning", "--max-messages", "1"),
    "console_producer": ("--topic", "orders"),
}
OWN_NAMES = {
    "leader_election": "--admin.config",
    "console_consumer": "--consumer.config",
    "console_producer": "--producer.config",
}


@pytest.mark.parametrize("module", KAFKA_TOOLS)
def test_tools_of_kafkas_names(orders: Broker, module: str) -> None:
    """By the option that Kafka's tool has for its properties file."""
    tool = import_module(f"barnabas_broker.cli.kafka.{module}").main
    option = OWN_NAMES.get(module, "--command-config")
    where = ["--bootstrap-server", orders.bootstrap_servers]
    config = [option, str(orders.command_config())]
    words = [*where, *config, *KAFKA_TOOLS[module]]
    done = CliRunner().invoke(tool, words, input=b"y\n")
    assert done.exit_code == 0, done.output
