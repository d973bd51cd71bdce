"""`barnabas log-dirs` against a broker with two log directories."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas_broker.security.acls import CLUSTER_NAME, AclOperation, Permission, ResourceType
from barnabas_broker.server.node.broker_server import BrokerServer
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from barnabas_kafka.records.builder import build_batch
from tests.broker.cli.cluster import three_brokers
from tests.broker.cli.conftest import run_command
from tests.broker.server.running import Wire, port_of, running_node

BATCH = build_batch([(1000, None, b"value", ())])


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerServer]:
    root = tmp_path_factory.mktemp("disks")
    with running_node(root, {"log.dirs": f"{root / 'one'},{root / 'two'}"}) as running:
        yield running


@pytest.fixture
def bootstrap(node: BrokerServer) -> str:
    return f"127.0.0.1:{port_of(node)}"


def other(node: BrokerServer, tp: TopicPartition) -> Path:
    home = node.broker.logs.logs[tp].directory.parent
    return home.parent / ("two" if home.name == "one" else "one")


def test_a_move_is_waited_for_and_shown(node: BrokerServer, bootstrap: str) -> None:
    """The partition is where it was sent; the table and the JSON say so."""
    tp = TopicPartition("orders", 1)
    with Wire(port_of(node)) as wire:
        wire.create_topic(tp.topic, partitions=2)
        wire.produce(tp.topic, BATCH, partition=1)
    target = other(node, tp)
    moved = run_command(
        "log-dirs", "move", "orders:1", "--to", str(target), "--wait", bootstrap=bootstrap
    )
    assert "All copies are made." in moved.stderr
    rows = run_command(
        "log-dirs", "describe", "--topic", "orders", "--output", "json", bootstrap=bootstrap
    ).json()
    assert rows[1] == {
        "broker": 0, "directory": str(target), "topic": "orders", "partition": 1,
        "size": len(BATCH), "lag": 0, "future": False,
    }  # fmt: skip
    table = run_command("log-dirs", "describe", bootstrap=bootstrap).stdout.splitlines()
    assert table[0].split() == [
        "broker", "directory", "state", "free", "total", "partitions", "size", "future"
    ]  # fmt: skip
    online = [line for line in table if "online" in line]
    assert len(online) == 2
    assert all(re.search(r"online +[\d.]+ [GT]iB +[\d.]+ [GT]iB ", line) for line in online)


def test_failed_moves_are_reported_by_error_name(bootstrap: str) -> None:
    """With the protocol's name of the error, all of them, exit code 1."""
    failed = run_command(
        "log-dirs", "move", "nothing:0", "nothing:3", "--to", "/nowhere",
        bootstrap=bootstrap, fails=1,
    )  # fmt: skip
    for number in (0, 3):
        assert f"cannot move nothing:{number} to /nowhere: LOG_DIR_NOT_FOUND" in failed.stderr


def test_a_selection_needs_partitions(bootstrap: str) -> None:
    """Exit code 2, and nothing is asked."""
    wrong = run_command("log-dirs", "move", "orders", "--to", "/x", bootstrap=bootstrap, fails=2)
    assert "names no partitions" in wrong.stderr


def test_a_broker_that_is_not_there(bootstrap: str) -> None:
    """Is told, not passed over."""
    failed = run_command("log-dirs", "describe", "--broker", "9", bootstrap=bootstrap, fails=1)
    assert "there is no broker 9" in failed.stderr


def test_a_broker_that_refuses_hides_no_other(tmp_path: Path) -> None:
    """It alone has an authorizer, whose ACLs deny Describe on the cluster."""
    authorizer = {
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
    }
    with three_brokers(tmp_path, last=authorizer) as three:
        with Wire(port_of(three.nodes[2])) as wire:
            for operation, permission in (
                (AclOperation.ALL, Permission.ALLOW),
                (AclOperation.DESCRIBE, Permission.DENY),
            ):
                rule = AclCreation(
                    resource_type=ResourceType.CLUSTER,
                    resource_name=CLUSTER_NAME,
                    principal="User:ANONYMOUS",
                    host="*",
                    operation=operation,
                    permission_type=permission,
                )
                (result,) = wire.ask(CreateAclsRequest(creations=[rule]), 3).results
                assert result.error_code == ErrorCode.NONE
        words = ("log-dirs", "describe", "--output", "json", "-b", three.bootstrap)
        done = run_command(*words, fails=1)
        assert [row["broker"] for row in done.json()] == [0, 1]
        assert "broker 2 does not describe its log directories: CLUSTER_AUTHORIZ" in done.stderr
        assert done.stderr.count("\n") == 1
