"""Kafka's znodes: what Apache 2.8 to 3.9 wrote is read, and what is written is what 3.9 writes."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from barnabas_broker.cluster.image import BrokerRegistration, Endpoint
from barnabas_broker.zk.acls import Protection, protection
from barnabas_broker.zk.znodes import (
    PERSISTENT_PATHS,
    BrokerZnode,
    ClusterIdZnode,
    ConfigChangeZnode,
    ConfigZnode,
    ControllerEpochZnode,
    ControllerZnode,
    DeleteTopicZnode,
    FeatureZnode,
    IsrChangeZnode,
    LeaderAndIsr,
    MalformedZnodeError,
    PartitionStateZnode,
    ProducerIdBlock,
    ProducerIdBlockZnode,
    ReplicaAssignment,
    TopicAssignment,
    TopicZnode,
)
from barnabas_kafka.ids import TopicPartition, uuid_from_base64

TOPIC_ID = uuid_from_base64("9kGS9sbSQ0eRKIYI4JWbnw")


def parsed(data: bytes) -> Any:
    """The JSON of a znode, which Kafka writes without blanks."""
    assert b": " not in data
    return json.loads(data)


def test_a_broker_registers_in_version_5() -> None:
    """Endpoints by listener, the protocol of each, and host and port for very old readers."""
    broker = BrokerRegistration(
        4,
        (Endpoint("CLIENT", "h1", 9093, "SSL"), Endpoint("INNER", "::1", 9092, "PLAINTEXT")),
        rack="r1",
        software="barnabas",
    )
    data = BrokerZnode(4).encode(broker, now_ms=1234)
    assert parsed(data) == {
        "version": 5,
        "host": "::1",
        "port": 9092,
        "jmx_port": -1,
        "timestamp": "1234",
        "endpoints": ["CLIENT://h1:9093", "INNER://[::1]:9092"],
        "listener_security_protocol_map": {"CLIENT": "SSL", "INNER": "PLAINTEXT"},
        "features": {},
        "rack": "r1",
        "software": "barnabas",
    }
    assert BrokerZnode(4).decode(data) == broker
    assert BrokerZnode(4).path == "/brokers/ids/4"


def test_a_broker_without_a_plaintext_endpoint_shows_none_to_old_readers() -> None:
    """Kafka writes a null host and port -1 there, and no rack where there is none, nor software."""
    data = BrokerZnode(1).encode(BrokerRegistration(1, (Endpoint("S", "h", 1, "SSL"),)), now_ms=1)
    value = parsed(data)
    assert (value["host"], value["port"]) == (None, -1)
    assert not {"rack", "software"} & value.keys()


def test_a_broker_that_was_not_stopped_in_order_may_say_so() -> None:
    """In a field of our own; a broker without it was stopped cleanly."""
    broker = BrokerRegistration(1, (Endpoint("P", "h", 1),), unclean=True)
    data = BrokerZnode(1).encode(broker, now_ms=1)
    assert parsed(data)["unclean"] is True
    assert BrokerZnode(1).decode(data) == broker
    data = BrokerZnode(1).encode(replace(broker, unclean=False), now_ms=1)
    assert "unclean" not in parsed(data)
    assert not BrokerZnode(1).decode(data).unclean


@pytest.mark.parametrize(
    ("text", "endpoints", "rack"),
    [
        (
            '{"version":1,"host":"localhost","port":9092,"jmx_port":9999,"timestamp":"22"}',
            (Endpoint("PLAINTEXT", "localhost", 9092, "PLAINTEXT"),),
            None,
        ),
        (
            (
                '{"version":3,"host":"h","port":9092,"jmx_port":-1,"timestamp":"22","rack":"dc1",'
                '"endpoints":["PLAINTEXT://h1:9092","SSL://h1:9093"]}'
            ),
            (Endpoint("PLAINTEXT", "h1", 9092, "PLAINTEXT"), Endpoint("SSL", "h1", 9093, "SSL")),
            "dc1",
        ),
        (
            (
                '{"features":{},"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},'
                '"endpoints":["PLAINTEXT://ubuntu:9092"],"jmx_port":-1,"port":9092,"host":"ubuntu",'
                '"version":5,"timestamp":"1612"}'
            ),
            (Endpoint("PLAINTEXT", "ubuntu", 9092, "PLAINTEXT"),),
            None,
        ),
    ],
)
def test_brokers_of_all_ages_are_read(
    text: str, endpoints: tuple[Endpoint, ...], rack: str | None
) -> None:
    """Versions 1 to 5 of a registration; the broker epoch is the znode's czxid."""
    decoded = BrokerZnode(2).decode(text.encode(), epoch=17)
    assert decoded == BrokerRegistration(2, endpoints, rack, 17)


def test_a_topic_is_written_in_version_3() -> None:
    """Assignments and what a reassignment adds and removes, by partition number as text."""
    assignment = TopicAssignment(
        TOPIC_ID,
        {0: ReplicaAssignment((1, 2)), 1: ReplicaAssignment((2, 3, 1), (3,), (1,))},
    )
    znode = TopicZnode("orders")
    data = znode.encode(assignment)
    assert parsed(data) == {
        "version": 3,
        "topic_id": "9kGS9sbSQ0eRKIYI4JWbnw",
        "partitions": {"0": [1, 2], "1": [2, 3, 1]},
        "adding_replicas": {"1": [3]},
        "removing_replicas": {"1": [1]},
    }
    assert znode.decode(data) == assignment
    assert (znode.path, znode.partitions_path) == (
        "/brokers/topics/orders",
        "/brokers/topics/orders/partitions",
    )


def test_a_topic_from_before_topic_ids_is_read() -> None:
    """Versions 1 and 2 have no id; partitions come in the order of their numbers."""
    text = b'{"version":1,"partitions":{"10":[1],"9":[2]}}'
    decoded = TopicZnode("t").decode(text)
    assert decoded.id is None
    assert list(decoded.partitions) == [9, 10]
    assert "topic_id" not in parsed(TopicZnode.encode(decoded))


def test_a_partition_state_is_what_apache_writes() -> None:
    """Read from a real znode and written again; recovery is noted only where it is unusual."""
    text = b'{"controller_epoch":19,"leader":1,"version":1,"leader_epoch":3,"isr":[1,0]}'
    znode = PartitionStateZnode("t", 4)
    state = znode.decode(text)
    assert state == LeaderAndIsr(1, 3, (1, 0), 19)
    assert znode.encode(state) == text
    assert znode.path == "/brokers/topics/t/partitions/4/state"
    unclean = LeaderAndIsr(1, 4, (1,), 19, recovering=True)
    assert parsed(znode.encode(unclean))["leader_recovery_state"] == 1
    assert znode.decode(znode.encode(unclean)) == unclean


def test_settings_and_their_notification() -> None:
    """Topics, single brokers and all brokers; the notification names the entity by its path."""
    topic = ConfigZnode.for_topic("orders")
    data = topic.encode({"retention.ms": "1"})
    assert parsed(data) == {"version": 1, "config": {"retention.ms": "1"}}
    assert topic.decode(data) == {"retention.ms": "1"}
    assert topic.decode(None) == {}
    assert topic.path == "/config/topics/orders"
    assert ConfigZnode.for_broker("3").path == "/config/brokers/3"
    assert ConfigZnode.for_broker("").path == "/config/brokers/<default>"
    assert parsed(ConfigChangeZnode.encode(topic)) == {"version": 2, "entity_path": "topics/orders"}
    assert ConfigChangeZnode.PREFIX == "/config/changes/config_change_"


def test_identity_controller_and_producer_ids() -> None:
    """The single znodes, with the types Kafka gives to numbers and versions."""
    assert parsed(ClusterIdZnode.encode("abc")) == {"version": "1", "id": "abc"}
    assert ClusterIdZnode.decode(b'{"version":"1","id":"abc"}') == "abc"
    assert parsed(ControllerZnode.encode(5, now_ms=9)) == {
        "version": 2,
        "brokerid": 5,
        "timestamp": "9",
        "kraftControllerEpoch": -1,
    }
    assert ControllerZnode.decode(b'{"version":1,"brokerid":5,"timestamp":"9"}') == 5
    assert ControllerEpochZnode.encode(12) == b"12"
    assert ControllerEpochZnode.decode(b"12") == 12
    block = ProducerIdBlock(1, 3000, 3999)
    assert parsed(ProducerIdBlockZnode.encode(block)) == {
        "version": 1,
        "broker": 1,
        "block_start": "3000",
        "block_end": "3999",
    }
    assert ProducerIdBlockZnode.decode(ProducerIdBlockZnode.encode(block)) == block
    assert ProducerIdBlockZnode.decode(None).last + 1 == 0
    assert parsed(FeatureZnode().encode()) == {"version": 2, "status": 1, "features": {}}
    assert DeleteTopicZnode("t").path == "/admin/delete_topics/t"


@pytest.mark.parametrize(
    "decode",
    [
        BrokerZnode(1).decode,
        TopicZnode("t").decode,
        PartitionStateZnode("t", 0).decode,
        ConfigZnode.for_topic("t").decode,
        ClusterIdZnode.decode,
        ControllerZnode.decode,
        ControllerEpochZnode.decode,
        ProducerIdBlockZnode.decode,
    ],
)
@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'"x"', b'{"config":1}', b"\xff"])
def test_nonsense_is_refused_with_the_path(decode: Callable[[bytes], object], data: bytes) -> None:
    """Whoever writes something else into a znode of Kafka's is told where."""
    with pytest.raises(MalformedZnodeError, match=r"^znode /"):
        decode(data)


def test_the_persistent_paths_are_those_of_apache() -> None:
    """An Apache broker expects to find these, and so do its tools."""
    assert set(PERSISTENT_PATHS) == {
        "/consumers",
        "/brokers/ids",
        "/brokers/topics",
        "/brokers/seqid",
        "/config/changes",
        "/config/topics",
        "/config/brokers",
        "/config/users",
        "/config/clients",
        "/config/ips",
        "/admin/delete_topics",
        "/isr_change_notification",
        "/log_dir_event_notification",
        "/latest_producer_id_block",
    }


def test_topic_ids_are_shown_as_kafka_shows_them() -> None:
    """The id of a topic is 22 characters of URL-safe base64 of its 16 bytes."""
    assert UUID("f64192f6-c6d2-4347-9128-8608e0959b9f") == TOPIC_ID


def test_isr_change_notifications_name_partitions() -> None:
    """As Apache's brokers before 2.7-IV2 tell the controller."""
    data = b'{"version":1,"partitions":[{"topic":"t","partition":0},{"topic":"u","partition":3}]}'
    partitions = (TopicPartition("t", 0), TopicPartition("u", 3))
    assert IsrChangeZnode.encode(partitions) == data
    assert (
        IsrChangeZnode.decode("/isr_change_notification/isr_change_0000000001", data) == partitions
    )
    with pytest.raises(MalformedZnodeError, match="isr_change_1"):
        IsrChangeZnode.decode("isr_change_1", b'{"version":1}')


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/consumers", Protection.NONE),
        ("/consumers/group", Protection.READABLE),
        ("/", Protection.READABLE),
        ("/brokers/ids/1", Protection.READABLE),
        ("/config/topics/t", Protection.READABLE),
        ("/config/users", Protection.PRIVATE),
        ("/config/users/alice", Protection.PRIVATE),
        ("/config/brokers/<default>", Protection.PRIVATE),
        ("/config/brokers-of-old", Protection.PRIVATE),
        ("/delegation_token", Protection.READABLE),
        ("/delegation_token/tokens/id", Protection.PRIVATE),
    ],
)
def test_znode_acls_protect_secrets(path: str, expected: Protection) -> None:
    """Secrets are for their creator, and /consumers itself is for everybody."""
    assert protection(path) is expected
