"""`barnabas acls` and `kafka-acls` against a broker with an authorizer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click
import pytest
from click.testing import CliRunner

from barnabas_broker.cli.kafka import acls as kafka_acls
from barnabas_broker.testing import Broker
from tests.broker.cli.conftest import Outcome, run_command

SETTINGS = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """With an authorizer, under which everybody may do what no rule is about."""
    with Broker(SETTINGS) as running:
        yield running


def acls(broker: Broker, *args: str, fails: int = 0) -> Outcome:
    """Run `barnabas acls`."""
    return run_command("acls", *args, bootstrap=broker.bootstrap_servers, fails=fails)


def tool(broker: Broker, *args: str, stdin: str = "", fails: int = 0) -> str:
    """Run `kafka-acls`; what it printed."""
    main: click.Command = kafka_acls.main
    given = ("--bootstrap-server", broker.bootstrap_servers, *args)
    result = CliRunner().invoke(main, given, input=stdin)
    assert result.exit_code == fails, result.output
    return result.output if fails else result.stdout


def rows(broker: Broker, *args: str) -> list[tuple[Any, ...]]:
    """What `list` shows, without hosts."""
    found = acls(broker, "list", *args, "--output", "json").json()
    names = ("resource", "name", "pattern", "principal", "operation", "permission")
    return [tuple(each[name] for name in names) for each in found]


def test_rules_are_added_listed_and_removed(broker: Broker) -> None:
    """Of two topics; with a pattern, those that apply."""
    about = ("--topic", "own-a", "--topic", "own-b")
    added = acls(broker, "add", *about, "--allow", "User:a", "--operation", "describe-configs"
                 .replace("-", "_"), "--host", "10.0.0.1")  # fmt: skip
    assert added.stdout == "Added 2 rules.\n"
    acls(broker, "add", "--topic", "own-", "--pattern", "prefixed", "--deny", "User:b")
    one = ("TOPIC", "own-a", "LITERAL", "User:a", "DESCRIBE_CONFIGS", "ALLOW")
    wide = ("TOPIC", "own-", "PREFIXED", "User:b", "ALL", "DENY")
    assert rows(broker, "--topic", "own-a") == [one]
    assert rows(broker, "--topic", "own-a", "--pattern", "match") == [wide, one]
    assert rows(broker, "--topic", "own-a", "--pattern", "match", "--principal", "User:b") == [wide]
    assert "10.0.0.1" in acls(broker, "list").stdout
    removed = acls(broker, "remove", *about, "--topic", "own-", "--pattern", "any")
    assert removed.stdout.count("User:") == 3
    assert acls(broker, "list", "--topic", "own-a").stdout == "There are no such rules.\n"


def test_roles(broker: Broker) -> None:
    """What `kafka-acls` gives a producer and a consumer."""
    about = ("--topic", "role", "--group", "role", "--transactional-id", "role")
    acls(broker, "add", "--cluster", "--allow", "User:ANONYMOUS")  # Who asks, from here on.
    acls(broker, "add", *about, "--allow", "User:p", "--producer", "--idempotent")
    acls(broker, "add", *about, "--allow", "User:c", "--consumer")
    of_producer = {(row[0], row[4]) for row in rows(broker, "--principal", "User:p")}
    assert of_producer == {
        ("TOPIC", "WRITE"), ("TOPIC", "DESCRIBE"), ("TOPIC", "CREATE"),
        ("TRANSACTIONAL_ID", "WRITE"), ("TRANSACTIONAL_ID", "DESCRIBE"),
        ("CLUSTER", "IDEMPOTENT_WRITE"),
    }  # fmt: skip
    of_consumer = {(row[0], row[4]) for row in rows(broker, "--principal", "User:c")}
    assert of_consumer == {("TOPIC", "READ"), ("TOPIC", "DESCRIBE"), ("GROUP", "READ")}


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["add", "--allow", "User:a"], "what the rules are about"),
        (["add", "--topic", "t"], "--allow or --deny"),
        (["add", "--topic", "t", "--allow", "alice"], "User:name"),
        (["add", "--topic", "t", "--allow", "User:a", "--operation", "fly"], "no operation fly"),
        (["add", "--group", "g", "--allow", "User:a", "--operation", "write"], "only supports"),
        (["add", "--topic", "t", "--allow", "User:a", "--producer", "--operation", "read"], "say"),
        (["remove", "--topic", "t", "--operation", "read"], "--allow or --deny"),
    ],
)
def test_wrong_usage(args: list[str], said: str) -> None:
    """Nothing is asked then."""
    assert said in run_command("acls", *args, bootstrap="127.0.0.1:1", fails=2).stderr


@pytest.fixture(scope="module")
def other() -> Iterator[Broker]:
    """Another one, for the tool."""
    with Broker(SETTINGS) as running:
        yield running


ENTRY = "\t(principal=User:a, host=*, operation=READ, permissionType=ALLOW)"


def test_kafkas_tool_prints_as_apaches(other: Broker) -> None:
    """Adding lists what there is then; removing asks first, unless it is forced."""
    where = "ResourcePattern(resourceType=TOPIC, name=t, patternType=LITERAL)"
    added = tool(
        other, "--add", "--allow-principal", "User:a", "--operation", "Read", "--topic", "t"
    )
    assert added == (
        f"Adding ACLs for resource `{where}`: \n {ENTRY} \n\n"
        f"Current ACLs for resource `{where}`: \n {ENTRY} \n\n"
    )
    assert tool(other, "--list", "--principal", "User:a", "--principal", "User:b") == (
        f"ACLs for principal `User:a`\nCurrent ACLs for resource `{where}`: \n {ENTRY} \n\n"
        "ACLs for principal `User:b`\n"
    )
    kept = tool(other, "--remove", "--topic", "t", stdin="n\n")
    assert "Are you sure you want to delete all ACLs" in kept
    assert kept.endswith(f"{ENTRY} \n\n")
    one = ("--allow-principal", "User:a", "--operation", "Read", "--topic", "t")
    assert tool(other, "--remove", *one, stdin="y\n").endswith(f"`{where}`? (y/n)\n")
    assert tool(other, "--list") == ""
    tool(other, "--add", "--producer", "--allow-principal", "User:a", "--topic", "t")
    assert tool(other, "--remove", "--topic", "t", "--force") == ""


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--topic", "t"], "exactly one action"),
        (["--add", "--topic", "t"], "--allow-principal, --deny-principal"),
        (["--add", "--allow-principal", "User:a"], "at least one resource"),
        (["--list", "--producer"], "--list takes"),
        (["--remove", "--principal", "User:a", "--topic", "t"], "--principal goes with"),
        (["--add", "--consumer", "--topic", "t", "--allow-principal", "User:a"], "--consumer"),
        (["--add", "--producer", "--deny-principal", "User:a", "--topic", "t"], "deny nothing"),
        (["--add", "--producer", "--allow-principal", "User:a", "--group", "g"], "--producer"),
        (["--add", "--idempotent", "--allow-principal", "User:a", "--topic", "t"], "--idempotent"),
        (
            ["--add", "--topic", "t", "--allow-principal", "User:a", "--resource-pattern-type",
             "match"],
            "not valid when adding",
        ),
        (["--list", "--authorizer", "x"], "--authorizer is not supported"),
    ],
)  # fmt: skip
def test_invalid_arguments_of_kafka_acls_are_refused(
    other: Broker, args: list[str], said: str
) -> None:
    """With exit code 1, as Apache's."""
    assert said in tool(other, *args, fails=1)


def test_without_an_authorizer(kafka_broker: Broker) -> None:
    """The broker's reason is told."""
    assert "SECURITY_DISABLED" in acls(kafka_broker, "list", fails=1).stderr
    assert "SECURITY_DISABLED" in tool(kafka_broker, "--list", fails=1)
