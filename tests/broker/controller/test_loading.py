"""Reading the cluster out of a store that others have written to."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from barnabas_broker.controller.loading import (
    load_broker_configs,
    load_config,
    load_partition_states,
    load_topic,
    load_topics,
)
from barnabas_broker.zk.embedded import EmbeddedStore
from barnabas_broker.zk.store import Create, SetData, Stat
from barnabas_broker.zk.znodes import ConfigZnode, MalformedZnodeError
from barnabas_kafka.ids import ZERO_UUID
from barnabas_zookeeper.errors import NoNodeError

STATE = b'{"controller_epoch":4,"leader":2,"version":1,"leader_epoch":7,"isr":[2]}'


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EmbeddedStore]:
    """A store with a topic that has a state for one of two partitions."""
    store = EmbeddedStore.open(tmp_path, now_ms=1)
    topic = b'{"version":2,"partitions":{"0":[2,1],"1":[1]},"adding_replicas":{"0":[2]}}'
    paths = ("/brokers", "/brokers/topics", "/config", "/config/brokers", "/config/topics")
    store.commit([Create(path) for path in paths], now_ms=1)
    partitions = "/brokers/topics/t/partitions"
    store.commit(
        [
            Create("/brokers/topics/t", topic),
            Create(partitions),
            Create(f"{partitions}/0"),
            Create(f"{partitions}/0/state", STATE),
            SetData(f"{partitions}/0/state", STATE),
            Create("/config/topics/t", b'{"version":1,"config":{"flush.ms":"1"}}'),
            Create("/config/brokers/<default>", b'{"version":1,"config":{"a":"b"}}'),
            Create("/config/brokers/3"),
        ],
        now_ms=1,
    )
    yield store
    store.close()


def test_a_topic_is_put_together_from_its_znodes(store: EmbeddedStore) -> None:
    """Assignment, states and settings; a partition that was never led has no leader."""
    topic = load_topic(store, "t")
    assert (topic.id, topic.config) == (ZERO_UUID, {"flush.ms": "1"})
    led, waiting = topic.partitions
    assert (led.replicas, led.adding, led.leader, led.leader_epoch) == ((2, 1), (2,), 2, 7)
    assert led.partition_epoch == 1
    assert (waiting.replicas, waiting.leader, waiting.isr) == ((1,), -1, ())


def test_a_missing_topic_is_an_error_but_missing_states_are_not(store: EmbeddedStore) -> None:
    """A missing topic is an error, missing states and settings are not."""
    with pytest.raises(NoNodeError):
        load_topic(store, "none")
    assert load_partition_states(store, "t", [1]) == {1: None}
    assert load_config(store, ConfigZnode.for_topic("none")) == {}


def test_broker_settings_by_broker(store: EmbeddedStore) -> None:
    """Those for all brokers have the empty name in an image."""
    assert load_broker_configs(store) == {"": {"a": "b"}, "3": {}}


def test_nonsense_names_its_znode(store: EmbeddedStore) -> None:
    """An operator can then look at it."""
    store.commit([SetData("/brokers/topics/t", b"?")], now_ms=1)
    with pytest.raises(MalformedZnodeError, match="/brokers/topics/t"):
        load_topic(store, "t")


def test_many_topics_are_read_in_three_rounds(
    store: EmbeddedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever takes over waits for the ensemble as often for a thousand topics as for one."""
    data = b'{"version":1,"partitions":{"0":[1],"1":[1]}}'
    names = [f"t{number}" for number in range(50)]
    store.commit([Create(f"/brokers/topics/{name}", data) for name in names], now_ms=1)
    rounds: list[int] = []
    read = store.get_many

    def counted(paths: Sequence[str]) -> list[tuple[bytes | None, Stat] | None]:
        rounds.append(len(paths))
        return read(paths)

    monkeypatch.setattr(store, "get_many", counted)
    found = load_topics(store, ["t", "none", *names])
    assert (list(found), rounds) == (["t", *names], [52, 102, 51])
    assert found["t"].config == {"flush.ms": "1"}
    assert found["t49"].states == {0: None, 1: None}


@pytest.mark.parametrize(
    "path", ["/brokers/topics/t", "/brokers/topics/t/partitions/0/state", "/config/topics/t"]
)
def test_an_unreadable_znode_does_not_fail_the_others(store: EmbeddedStore, path: str) -> None:
    """Whatever of it that is; who asked is told."""
    store.commit(
        [
            SetData(path, b"?"),
            Create("/brokers/topics/u", b'{"version":1,"partitions":{"0":[1]}}'),
        ],
        now_ms=1,
    )
    reported: list[str] = []
    found = load_topics(store, ["t", "u"], on_malformed=lambda error: reported.append(str(error)))
    assert list(found) == ["u"]
    assert [path in line for line in reported] == [True]
