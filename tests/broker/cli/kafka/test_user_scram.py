"""`kafka-configs --entity-type users`: SCRAM credentials, before and while a broker runs."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas_broker.server.node.broker_server import BrokerServer
from barnabas_kafka.client import (
    Admin,
    AuthenticationError,
    ClientConfig,
    Scram,
    describe_cluster,
)
from barnabas_kafka.client.sasl import ScramMechanism
from tests.broker.cli.kafka.test_tool import run
from tests.broker.cli.test_zookeeper import client, started
from tests.broker.server.running import running_node
from tests.waiting import wait_for

BOTH = "SCRAM-SHA-256=[iterations=8192,password=a,b=c],SCRAM-SHA-512=[password=secret]"


@pytest.fixture
def zookeeper(tmp_path: Path) -> Iterator[str]:
    """An empty server, and a chroot that is not there yet."""
    with started(tmp_path / "zookeeper") as (_, address):
        yield f"{address}/kafka"


def test_users_are_created_before_a_broker_runs(tmp_path: Path, zookeeper: str) -> None:
    """Brokers find them, and hear of changes while they run; no output has a secret."""
    where = ("--zookeeper", zookeeper, "--entity-type", "users")
    outcome = run("configs", *where, "--alter", "--entity-name", "a b", "--add-config", BOTH)
    assert outcome.stdout == "Completed updating config for entity: user-principal 'a b'.\n"
    reported = run("configs", *where, "--describe").stdout
    assert reported == (
        "SCRAM credential configs for user-principal 'a b' are "
        "SCRAM-SHA-256=iterations=8192, SCRAM-SHA-512=iterations=4096\n"
    )
    with running_node(tmp_path / "0", settings(zookeeper)) as node:
        assert logs_in(node, "a,b=c", "SCRAM-SHA-256")
        assert logs_in(node, "secret", "SCRAM-SHA-512")
        assert not logs_in(node, "secret", "SCRAM-SHA-256")
        change = ("--add-config", "SCRAM-SHA-256=[password=new]", "--delete-config")
        run(
            "configs",
            "--zookeeper",
            zookeeper,
            "--alter",
            "--user",
            "a b",
            *change,
            "SCRAM-SHA-512",
        )
        wait_for("the new password", lambda: logs_in(node, "new", "SCRAM-SHA-256"))
        assert not logs_in(node, "secret", "SCRAM-SHA-512")


def settings(zookeeper: str) -> dict[str, str]:
    """A broker with a listener for users."""
    return {
        "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
        "connection.failed.authentication.delay.ms": "1",
        "zookeeper.connect": zookeeper,
    }


def address(node: BrokerServer, listener: str) -> str:
    """Where a listener of the broker is."""
    return next(f"127.0.0.1:{it.port}" for it in node.listeners if it.name == listener)


def logs_in(node: BrokerServer, password: str, mechanism: ScramMechanism) -> bool:
    """Whether the user is served with this password."""
    config = ClientConfig(
        bootstrap_servers=address(node, "SASL_PLAINTEXT"), sasl=Scram("a b", password, mechanism)
    )
    try:
        with Admin(config) as admin:
            admin.call(describe_cluster())
    except AuthenticationError:
        return False
    return True


def test_users_are_changed_through_brokers(tmp_path: Path, zookeeper: str) -> None:
    """The same options with --bootstrap-server."""
    with running_node(tmp_path / "0", settings(zookeeper)) as node:
        where = ("--bootstrap-server", address(node, "PLAINTEXT"), "--entity-type", "users")
        of = ("--entity-name", "a b")
        assert run("configs", *where, "--describe").stdout == ""
        outcome = run("configs", *where, *of, "--alter", "--add-config", BOTH)
        assert outcome.stdout == "Completed updating config for user a b.\n"
        assert logs_in(node, "secret", "SCRAM-SHA-512")
        run("configs", *where, *of, "--alter", "--delete-config", "SCRAM-SHA-512")
        reported = run("configs", *where, *of, "--describe").stdout
        assert reported == (
            "SCRAM credential configs for user-principal 'a b' are SCRAM-SHA-256=iterations=8192\n"
        )
        again = run("configs", *where, *of, "--alter", "--delete-config", "SCRAM-SHA-512",
                    fails=True)  # fmt: skip
        assert "does not exist" in again.output


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (["--add-config", "SCRAM-SHA-1=[password=x]"], "SCRAM-SHA-1 is not supported"),
        (["--add-config", "producer_byte_rate=1"], "producer_byte_rate is not supported"),
        (["--add-config", "SCRAM-SHA-256=[pass=secret]"], "Invalid value for SCRAM-SHA-256"),
        (["--add-config", "SCRAM-SHA-256=[password=]"], "Invalid value for SCRAM-SHA-256"),
        (["--add-config", "SCRAM-SHA-256=[iterations=1,password=secret]"], "4096 and 16384"),
        (["--delete-config", "SCRAM-SHA-256"], "Invalid config(s): SCRAM-SHA-256"),
        ([], "must be specified with --alter"),
    ],
)
def test_invalid_credentials_are_refused(zookeeper: str, change: list[str], reason: str) -> None:
    """Is refused by name, and nothing of the password is told."""
    where = ("--zookeeper", zookeeper, "--entity-type", "users", "--entity-name", "a")
    outcome = run("configs", *where, "--alter", *change, fails=True)
    assert reason in outcome.output
    assert "secret" not in outcome.output


def test_credentials_belong_to_the_writer(
    tmp_path: Path, zookeeper: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a login at ZooKeeper nobody else reads them, as in Kafka; without one, anybody does."""
    where = ("--zookeeper", zookeeper, "--alter", "--add-config", BOTH)
    run("configs", *where, "--user", "open")
    config = tmp_path / "zookeeper.properties"
    config.write_text("barnabas.zookeeper.digest=broker:secret\n")
    run("configs", *where, "--user", "own", "--zk-tls-config-file", str(config))
    with client(zookeeper.removesuffix("/kafka")) as kazoo:
        kazoo.add_auth("digest", "broker:secret")
        found = {user: kazoo.get_acls(f"/kafka/config/users/{user}")[0] for user in ("open", "own")}
        assert [acl.id.scheme for acl in found["open"]] == ["world"]
        assert [acl.id.scheme for acl in found["own"]] == ["digest"]
        stored = json.loads(kazoo.get("/kafka/config/users/open")[0])
        assert set(stored["config"]) == {"SCRAM-SHA-256", "SCRAM-SHA-512"}
