"""`barnabas quotas` and `kafka-configs` of users, clients and addresses, against a broker."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from barnabas_broker.cli.kafka import configs as kafka_configs
from barnabas_broker.cli.kafka.client_quotas import java_double
from barnabas_broker.testing import Broker
from tests.broker.cli.conftest import Outcome, run_command


@pytest.fixture
def broker() -> Iterator[Broker]:
    """Without quotas."""
    with Broker({}) as running:
        yield running


def quotas(broker: Broker, *args: str, fails: int = 0) -> Outcome:
    """Run `barnabas quotas`."""
    return run_command("quotas", *args, bootstrap=broker.bootstrap_servers, fails=fails)


def tool(broker: Broker, *args: str, fails: int = 0) -> str:
    """Run `kafka-configs`; what it printed."""
    main: click.Command = kafka_configs.main
    result = CliRunner().invoke(main, ("--bootstrap-server", broker.bootstrap_servers, *args))
    assert result.exit_code == fails, result.output
    return result.output if fails else result.stdout


def test_quotas_are_set_listed_and_removed(broker: Broker) -> None:
    """Of users, client ids, both, addresses and defaults."""
    assert quotas(broker, "list").stdout == "There are no such quotas.\n"
    alice = ("--user", "alice")
    done = quotas(broker, "set", *alice, "producer_byte_rate=1024", "request_percentage=12.5")
    assert done.stdout == "Set the quotas of user 'alice'.\n"
    quotas(broker, "set", *alice, "--default-client-id", "consumer_byte_rate=1e6")
    quotas(broker, "set", "--default-user", "producer_byte_rate=5")
    quotas(broker, "set", "--ip", "127.0.0.1", "connection_creation_rate=100")
    listed = quotas(broker, "list", "--output", "json").json()
    assert listed == [
        {
            "entity": {"user": "alice", "client-id": None},
            "quotas": {"consumer_byte_rate": 1e6},
        },
        {
            "entity": {"user": "alice"},
            "quotas": {"producer_byte_rate": 1024.0, "request_percentage": 12.5},
        },
        {"entity": {"user": None}, "quotas": {"producer_byte_rate": 5.0}},
        {"entity": {"ip": "127.0.0.1"}, "quotas": {"connection_creation_rate": 100.0}},
    ]
    assert "(default)" in quotas(broker, "list").stdout
    assert len(quotas(broker, "list", *alice, "--output", "json").json()) == 2
    removed = quotas(broker, "remove", *alice, "request_percentage")
    assert removed.stdout == "Removed request_percentage of user 'alice'.\n"
    quotas(broker, "remove", *alice)
    assert len(quotas(broker, "list", *alice, "--output", "json").json()) == 1


def test_validation_alone(broker: Broker) -> None:
    """A broker checks it, and nothing is set."""
    one = ("set", "--user", "a", "--validate-only")
    assert quotas(broker, *one, "producer_byte_rate=1").stdout.startswith("Could set the quotas")
    assert "must be a LONG value" in quotas(broker, *one, "producer_byte_rate=1.5", fails=1).stderr
    assert quotas(broker, "list").stdout == "There are no such quotas.\n"


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (("set", "producer_byte_rate=1"), 2, "say whose quotas"),
        (("set", "--user", "a", "--default-user", "producer_byte_rate=1"), 2, "exclude each other"),
        (("set", "--user", "a", "producer_byte_rate=x"), 2, "Cannot parse"),
        (("set", "--user", "a", "nothing=1"), 1, "Invalid configuration key nothing"),
        (("remove", "--user", "a"), 1, "user 'a' has no quotas"),
        (("remove", "--user", "a", "producer_byte_rate"), 1, "has no producer_byte_rate"),
    ],
)
def test_refused(broker: Broker, args: tuple[str, ...], code: int, message: str) -> None:
    """With what is wrong."""
    assert message in quotas(broker, *args, fails=code).stderr


def test_names_and_defaults_belong_to_types_in_their_order(broker: Broker) -> None:
    """Also where a default stands before a name, and clients before users."""
    rate = ("--add-config", "producer_byte_rate=1024")
    types = ("--entity-type", "users", "--entity-default", "--entity-type", "clients")
    tool(broker, "--alter", *types, "--entity-name", "app", *rate)
    swapped = ("--entity-type", "clients", "--entity-name", "x", "--entity-type", "users")
    tool(broker, "--alter", *swapped, "--entity-name", "y", *rate)
    shown = tool(broker, "--describe", "--entity-type", "users", "--entity-type", "clients")
    entities = "the default user-principal, client-id 'app'", "user-principal 'y', client-id 'x'"
    assert sorted(shown.splitlines()) == [
        f"Quota configs for {entity} are producer_byte_rate=1024.0" for entity in entities
    ]
    assert tool(broker, "--describe", "--entity-type", "users") == ""


def test_credentials_and_quotas_of_a_user(broker: Broker) -> None:
    """Set apart, shown together."""
    user = ("--user", "alice")
    both = "SCRAM-SHA-256=[password=secret],producer_byte_rate=5"
    assert "simultaneously" in tool(broker, "--alter", *user, "--add-config", both, fails=1)
    for one in ("SCRAM-SHA-256=[password=secret]", "producer_byte_rate=1e9"):
        tool(broker, "--alter", *user, "--add-config", one)
    assert tool(broker, "--describe", *user) == (
        "Quota configs for user-principal 'alice' are producer_byte_rate=1.0E9\n"
        "SCRAM credential configs for user-principal 'alice' are SCRAM-SHA-256=iterations=4096\n"
    )
    tool(broker, "--alter", *user, "--delete-config", "SCRAM-SHA-256")
    assert tool(broker, "--describe", *user).startswith("Quota configs")


@pytest.mark.parametrize(
    "args",
    [
        ("--entity-type", "topics", "--entity-type", "users", "--entity-name", "a"),
        ("--entity-type", "users", "--entity-name", "a", "--entity-name", "b"),
        ("--entity-type", "topics", "--entity-default"),
        ("--entity-type", "users"),
    ],
)
def test_entities_that_cannot_be_altered(broker: Broker, args: tuple[str, ...]) -> None:
    """Types that do not go together, names without types, and no name."""
    tool(broker, "--alter", *args, "--add-config", "producer_byte_rate=1", fails=1)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"), (1.0, "1.0"), (1048576.0, "1048576.0"), (9999999.0, "9999999.0"),
        (1e7, "1.0E7"), (10485760.0, "1.048576E7"), (0.001, "0.001"), (0.00025, "2.5E-4"),
        (-12345678.5, "-1.23456785E7"), (1e300, "1.0E300"), (float("inf"), "Infinity"),
    ],
)  # fmt: skip
def test_numbers_as_java_writes_them(value: float, text: str) -> None:
    """As Kafka's tool shows quotas."""
    assert java_double(value) == text
