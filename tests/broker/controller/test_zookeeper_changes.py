"""What the controller makes of writes by others, on a real store that others write to."""

from dataclasses import replace
from pathlib import Path

import pytest

from barnabas_broker.cluster.image import DEFAULT_BROKER, BrokerRegistration
from barnabas_broker.controller.registrations import is_other, unclean_shutdowns
from barnabas_broker.controller.topics import NewTopic
from barnabas_broker.zk.store import Create, Delete, Operation, SetData
from barnabas_broker.zk.znodes import BrokerZnode
from barnabas_kafka.settings import broker as keys
from tests.broker.controller.embedded import BROKER_ID, NOW_MS, Embedded
from tests.broker.controller.ensemble import Cluster

OLD_TOPIC = b'{"version":1,"partitions":{"0":[1],"1":[1]}}'


@pytest.fixture
def embedded(tmp_path: Path) -> Embedded:
    """A controller without topics."""
    return Embedded(tmp_path)


def somebody_writes(embedded: Embedded, *operations: Operation) -> None:
    """Others write, and the controller hears of it."""
    embedded.store.commit(operations, now_ms=NOW_MS)
    paths = {above for each in operations for above in (each.path, each.path.rpartition("/")[0])}
    embedded.controller.catch_up(paths, now_ms=NOW_MS)


def test_a_topic_of_an_old_tool(embedded: Embedded) -> None:
    """It gets an id, partitions, and leaders."""
    somebody_writes(embedded, Create("/brokers/topics/t", OLD_TOPIC))
    topic = embedded.image.topics["t"]
    assert topic.id.int != 0
    assert [each.leader for each in topic.partitions] == [BROKER_ID, BROKER_ID]
    before = embedded.image
    embedded.controller.catch_up(None, now_ms=NOW_MS)
    assert embedded.image is before


def test_a_topic_that_grows(embedded: Embedded) -> None:
    """Only the added partitions are new; the others keep leader and epoch."""
    somebody_writes(embedded, Create("/brokers/topics/t", OLD_TOPIC))
    first = embedded.image.topics["t"].partitions
    grown = OLD_TOPIC.replace(b'"1":[1]', b'"1":[1],"2":[1]')
    somebody_writes(embedded, SetData("/brokers/topics/t", grown))
    partitions = embedded.image.topics["t"].partitions
    assert partitions[:2] == first
    assert partitions[2].leader == BROKER_ID


def test_replicas_that_are_nowhere(embedded: Embedded) -> None:
    """A partition leads from those that are alive, and waits where none is."""
    data = b'{"version":1,"partitions":{"0":[7,1],"1":[7]}}'
    somebody_writes(embedded, Create("/brokers/topics/t", data))
    first, second = embedded.image.topics["t"].partitions
    assert (first.leader, first.isr) == (BROKER_ID, (BROKER_ID,))
    assert (second.leader, second.isr) == (-1, ())


def test_a_mark_for_deletion(embedded: Embedded) -> None:
    """The topic goes with all its znodes, and so does a mark for a topic that there is not."""
    embedded.create("t")
    somebody_writes(embedded, Create("/admin/delete_topics/t"), Create("/admin/delete_topics/x"))
    assert embedded.image.topics == {}
    assert embedded.store.children("/brokers/topics") == []
    assert embedded.store.children("/admin/delete_topics") == []


def test_a_mark_where_nothing_may_be_deleted(tmp_path: Path) -> None:
    """The mark goes, the topic stays."""
    embedded = Embedded(tmp_path, {"delete.topic.enable": "false"})
    embedded.create("t")
    somebody_writes(embedded, Create("/admin/delete_topics/t"))
    assert list(embedded.image.topics) == ["t"]
    assert embedded.store.children("/admin/delete_topics") == []


@pytest.mark.parametrize(
    "change",
    [
        b'{"version":2,"entity_path":"topics/t"}',
        b'{"version":1,"entity_type":"topics","entity_name":"t"}',
    ],
)
def test_settings_of_a_topic(embedded: Embedded, change: bytes) -> None:
    """Read again when a notification names the topic, in either of its forms."""
    embedded.create("t")
    config = b'{"version":1,"config":{"retention.ms":"7"}}'
    embedded.store.commit([SetData("/config/topics/t", config)], now_ms=NOW_MS)
    notice = Create("/config/changes/config_change_", change, sequential=True)
    somebody_writes(embedded, notice)
    assert embedded.image.topics["t"].config == {"retention.ms": "7"}


def test_settings_of_all_brokers(embedded: Embedded) -> None:
    """They apply at once."""
    config = b'{"version":1,"config":{"log.retention.ms":"7"}}'
    notice = b'{"version":2,"entity_path":"brokers/<default>"}'
    somebody_writes(
        embedded,
        Create("/config/brokers/<default>", config),
        Create("/config/changes/config_change_", notice, sequential=True),
    )
    assert embedded.image.broker_configs[DEFAULT_BROKER] == {"log.retention.ms": "7"}
    assert embedded.controller.settings[keys.LOG_RETENTION_MS] == 7


def test_unreadable_topics_are_logged_and_skipped(
    embedded: Embedded, caplog: pytest.LogCaptureFixture
) -> None:
    """It is told and left; the rest is read."""
    somebody_writes(
        embedded,
        Create("/brokers/topics/a", b"[]"),
        Create("/brokers/topics/t", OLD_TOPIC),
        Create("/config/changes/config_change_", b"?", sequential=True),
    )
    assert list(embedded.image.topics) == ["t"]
    assert "/brokers/topics/a" in caplog.text
    assert "Change notification ignored" in caplog.text


def test_a_topic_without_its_znode_is_served_until_a_restart(
    embedded: Embedded, caplog: pytest.LogCaptureFixture
) -> None:
    """A slip with the ensemble deletes no records: the topic is served until a restart."""
    embedded.create("t")
    store = embedded.store
    below = [f"/brokers/topics/t/partitions{rest}" for rest in ("/0/state", "/0", "")]
    somebody_writes(embedded, *(Delete(path) for path in (*below, "/brokers/topics/t")))
    embedded.controller.catch_up(None, now_ms=NOW_MS)
    assert list(embedded.image.topics) == ["t"]
    assert caplog.text.count("Topic znode missing: topic=t") == 1
    assert store.exists("/brokers/topics/t") is None


def test_an_office_that_was_lost(embedded: Embedded) -> None:
    """Registration and office are taken again, in the next epoch; leaders stay who they are."""
    embedded.create("t")
    before = embedded.image.topics["t"]
    somebody_writes(embedded, Delete("/controller"), Delete(f"/brokers/ids/{BROKER_ID}"))
    assert embedded.store.get("/controller_epoch")[0] == b"2"
    assert embedded.store.exists(f"/brokers/ids/{BROKER_ID}") is not None
    assert embedded.image.topics["t"] is before
    (created,) = embedded.create("after")
    assert created.outcome.granted


BROKER = BrokerRegistration(1, (), epoch=7)


def test_registrations_that_differ() -> None:
    """All but that it has caught up."""
    unclean = replace(BROKER, unclean=True)
    assert not is_other(unclean, BROKER)
    assert is_other(None, BROKER)
    assert is_other(BROKER, replace(BROKER, epoch=8))
    assert unclean_shutdowns({1: unclean, 2: replace(BROKER, id=2)}) == {1}


def test_an_unreadable_registration_is_an_offline_broker() -> None:
    """Its broker counts as away until it has written it again, and elections go on."""
    cluster = Cluster(4)
    cluster.create(NewTopic(name="t", assignments=[(0, (2, 4)), (1, (3, 4))]))
    cluster.ensemble.commit([SetData(BrokerZnode(3).path, b"{")])
    cluster.kill(2)
    image = cluster.active_controller.image
    assert [each.leader for each in image.topics["t"].partitions] == [4, 4]
    assert sorted(image.brokers) == [1, 4]
    cluster.controllers[3].catch_up(None, now_ms=NOW_MS)
    cluster.kill(4)
    assert sorted(cluster.image.brokers) == [1, 3]
