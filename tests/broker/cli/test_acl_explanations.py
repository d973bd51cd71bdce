"""`barnabas acls explain`: its verdicts are those of the broker it asks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from barnabas_broker.cli.acl_plans import VALID
from barnabas_broker.security.acls import ResourcePattern, ResourceType
from barnabas_broker.security.principals import Principal
from barnabas_broker.server.node.broker_server import BrokerServer
from barnabas_kafka.acls import AclOperation, AclPermission, AclResourceType, PatternType
from barnabas_kafka.client import Admin, ClientConfig
from barnabas_kafka.client.security import Acl, AclFilter, create_acls, delete_acls
from tests.broker.cli.conftest import Outcome, run_command
from tests.broker.security import acl_worlds as worlds
from tests.broker.server.running import port_of, running_node

SUPER = "User:ANONYMOUS"
SETTINGS = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": f"{SUPER};User:b",
}
OPTIONS = {ResourceType.TOPIC: "--topic", ResourceType.GROUP: "--group"}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerServer]:
    """With an authorizer, and who asks a super user."""
    with running_node(tmp_path_factory.mktemp("data"), SETTINGS) as running:
        yield running


@pytest.fixture
def config(tmp_path: Path) -> str:
    """The broker's settings as a file."""
    path = tmp_path / "server.properties"
    path.write_text("\n".join(f"{name}={value}" for name, value in SETTINGS.items()))
    return str(path)


def address(node: BrokerServer) -> str:
    """Where it listens."""
    return f"127.0.0.1:{port_of(node)}"


def explain(node: BrokerServer, *args: str, fails: int = 0) -> Outcome:
    """Run the command."""
    return run_command("acls", "explain", *args, bootstrap=address(node), fails=fails)


def set_acls(node: BrokerServer, *acls: Acl) -> None:
    """In place of those before."""
    with Admin(ClientConfig(bootstrap_servers=address(node))) as admin:
        admin.call(delete_acls([AclFilter()])).all()
        if acls:
            admin.call(create_acls(acls)).all()


def acl(name: str, principal: str, operation: AclOperation, **more: str) -> Acl:
    """One that allows something on a topic."""
    return Acl(
        resource_type=AclResourceType.TOPIC, resource_name=name, principal=principal,
        operation=operation, **more,  # type: ignore[arg-type]
    )  # fmt: skip


def random_acls(random: Random) -> list[Acl]:
    """Such as mean something."""
    found = []
    for _ in range(random.choice((1, 3, 6, 12))):
        pattern, entry = worlds.binding(random)
        kind = AclResourceType(pattern.type)
        operation = AclOperation(entry.operation)
        if operation in VALID[kind]:
            found.append(
                Acl(
                    resource_type=kind, resource_name=pattern.name,
                    pattern_type=PatternType(pattern.pattern), principal=entry.principal,
                    host=entry.host, operation=operation,
                    permission=AclPermission(entry.permission),
                )
            )  # fmt: skip
    return found


def test_the_verdicts_are_the_brokers(node: BrokerServer, config: str) -> None:
    """Whatever the rules are, who asks, and where from; both outcomes in earnest."""
    random = Random(5)
    verdicts = []
    for _ in range(25):
        set_acls(node, *random_acls(random))
        who, host, _, kind, _ = worlds.question(random)
        names = [name for name in worlds.NAMES if name != "*"]
        operation = random.choice((AclOperation.READ, AclOperation.DESCRIBE))
        about = [each for name in names for each in (OPTIONS[kind], name)]
        found = explain(
            node, "--principal", who, "--host", host, "--operation", operation.name, *about,
            "--broker-config", config, "--output", "json",
        ).json()  # fmt: skip
        assert [each["name"] for each in found] == names
        for each in found:
            resource = ResourcePattern(kind, each["name"])
            authorize = node._security.authorizer.authorize
            wanted = authorize(Principal.parse(who), host, operation, resource)
            assert each["allowed"] is wanted, each
            verdicts.append(wanted)
    assert min(verdicts.count(True), verdicts.count(False)) > len(verdicts) // 10


def test_why(node: BrokerServer, config: str) -> None:
    """The rule that decides; without one, those that differ in one thing; the super user."""
    deny = Acl(
        resource_type=AclResourceType.TOPIC, resource_name="orders", principal="User:eve",
        host="10.0.0.1", operation=AclOperation.ALL, permission=AclPermission.DENY,
    )  # fmt: skip
    read = AclOperation.READ
    set_acls(
        node, acl("orders", "User:alice", read), acl("*", "User:*", read, host="10.0.0.1"), deny
    )
    asked = ("--operation", "read", "--topic", "orders")
    allowed = explain(node, "--principal", "User:alice", *asked).stdout
    assert "READ on TOPIC orders is allowed to User:alice: Allow Read to User:alice" in allowed
    denied = explain(node, "--principal", "User:eve", "--host", "10.0.0.1", *asked).stdout
    assert "denied to User:eve from host 10.0.0.1: Deny All to User:eve" in denied
    missing = explain(node, "--principal", "User:carol", *asked)
    assert "is denied to User:carol: no ACL that allows it" in missing.stdout
    (found,) = explain(node, "--principal", "User:carol", *asked, "--output", "json").json()
    close = {(each["principal"], each["differs_in"]) for each in found["near_misses"]}
    assert close == {("User:alice", "principal"), ("User:*", "host")}
    assert all(each in missing.stdout for pair in close for each in pair)
    assert "--broker-config" in missing.stderr
    (above,) = explain(
        node, "--principal", "User:b", *asked, "--broker-config", config, "--output", "json"
    ).json()
    assert (above["allowed"], above["reason"], above["acl"]) == (True, "super.users", None)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--principal", "alice", "--operation", "read", "--topic", "t"], "Kind:name"),
        (["--principal", "User:a", "--operation", "read"], "say on what"),
        (["--principal", "User:a", "--operation", "all", "--topic", "t"], "name one"),
        (["--principal", "User:a", "--operation", "write", "--group", "g"], "GROUP only has"),
    ],
)
def test_incomplete_questions_are_refused(node: BrokerServer, args: list[str], said: str) -> None:
    """It says what is missing."""
    assert said in explain(node, *args, fails=2).stderr


def test_settings_that_no_broker_starts_with(node: BrokerServer, tmp_path: Path) -> None:
    """They are refused here, too."""
    path = tmp_path / "wrong.properties"
    path.write_text("super.users=alice")
    args = ("--principal", "User:a", "--operation", "read", "--topic", "t")
    assert "super.users" in explain(node, *args, "--broker-config", str(path), fails=2).stderr
