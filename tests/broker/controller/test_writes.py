"""Decisions as znode operations."""

from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock
from uuid import UUID

import pytest

from barnabas_broker.controller import writes
from barnabas_broker.controller.loading import load_topic, load_topic_znodes
from barnabas_broker.controller.steps import Steps
from barnabas_broker.controller.topic_znodes import (
    create_topic,
    delete_topic,
    first_states,
    grow_topic,
)
from barnabas_broker.zk.embedded import EmbeddedStore
from barnabas_broker.zk.store import CoordinationError, Create, Delete, SetData
from barnabas_broker.zk.znodes import ConfigChangeZnode, ConfigZnode
from barnabas_kafka.errors import ErrorCode, KafkaError


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EmbeddedStore]:
    """A store with the parents of topics, settings and deletions."""
    store = EmbeddedStore.open(tmp_path, now_ms=1)
    parents = ["/brokers/topics", "/config/topics", "/config/changes", "/admin/delete_topics"]
    store.commit(writes.missing_parents(store, parents), now_ms=1)
    yield store
    store.close()


def test_only_missing_znodes_are_made_parents_first(store: EmbeddedStore) -> None:
    """Shared parents once."""
    operations = writes.missing_parents(store, ["/brokers/ids", "/x/y/z", "/x/y"])
    assert operations == [Create("/brokers/ids"), Create("/x"), Create("/x/y"), Create("/x/y/z")]


def test_putting_creates_or_replaces(store: EmbeddedStore) -> None:
    """As the znode is there or not."""
    assert writes.put(store, "/brokers", b"x") == SetData("/brokers", b"x")
    assert writes.put(store, "/new", b"x") == Create("/new", b"x")


def test_a_topic_is_created_grown_and_deleted_without_a_trace(store: EmbeddedStore) -> None:
    """Settings left behind by somebody are replaced; tools' znodes below a topic go with it."""
    store.commit([Create("/config/topics/t", b"old")], now_ms=1)
    states = first_states([(1, 2), (2, 1)], controller_epoch=3)
    created = create_topic("t", UUID(int=6), states=states, config={"a": "b"}, configured=True)
    store.commit(created, now_ms=1)
    topic = load_topic(store, "t")
    assert [each.leader for each in topic.partitions] == [1, 2]
    assert topic.config == {"a": "b"}
    added = first_states([(2, 1)], controller_epoch=4)
    store.commit(grow_topic(topic, added), now_ms=1)
    grown = load_topic(store, "t")
    assert (grown.id, grown.partitions[:2]) == (topic.id, topic.partitions)
    assert grown.partitions[2].controller_epoch == 4
    store.commit([Create("/brokers/topics/t/partitions/0/mine", b"?")], now_ms=1)
    operations = delete_topic("t", load_topic_znodes(store, "t"))
    assert operations[0] == Create("/admin/delete_topics/t")
    assert operations[1] == Delete("/brokers/topics/t/partitions/0/mine")
    store.commit(operations, now_ms=1)
    assert store.children("/brokers/topics") == store.children("/config/topics") == []
    assert store.children("/admin/delete_topics") == ["t"]


def test_a_deletion_asks_as_often_however_many_partitions_there_are(store: EmbeddedStore) -> None:
    """The controller does nothing else meanwhile, and ZooKeeper may be milliseconds away."""
    asked = []
    for name, partitions in (("small", 1), ("large", 400)):
        states = first_states([(1,)] * partitions, controller_epoch=3)
        created = create_topic(name, UUID(int=6), states=states, config={}, configured=False)
        store.commit(created, now_ms=1)
        watched = Mock(wraps=store)
        operations = delete_topic(name, load_topic_znodes(watched, name))
        asked.append(len(watched.mock_calls))
        assert len(operations) == len(created) + 1
    assert asked[0] == asked[1]


def test_a_change_of_settings_asks_as_often_after_many_others(store: EmbeddedStore) -> None:
    """Those of the last quarter of an hour are still announced: they are not all looked at."""
    asked = []
    for _ in range(30):
        watched = Mock(wraps=store)
        changes = writes.change_config(watched, ConfigZnode.for_topic("t"), {}, now_ms=1)
        asked.append(len(watched.mock_calls))
        store.commit(changes, now_ms=1)
        (read,) = watched.get_many.call_args.args
        assert len(read) <= writes.NOTIFICATIONS_READ
    assert {*asked} == {asked[0]}


def test_old_notifications_go_as_fast_as_new_ones_come(store: EmbeddedStore) -> None:
    """However many settings a transaction changes: what is never read again must not pile up."""
    topics: dict[ConfigZnode, dict[str, str]]
    topics = {ConfigZnode.for_topic(f"t{number}"): {} for number in range(50)}
    for change in range(5):
        now_ms = 1 + change * (writes.CHANGE_NOTIFICATION_TTL_MS + 1)
        store.commit(writes.change_configs(store, topics, now_ms=now_ms), now_ms=now_ms)
        assert len(store.children(ConfigChangeZnode.ROOT)) == len(topics)
    now_ms += writes.CHANGE_NOTIFICATION_TTL_MS + 1
    for _ in range(30):
        change_of_one = writes.change_config(store, ConfigZnode.for_topic("t"), {}, now_ms=now_ms)
        store.commit(change_of_one, now_ms=now_ms)
    assert len(store.children(ConfigChangeZnode.ROOT)) == 30


def fail(error: Exception) -> None:
    """A step that does."""
    raise error


def test_a_step_that_fails_does_not_end_the_rest() -> None:
    """The first failure is kept for whoever retries."""
    done: list[str] = []
    steps = Steps()
    steps.take("brokers", lambda: fail(ValueError("first")))
    steps.take("topics", lambda: fail(KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)))
    steps.take("moves", lambda: done.append("moves"))
    assert done == ["moves"]
    with pytest.raises(ValueError, match="first"):
        steps.raise_first()
    Steps().raise_first()


@pytest.mark.parametrize("error", [CoordinationError("away"), KafkaError(ErrorCode.NOT_CONTROLLER)])
def test_fatal_errors_end_all_steps(error: Exception) -> None:
    """Without a connection, or under another controller, no step is taken any more."""
    with pytest.raises(type(error)):
        Steps().take("brokers", lambda: fail(error))
