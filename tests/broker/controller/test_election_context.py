"""Leaders for the partitions of a topic, as operations on its znodes."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from barnabas_broker.controller.election_context import ElectionContext, in_question, lead_topic
from barnabas_broker.controller.elections import LiveBrokers
from barnabas_broker.controller.loading import load_existing, load_topic, load_topics
from barnabas_broker.controller.startup import make_parents
from barnabas_broker.zk.embedded import EmbeddedStore
from barnabas_broker.zk.store import Create
from barnabas_broker.zk.znodes import ConfigZnode

UNCLEAN = {"unclean.leader.election.enable": "true"}


@pytest.fixture
def store(tmp_path: Path) -> EmbeddedStore:
    """A store with a topic of two partitions, written as old tools do."""
    opened = EmbeddedStore.open(tmp_path, now_ms=1)
    make_parents(opened, now_ms=1)
    data = b'{"version":1,"partitions":{"0":[1,2],"1":[3]}}'
    config = ConfigZnode.for_topic("t")
    opened.commit(
        [Create("/brokers/topics/t", data), Create(config.path, config.encode(UNCLEAN))], now_ms=1
    )
    return opened


def lead(
    store: EmbeddedStore,
    brokers: set[int],
    *,
    restarted: frozenset[int] = frozenset(),
    registered: dict[int, int] | None = None,
) -> list[int]:
    """Have leaders elected; gives them."""
    leading = ElectionContext(
        LiveBrokers(brokers, restarted=restarted),
        4,
        Random(1),
        lambda config: config == UNCLEAN,
        registered or {},
    )
    topic = load_topics(store, ["t"])["t"]
    existing = load_existing(store, in_question(topic))
    store.commit(lead_topic(topic, leading, existing=existing), now_ms=1)
    return [state.leader for state in load_topic(store, "t").partitions]


def test_partitions_start_from_the_replicas_that_are_alive(store: EmbeddedStore) -> None:
    """One without any waits until there is one; the topic gets its id."""
    assert lead(store, {1}) == [1, -1]
    topic = load_topic(store, "t")
    assert topic.id.int != 0
    assert (topic.partitions[0].isr, topic.partitions[0].controller_epoch) == ((1,), 4)
    assert lead(store, {1, 3}) == [1, 3]
    assert load_topic(store, "t").id == topic.id


def test_settings_decide_whether_any_replica_may_lead(store: EmbeddedStore) -> None:
    """They are read where nobody in sync is alive."""
    assert lead(store, {1}) == [1, -1]
    assert lead(store, {2}) == [2, -1]
    assert load_topic(store, "t").partitions[0].recovering


def test_nothing_is_written_where_all_is_in_order(store: EmbeddedStore) -> None:
    """Unless the leader has just been started."""
    lead(store, {1, 2, 3})
    version = load_topic(store, "t").partitions[0].partition_epoch
    lead(store, {1, 2, 3})
    assert load_topic(store, "t").partitions[0].partition_epoch == version
    lead(store, {1, 2, 3}, restarted=frozenset({1}))
    assert load_topic(store, "t").partitions[0].leader_epoch == 1


def test_a_registration_after_the_last_election_is_a_restart(
    store: EmbeddedStore,
) -> None:
    """A new controller sees it by the transactions, although it never saw the broker go."""
    lead(store, {1, 3})
    (state, _) = load_topic(store, "t").partitions
    written = store.get("/brokers/topics/t/partitions/0/state")[1].mzxid
    lead(store, {1, 3}, registered={1: written - 1, 3: 1})
    assert load_topic(store, "t").partitions[0] == state
    lead(store, {1, 3}, registered={1: written + 1, 3: 1})
    assert load_topic(store, "t").partitions[0].leader_epoch == state.leader_epoch + 1
