"""Brokers of a cluster that connect to each other with TLS and SASL, in this process."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from barnabas_broker.security.sasl_settings import PLAIN_MODULE
from barnabas_broker.server.network.listener_security import ListenerSecurity
from barnabas_broker.server.node.broker_server import BrokerServer
from barnabas_broker.server.process.startup import StartupError
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol.messages.alter_partition import AlterPartitionRequest
from barnabas_kafka.protocol.messages.controlled_shutdown import ControlledShutdownRequest
from barnabas_kafka.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas_kafka.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from barnabas_kafka.records.builder import build_batch
from barnabas_kafka.settings.broker import BrokerSettings
from tests.broker.cli.test_zookeeper import started
from tests.broker.server.network.test_sasl_authenticator import log_in
from tests.broker.server.running import Wire, fetch_request, running_node
from tests.broker.server.test_dynamic_settings import alter
from tests.oracle.certificates import Certificate
from tests.waiting import wait_for

MODULE = f'{PLAIN_MODULE} required username="broker" password="secret" user_broker="secret"'
TP = TopicPartition("t", 0)
BATCH = build_batch([(1000, None, b"value", ())])


def settings(stores: Path) -> dict[str, str]:
    """Clients on PLAINTEXT and CLIENTS, brokers on BROKERS, the controller on CONTROL."""
    listeners = ("PLAINTEXT", "BROKERS", "CONTROL", "CLIENTS")
    return {
        "listeners": ",".join(f"{it}://127.0.0.1:0" for it in listeners),
        "advertised.listeners": ",".join(f"{it}://localhost:0" for it in listeners),
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,BROKERS:SASL_SSL,CONTROL:SSL,"
        "CLIENTS:SASL_PLAINTEXT",
        "inter.broker.listener.name": "BROKERS",
        "control.plane.listener.name": "CONTROL",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.brokers.plain.sasl.jaas.config": f"{MODULE};",
        "listener.name.clients.plain.sasl.jaas.config": f'{MODULE} user_alice="wonder";',
        "ssl.keystore.location": str(stores / "broker.pem"),
        "ssl.truststore.location": str(stores / "trust.pem"),
        "ssl.client.auth": "required",
        "ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/",
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "super.users": "User:broker;User:ANONYMOUS",
        "controlled.shutdown.enable": "false",
    }


def write_stores(directory: Path, *authorities: Certificate) -> None:
    """A new certificate of the first authority, and trust in all."""
    Certificate("broker", authorities[0], host="localhost").write_pem(directory / "new.pem")
    trust = b"".join(each.pem for each in authorities)
    (directory / "new-trust.pem").write_bytes(trust)
    (directory / "new-trust.pem").rename(directory / "trust.pem")
    (directory / "new.pem").rename(directory / "broker.pem")


@contextmanager
def two_brokers(directory: Path, given: dict[str, str]) -> Iterator[list[BrokerServer]]:
    """Brokers 0 and 1, which know each other."""
    with started(directory / "zookeeper") as (_, zookeeper), ExitStack() as running:
        nodes = [
            running.enter_context(
                running_node(
                    directory / str(broker),
                    {**given, "broker.id": str(broker), "zookeeper.connect": zookeeper},
                )
            )
            for broker in range(2)
        ]
        wait_for(
            "two live brokers in the image of each",
            lambda: [sorted(node.broker.image.brokers) for node in nodes],
            until=lambda seen: seen == [[0, 1]] * 2,
        )
        yield nodes


def connect(node: BrokerServer, listener: str) -> Wire:
    """A client of one listener."""
    return Wire(next(each.port for each in node.listeners if each.name == listener))


def principals(node: BrokerServer, listener: str) -> set[str]:
    """Whom the connections of a listener are known as."""
    (found,) = (each for each in node.listeners if each.name == listener)
    return {str(session.caller.principal) for session in found.sessions}


def until_in_sync(nodes: list[BrokerServer]) -> int:
    """Wait until each broker has both replicas in sync; the leader."""

    def states() -> list[Any]:
        return [node.broker.image.partition(TP) for node in nodes]

    found = wait_for(
        "both replicas in sync on each broker",
        states,
        until=lambda seen: all(it and len(it.isr) == 2 and it.leader >= 0 for it in seen),
    )
    leader: int = found[0].leader
    return leader


def test_brokers_replicate_and_control_each_other(tmp_path: Path) -> None:
    """Over TLS and SASL, across a renewal of certificates and authority that ends no connection."""
    first, second = Certificate("first"), Certificate("second")
    write_stores(tmp_path, first)
    with two_brokers(tmp_path, settings(tmp_path)) as nodes:
        with connect(nodes[0], "PLAINTEXT") as wire:
            topic = CreatableTopic(name="t", num_partitions=1, replication_factor=2)
            request = CreateTopicsRequest(timeout_ms=5000, topics=[topic])
            wait_for(
                "the topic",
                lambda: wire.ask(request, 7).topics[0].error_code,
                until=lambda code: code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS),
            )
        leader = until_in_sync(nodes)
        with connect(nodes[leader], "PLAINTEXT") as wire:
            assert wire.produce("t", BATCH).error_code == ErrorCode.NONE
            assert principals(nodes[leader], "BROKERS") == {"User:broker"}
            assert {"User:broker"} in [principals(node, "CONTROL") for node in nodes]

            def shown() -> list[Any]:
                return [
                    each.client_security.tls
                    for node in nodes
                    for each in node.listeners
                    if each.client_security is not None and each.client_security.tls is not None
                ]

            # The new authority is trusted before anybody shows a certificate of it.
            for authorities in ((first, second), (second, first), (second,)):
                before = shown()
                write_stores(tmp_path, *authorities)
                wait_for(
                    "other contexts of all listeners",
                    shown,
                    until=lambda after, old=before: not {*map(id, after)} & {*map(id, old)},  # type: ignore[misc]
                )
                assert wire.produce("t", BATCH).error_code == ErrorCode.NONE
            # Only what trusts the second authority and is trusted by it connects from now on.
            for node in nodes:
                for each in node.listeners:
                    for session in list(each.sessions):
                        if each.name in ("BROKERS", "CONTROL"):
                            node_loop(node).call_soon_threadsafe(session.close, "the test says so")
            assert wire.produce("t", BATCH).error_code == ErrorCode.NONE
        until_in_sync(nodes)


def node_loop(node: BrokerServer) -> Any:
    """The event loop of a running broker."""
    return node.listeners[0]._loop


def test_only_brokers_act_as_brokers(tmp_path: Path) -> None:
    """An ordinary user is refused what brokers ask each other."""
    write_stores(tmp_path, Certificate("authority"))
    with two_brokers(tmp_path, settings(tmp_path)) as nodes, connect(nodes[0], "CLIENTS") as wire:
        assert log_in(wire).error_code == ErrorCode.NONE
        refused = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        alter = AlterPartitionRequest(broker_id=1, broker_epoch=-1)
        assert wire.ask(alter, 2).error_code == refused
        shutdown = ControlledShutdownRequest(broker_id=1, broker_epoch=-1)
        assert wire.ask(shutdown, 3).error_code == refused
        marker = WritableTxnMarker(
            producer_id=1,
            producer_epoch=0,
            topics=[WritableTxnMarkerTopic(name="t", partition_indexes=[0])],
        )
        reported = wire.ask(WriteTxnMarkersRequest(markers=[marker]), 1)
        assert reported.markers[0].topics[0].partitions[0].error_code == refused
        fetched = wire.ask(fetch_request([("t", 0, 0)], replica_id=1), 12)
        (partition,) = fetched.responses[0].partitions
        assert partition.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_settings_change_while_brokers_run(tmp_path: Path) -> None:
    """New connections go by them at once; what brokers could not connect with is refused."""
    write_stores(tmp_path, Certificate("authority"))
    with running_alone(tmp_path) as node, connect(node, "PLAINTEXT") as wire:
        mechanism = "sasl.mechanism.inter.broker.protocol"
        assert alter(wire, mechanism, "SCRAM-SHA-512", of="0") == ErrorCode.INVALID_REQUEST
        assert alter(wire, mechanism, "GSSAPI", of="0") == ErrorCode.INVALID_REQUEST
        (listener,) = (each for each in node.listeners if each.name == "BROKERS")

        def verifies() -> bool:
            found = listener.client_security
            assert found is not None
            assert found.tls is not None
            return found.tls.check_hostname

        assert verifies()
        name = "listener.name.brokers.ssl.endpoint.identification.algorithm"
        assert alter(wire, name, "", of="0") == ErrorCode.NONE
        wait_for("no verification of host names", verifies, until=lambda found: not found)
        assert alter(wire, name, None, of="0") == ErrorCode.NONE
        wait_for("verification of host names", verifies)


def test_stores_that_a_listener_could_not_use_are_refused(tmp_path: Path) -> None:
    """They would keep the broker from starting again; so would a login module that is malformed."""
    authority = Certificate("authority")
    write_stores(tmp_path, authority)
    (tmp_path / "none.pem").write_text("no key store")
    Certificate("broker", Certificate("other"), host="127.0.0.1").write_pem(tmp_path / "other.pem")
    Certificate("broker", authority, host="127.0.0.1").write_pem(tmp_path / "next.pem")
    prefix = "listener.name.brokers.ssl"
    with running_alone(tmp_path) as node, connect(node, "PLAINTEXT") as wire:
        for name in ("missing.pem", "none.pem", "other.pem"):
            store = str(tmp_path / name)
            code = alter(wire, f"{prefix}.keystore.location", store, of="0")
            assert code == ErrorCode.INVALID_REQUEST, name
        for name in ("missing.pem", "none.pem"):
            store = str(tmp_path / name)
            code = alter(wire, f"{prefix}.truststore.location", store, of="0")
            assert code == ErrorCode.INVALID_REQUEST, name
        assert alter(wire, f"{prefix}.principal.mapping.rules", "RULE:(/", of="0") == (
            ErrorCode.INVALID_REQUEST
        )
        store = str(tmp_path / "next.pem")
        assert alter(wire, f"{prefix}.keystore.location", store, of="0") == ErrorCode.NONE


def test_a_listener_refuses_what_it_could_not_use(tmp_path: Path) -> None:
    """A pipe would be read for ever, by the controller's thread; and brokers need a login."""
    write_stores(tmp_path, Certificate("authority"))
    os.mkfifo(tmp_path / "pipe.pem")
    prefix = "listener.name.brokers"
    with running_alone(tmp_path) as node, connect(node, "PLAINTEXT") as wire:
        for store in ("keystore", "truststore"):
            code = alter(wire, f"{prefix}.ssl.{store}.location", str(tmp_path / "pipe.pem"), of="0")
            assert code == ErrorCode.INVALID_REQUEST, store
        module = f'{PLAIN_MODULE} required user_broker="secret";'
        name = f"{prefix}.plain.sasl.jaas.config"
        assert alter(wire, name, module, of="0") == ErrorCode.INVALID_REQUEST
        assert alter(wire, "ssl.enabled.protocols", "TLSv1", of="0") == ErrorCode.INVALID_REQUEST
        # What has nothing to do with stores changes although one cannot be read at the moment.
        (tmp_path / "broker.pem").unlink()
        assert alter(wire, f"{prefix}.max.connections", "10", of="0") == ErrorCode.NONE


@contextmanager
def running_alone(directory: Path) -> Iterator[BrokerServer]:
    """Broker 0 on a ZooKeeper."""
    with started(directory / "zookeeper") as (_, zookeeper):
        given = {
            **settings(directory),
            "broker.id": "0",
            "zookeeper.connect": zookeeper,
            "password.encoder.secret": "secret",
        }
        with running_node(directory / "0", given) as node:
            yield node


def test_a_listener_of_brokers_that_cannot_be_connected_to(tmp_path: Path) -> None:
    """The broker does not start, and says which setting is wrong."""
    write_stores(tmp_path, Certificate("authority"))
    given = settings(tmp_path) | {"zookeeper.connect": "localhost:1"}
    without = {**given, "listener.name.brokers.plain.sasl.jaas.config": f"{PLAIN_MODULE} required;"}
    taken = BrokerSettings.from_mapping(without)
    (address,) = (each for each in taken.listeners if each.name == "BROKERS")
    with pytest.raises(StartupError, match=r"listener BROKERS: .*plain\.sasl\.jaas\.config"):
        ListenerSecurity(address, taken, lambda: None)  # type: ignore[arg-type, return-value]
