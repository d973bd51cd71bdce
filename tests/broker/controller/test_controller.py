"""The controller on a real store: what a user's request makes, and what a restart finds."""

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from random import Random
from uuid import UUID

import pytest

from barnabas_broker.cluster.image import BrokerRegistration, MetadataImage
from barnabas_broker.controller.controller import Controller
from barnabas_broker.controller.requests import Growth
from barnabas_broker.controller.topics import NewTopic
from barnabas_broker.security.principals import ANONYMOUS
from barnabas_broker.zk.embedded import EmbeddedStore
from barnabas_broker.zk.store import CoordinationError, Create, Delete, Operation, SetData
from barnabas_broker.zk.znodes import (
    ControllerEpochZnode,
    DeleteTopicZnode,
    PartitionStateZnode,
    TopicAssignment,
    TopicZnode,
)
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import ZERO_UUID, TopicPartition, uuid_from_base64
from barnabas_kafka.settings.broker import BrokerSettings
from barnabas_zookeeper.tree import Committed
from tests.broker.controller.embedded import BROKER_ID, NOW_MS, PLAIN, SECURE, Embedded


@pytest.fixture
def embedded(tmp_path: Path) -> Embedded:
    """A broker's controller on a new directory."""
    return Embedded(tmp_path)


def test_a_new_directory_gets_an_identity_that_stays(embedded: Embedded) -> None:
    """The cluster id is made once; the broker is registered and is the controller."""
    identity = embedded.image.cluster_id
    assert len(identity) == 22
    assert uuid_from_base64(identity).version == 4
    assert embedded.image.controller_id == BROKER_ID
    registered = embedded.image.brokers[BROKER_ID]
    assert (registered.endpoints, registered.rack) == ((PLAIN, SECURE), "here")
    assert registered.epoch > 0
    embedded.restart()
    assert embedded.image.cluster_id == identity


def test_the_id_in_meta_properties_is_taken_over_and_then_insisted_on(tmp_path: Path) -> None:
    """A directory that an Apache broker wrote keeps its cluster; another's data is refused."""
    store = EmbeddedStore.open(tmp_path, now_ms=NOW_MS)
    settings = BrokerSettings.from_mapping({})
    controller = Controller(store, broker_id=1, settings=settings, random=Random(1))
    assert controller.start(cluster_id="apaches", now_ms=NOW_MS).cluster_id == "apaches"
    controller.close()
    store = EmbeddedStore.open(tmp_path, now_ms=NOW_MS)
    controller = Controller(store, broker_id=1, settings=settings, random=Random(1))
    with pytest.raises(CoordinationError, match="belong to cluster other"):
        controller.start(cluster_id="other", now_ms=NOW_MS)
    controller.close()


def test_topics_survive_a_restart(embedded: Embedded) -> None:
    """Names, ids, partitions and settings come back as they were."""
    embedded.create(
        NewTopic(name="a", num_partitions=3, configs=[("retention.ms", "5")]), NewTopic(name="b")
    )
    before = embedded.image.topics
    embedded.restart()
    after = embedded.image.topics
    assert list(after) == list(before) == ["a", "b"]
    for name, topic in after.items():
        assert (topic.id, topic.config) == (before[name].id, before[name].config)
        assert len(topic.partitions) == len(before[name].partitions)
    assert after["a"].config == {"retention.ms": "5"}
    assert embedded.image.topic_by_id(after["a"].id) == after["a"]


def test_each_start_takes_new_epochs(embedded: Embedded) -> None:
    """Leader and controller epochs only grow, so that nobody mistakes old leadership for new."""
    embedded.create("a")
    first = embedded.image.topics["a"].partitions[0]
    assert (first.leader, first.leader_epoch, first.controller_epoch) == (BROKER_ID, 0, 1)
    embedded.restart()
    second = embedded.image.topics["a"].partitions[0]
    assert (second.leader, second.leader_epoch, second.controller_epoch) == (BROKER_ID, 1, 2)
    assert second.partition_epoch == 1
    assert ControllerEpochZnode.decode(embedded.store.get(ControllerEpochZnode.PATH)[0]) == 2


def test_one_request_creates_what_it_can(embedded: Embedded) -> None:
    """Each topic has an answer of its own, and names collide within a request, too."""
    answers = embedded.create("a.b", "a_b", "a.b", NewTopic(name="c", num_partitions=0), "d")
    assert [(answer.outcome.name, answer.outcome.error) for answer in answers] == [
        ("a.b", ErrorCode.NONE),
        ("a_b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("a.b", ErrorCode.TOPIC_ALREADY_EXISTS),
        ("c", ErrorCode.INVALID_PARTITIONS),
        ("d", ErrorCode.NONE),
    ]
    assert set(embedded.image.topics) == {"a.b", "d"}


def test_validating_changes_nothing(embedded: Embedded) -> None:
    """The answer says what would be, without an id, and the image stays the same object."""
    before = embedded.image
    answer = embedded.create(NewTopic(name="a", num_partitions=2), validate_only=True)[0]
    assert answer.outcome.granted
    assert (answer.num_partitions, answer.replication_factor, answer.id) == (2, 1, ZERO_UUID)
    growth = embedded.controller.create_partitions(
        [Growth("a", 2)], validate_only=True, principal=ANONYMOUS, now_ms=NOW_MS
    )
    assert growth[0].error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert embedded.image is before


def test_settings_that_a_topic_cannot_have_are_refused(embedded: Embedded) -> None:
    """The message names the setting; nothing is created."""
    for config in (("no.such", "1"), ("retention.ms", "soon"), ("cleanup.policy", "keep")):
        answer = embedded.create(NewTopic(name="a", configs=[config]))[0]
        assert answer.outcome.error == ErrorCode.INVALID_CONFIG
        assert config[0] in (answer.outcome.message or "")
    assert "a" not in embedded.image.topics


def test_the_brokers_settings_give_the_counts(tmp_path: Path) -> None:
    """num.partitions applies to topics without a count of their own, made or asked about."""
    embedded = Embedded(tmp_path, {"num.partitions": "5"})
    embedded.create("a")
    embedded.controller.auto_create(["b"], principal=ANONYMOUS, now_ms=NOW_MS)
    assert [len(topic.partitions) for topic in embedded.image.topics.values()] == [5, 5]


def test_internal_topics_are_made_in_their_own_way(tmp_path: Path) -> None:
    """They are compacted and have counts of their own."""
    embedded = Embedded(
        tmp_path,
        {
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "7",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
        },
    )
    names = ["__consumer_offsets", "__transaction_state"]
    answers = embedded.controller.auto_create(names, principal=ANONYMOUS, now_ms=NOW_MS)
    assert all(answer.outcome.granted for answer in answers)
    offsets, transactions = (embedded.image.topics[name] for name in names)
    assert (len(offsets.partitions), len(transactions.partitions)) == (7, 50)
    assert offsets.config["cleanup.policy"] == transactions.config["cleanup.policy"] == "compact"


def test_partitions_are_added(embedded: Embedded) -> None:
    """Existing partitions keep their state, and the topic its id."""
    embedded.create("a")
    before = embedded.image.topics["a"]
    answers = embedded.controller.create_partitions(
        [Growth("a", 3), Growth("b", 2)], principal=ANONYMOUS, now_ms=NOW_MS
    )
    assert [answer.error for answer in answers] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    after = embedded.image.topics["a"]
    assert (after.id, after.partitions[:1]) == (before.id, before.partitions)
    assert [state.leader for state in after.partitions] == [BROKER_ID] * 3
    embedded.restart()
    assert len(embedded.image.topics["a"].partitions) == 3


def test_a_deleted_topic_is_gone_and_may_come_back_as_another(embedded: Embedded) -> None:
    """The name is free at once; the new topic has a new id and epochs from zero (KIP-516)."""
    embedded.create(NewTopic(name="a", configs=[("retention.ms", "5")]))
    first = embedded.image.topics["a"]
    embedded.delete("a")
    assert "a" not in embedded.image.topics
    assert embedded.image.topic_by_id(first.id) is None
    embedded.create("a")
    second = embedded.image.topics["a"]
    assert second.id != first.id
    assert (second.config, second.partitions[0].leader_epoch) == ({}, 0)
    embedded.delete("a")
    embedded.restart()
    assert embedded.image.topics == {}
    assert embedded.store.children(DeleteTopicZnode.ROOT) == []


def test_a_deletion_that_meets_a_full_disk_is_completed_when_there_is_room(
    embedded: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mark is on record, so the topic is gone; its name is free without a restart."""
    embedded.create("a")
    commit = embedded.store.commit

    def full(operations: Sequence[Operation], *, now_ms: int) -> Committed:
        if any(isinstance(each, Delete) for each in operations):
            raise CoordinationError("No space left on device")
        return commit(operations, now_ms=now_ms)

    monkeypatch.setattr(embedded.store, "commit", full)
    embedded.delete("a")
    assert embedded.image.topics == {}
    monkeypatch.undo()
    assert embedded.controller.stale
    embedded.controller.catch_up(None, now_ms=NOW_MS)
    assert embedded.store.children(DeleteTopicZnode.ROOT) == []
    assert embedded.create("a")[0].outcome.granted


def test_deleting_what_does_not_exist_is_an_answer(embedded: Embedded) -> None:
    """Also beside topics that do exist, and for a name that is sent twice."""
    embedded.create("a")
    answers = embedded.controller.delete_topics(
        ["a", "no", "a"], principal=ANONYMOUS, now_ms=NOW_MS
    )
    assert [answer.error for answer in answers] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NONE,
    ]


def test_listeners_see_each_change_once(embedded: Embedded) -> None:
    """They get the image before and after; images are versioned. A deletion has a second one."""
    seen: list[tuple[MetadataImage, MetadataImage]] = []
    embedded.controller.add_listener(lambda old, new: seen.append((old, new)))
    embedded.create("a", "b")
    embedded.delete("a")
    names = [(sorted(old.topics), sorted(new.topics)) for old, new in seen]
    assert names == [([], ["a", "b"]), (["a", "b"], ["b"]), (["b"], ["b"])]
    versions = [image.version for pair in seen for image in pair]
    assert versions == [versions[0] + it for it in (0, 1, 1, 2, 2, 3)]


def test_a_crash_while_logs_are_deleted_is_finished_at_the_next_start(embedded: Embedded) -> None:
    """The topic is gone, its directory is not adopted again, and somebody is told to delete it."""
    embedded.create("a")

    def killed(old: MetadataImage, new: MetadataImage) -> None:
        raise KeyboardInterrupt

    embedded.controller.add_listener(killed)
    with pytest.raises(KeyboardInterrupt):
        embedded.delete("a")
    embedded.restart()
    assert embedded.controller.deleting == {"a"}
    found: dict[TopicPartition, UUID | None] = {TopicPartition("a", 0): None}
    assert embedded.controller.adopt(found, now_ms=NOW_MS) == []
    embedded.controller.finish_deletions(now_ms=NOW_MS)
    embedded.restart()
    assert embedded.controller.deleting == frozenset()


@pytest.mark.parametrize("enabled", [True, False])
def test_a_mark_of_an_old_tool_is_granted_only_where_deletion_is(
    tmp_path: Path, enabled: bool
) -> None:
    """`kafka-topics --zookeeper --delete` only writes a znode; Kafka's controller judges it."""
    embedded = Embedded(tmp_path, {"delete.topic.enable": str(enabled).lower()})
    embedded.create("a")
    embedded.store.commit([Create(DeleteTopicZnode("a").path)], now_ms=NOW_MS)
    embedded.restart()
    assert ("a" in embedded.image.topics) is not enabled
    assert embedded.controller.deleting == ({"a"} if enabled else set())
    if not enabled:
        assert embedded.store.children(DeleteTopicZnode.ROOT) == []


def test_an_apache_directory_is_adopted(
    embedded: Embedded, caplog: pytest.LogCaptureFixture
) -> None:
    """Topics keep the ids on disk; leader epochs go on above those in the logs."""
    orders, old = UUID(int=77), "from-before-ids"
    found: dict[TopicPartition, UUID | None] = {
        TopicPartition("orders", 0): None,
        TopicPartition("orders", 2): orders,
        TopicPartition(old, 0): None,
    }
    epochs = {TopicPartition("orders", 2): 41}
    with caplog.at_level(logging.WARNING):
        names = embedded.controller.adopt(found, epochs=epochs, now_ms=NOW_MS)
    assert sorted(names) == [old, "orders"]
    assert "No log found: topic=orders partitions=1" in caplog.text
    topic = embedded.image.topics["orders"]
    assert topic.id == orders
    assert [state.leader_epoch for state in topic.partitions] == [0, 0, 42]
    assert {state.leader for state in topic.partitions} == {BROKER_ID}
    assert embedded.image.topics[old].id not in (ZERO_UUID, orders)
    embedded.restart()
    assert embedded.image.topics["orders"].id == orders
    assert embedded.controller.adopt(found, epochs=epochs, now_ms=NOW_MS) == []


def test_partitions_that_an_apache_broker_added_are_adopted(embedded: Embedded) -> None:
    """A directory may have been lent to an Apache broker and come back with more."""
    embedded.create("a")
    topic = embedded.image.topics["a"]
    found: dict[TopicPartition, UUID | None] = {
        TopicPartition("a", 0): topic.id,
        TopicPartition("a", 1): topic.id,
    }
    assert embedded.controller.adopt(found, now_ms=NOW_MS) == ["a"]
    assert embedded.image.topics["a"].id == topic.id
    assert len(embedded.image.topics["a"].partitions) == 2


def test_topics_written_by_old_tools_get_what_they_lack(embedded: Embedded) -> None:
    """`kafka-topics --zookeeper --create` writes assignments; ids and states are added here."""
    assignment = b'{"version":1,"partitions":{"0":[1],"1":[1]}}'
    embedded.store.commit([Create("/brokers/topics/a", assignment)], now_ms=NOW_MS)
    embedded.restart()
    topic = embedded.image.topics["a"]
    assert topic.id != ZERO_UUID
    assert [(state.leader, state.leader_epoch) for state in topic.partitions] == [(1, 0), (1, 0)]
    stored = TopicZnode("a").decode(embedded.store.get(TopicZnode("a").path)[0])
    assert isinstance(stored, TopicAssignment)
    assert stored.id == topic.id


def test_partitions_of_other_brokers_wait_for_them(embedded: Embedded) -> None:
    """A partition whose replicas are elsewhere has no leader here."""
    embedded.create("a")
    znode = TopicZnode("a")
    elsewhere = b'{"version":3,"partitions":{"0":[9]},"topic_id":"9kGS9sbSQ0eRKIYI4JWbnw"}'
    state = PartitionStateZnode("a", 0)
    nine = b'{"controller_epoch":1,"leader":9,"version":1,"leader_epoch":3,"isr":[9]}'
    embedded.store.commit([SetData(znode.path, elsewhere), SetData(state.path, nine)], now_ms=1)
    embedded.restart()
    partition = embedded.image.topics["a"].partitions[0]
    assert (partition.leader, partition.isr, partition.leader_epoch) == (-1, (9,), 4)


def test_registering_again_replaces_the_endpoints(embedded: Embedded) -> None:
    """A listener that moved is advertised where it is now."""
    embedded.controller.register(BrokerRegistration(BROKER_ID, (PLAIN,)), now_ms=NOW_MS)
    assert embedded.image.brokers[BROKER_ID].endpoints == (PLAIN,)


def test_a_full_disk_is_an_answer_and_changes_nothing(
    embedded: Embedded, caplog: pytest.LogCaptureFixture
) -> None:
    """The client is told, the log says why, and the image keeps to what is on disk."""
    embedded.create("a")
    before = embedded.image
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, embedded.store._descriptor)
    os.close(full)
    created = embedded.create("b", "a")
    assert [answer.outcome.error for answer in created] == [
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.TOPIC_ALREADY_EXISTS,
    ]
    deleted = embedded.controller.delete_topics(["a"], principal=ANONYMOUS, now_ms=NOW_MS)
    grown = embedded.controller.create_partitions(
        [Growth("a", 2)], principal=ANONYMOUS, now_ms=NOW_MS
    )
    assert [answer.error for answer in (*deleted, *grown)] == [ErrorCode.UNKNOWN_SERVER_ERROR] * 2
    assert embedded.image is before
    assert "No space left on device" in caplog.text


def test_a_stray_znode_refuses_its_topic_only(embedded: Embedded) -> None:
    """Topics of the same request are created and grown: each has a transaction of its own."""
    stray = b'{"version":1,"partitions":{"0":[1]}}'
    embedded.store.commit([Create("/brokers/topics/b", stray)], now_ms=NOW_MS)
    created = embedded.create("a", "b", "c")
    assert [it.outcome.error.name for it in created] == ["NONE", "TOPIC_ALREADY_EXISTS", "NONE"]
    assert {"a", "c"} <= set(embedded.image.topics)
    embedded.create("d")
    extra = "/brokers/topics/a/partitions/1"
    embedded.store.commit([Create(extra)], now_ms=NOW_MS)
    growths = [Growth("a", 2), Growth("c", 2)]
    grown = embedded.controller.create_partitions(growths, principal=ANONYMOUS, now_ms=NOW_MS)
    assert [it.granted for it in grown] == [False, True]
    assert len(embedded.image.topics["c"].partitions) == 2
