"""The port on a Kafka cluster, on a real broker."""

from __future__ import annotations

import pytest

from barnabas_broker.testing import Broker
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import uuid_from_base64, uuid_to_base64
from barnabas_kafka.protocol.messages.create_topics import CreateTopicsResponse
from barnabas_kafka.protocol.schema import Request, Response
from barnabas_operator import brokers as port
from barnabas_operator.brokers import AdminBrokers, BrokersError
from barnabas_operator.plan.topics import AlterConfig, CreateTopic, GrowPartitions, TopicView
from tests.kafka.client.fake_cluster import FakeBroker, FakeCluster, created, in_a_thread
from tests.waiting import wait_for

ONE = CreateTopic(partitions=1, replicas=1, config={})


@pytest.fixture
def brokers(kafka_broker: Broker) -> AdminBrokers:
    """The port on the session's broker."""
    return AdminBrokers(kafka_broker.bootstrap_servers)


def test_the_cluster_returns_its_id_and_brokers(brokers: AdminBrokers) -> None:
    """Id and brokers."""
    view = brokers.describe()
    assert len(view.cluster_id) == 22
    assert len(view.broker_ids) == 1
    assert view.out_of_sync == frozenset()


def test_brokers_say_what_they_advertise(brokers: AdminBrokers) -> None:
    """One that is not there is left out."""
    (broker,) = brokers.describe().broker_ids
    reported = brokers.advertised([broker, broker + 1000])
    assert set(reported) == {broker}
    assert "://" in reported[broker]
    assert brokers.advertised(()) == {}


def test_a_topic_from_beginning_to_end(brokers: AdminBrokers) -> None:
    """Only what was set on the topic itself is its configuration."""
    created = CreateTopic(partitions=1, replicas=1, config={"retention.ms": "5000"})
    assert brokers.create_topics({"port": created}) == {}
    assert "port" in brokers.topic_names()
    assert brokers.grow_partitions({"port": GrowPartitions(before=1, partitions=3)}) == {}
    change = AlterConfig(put={"cleanup.policy": "compact"}, drop=frozenset({"retention.ms"}))
    assert brokers.alter_configs({"port": change}) == {}
    view = brokers.topics({"port", "absent"})["port"]
    assert isinstance(view, TopicView)
    assert (view.partitions, view.replicas) == (3, 1)
    assert view.config == {"cleanup.policy": "compact"}
    assert brokers.delete_topics({"port"}) == {}
    assert "port" not in brokers.topic_names()
    assert brokers.delete_topics({"port"}) == {}
    assert brokers.topics(()) == {}
    assert brokers.topics({"port"}) == {}


def test_an_election_that_is_not_needed_changes_nothing(brokers: AdminBrokers) -> None:
    """Nor is it an error; tests/cluster/test_controller.py has one that is needed."""
    assert brokers.create_topics({"elected": ONE}) == {}
    before = brokers.describe()
    brokers.elect_preferred_leaders()
    assert brokers.describe() == before
    assert before.leaderless == ()


def test_topic_ids_are_shown_as_kafka_shows_them(brokers: AdminBrokers) -> None:
    """Of twenty, some have a character that the client library spells in another way."""
    names = [f"spelt-{number}" for number in range(20)]
    assert brokers.create_topics(dict.fromkeys(names, ONE)) == {}
    found = brokers.topics(names).values()
    ids = [view.topic_id for view in found if isinstance(view, TopicView)]
    assert len(set(ids)) == len(names)
    assert [uuid_to_base64(uuid_from_base64(each)) for each in ids] == ids


def test_a_refusal_concerns_its_topic_alone(brokers: AdminBrokers) -> None:
    """The broker answered, so it is reachable; the other topics of the request are created."""
    assert brokers.create_topics({"twice": ONE}) == {}
    failed = brokers.create_topics({"twice": ONE, "once": ONE})
    (error,) = failed.values()
    assert (error.code, error.reachable) == ("TOPIC_ALREADY_EXISTS", True)
    assert "once" in brokers.topic_names()


def test_a_controller_whose_node_is_gone_does_not_blind_the_operator(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The client that was connected to it goes on: the cluster is described, topics are created.

    The connection to the old controller stays open and answers nothing; the others have elected
    another one.
    """
    monkeypatch.setattr(port, "PROBE_AFTER_S", 0.1)
    monkeypatch.setattr(port, "CONNECT_TIMEOUT_S", 0.5)
    with in_a_thread(FakeCluster(3, answer=created)) as cluster:
        with AdminBrokers(cluster.bootstrap) as brokers:
            assert brokers.create_topics({"before": ONE}) == {}
            cluster.brokers[0].silent = True
            assert brokers.describe().controller_id == 0
            assert "before" in brokers.topic_names()
            cluster.controller = 1
            assert brokers.create_topics({"after": ONE}) == {}
            assert brokers.describe().controller_id == 1
        assert cluster.brokers[1].asked.count("CreateTopics") == 1


def test_an_error_that_passes_is_no_refusal() -> None:
    """The controller was too slow: the topic is tried again, and not Stalled."""

    def slow(broker: FakeBroker, request: Request, version: int) -> Response | None:
        answer = created(broker, request, version)
        for topic in answer.topics if isinstance(answer, CreateTopicsResponse) else ():
            topic.error_code = ErrorCode.REQUEST_TIMED_OUT
        return answer

    fake = in_a_thread(FakeCluster(1, answer=slow))
    with fake as cluster, AdminBrokers(cluster.bootstrap) as brokers:
        (error,) = brokers.create_topics({"slow": ONE}).values()
    assert (error.code, error.reachable) == ("REQUEST_TIMED_OUT", False)


def test_unreachable_brokers_raise_brokers_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client's own errors say that nobody answered."""
    monkeypatch.setattr(port, "TIMEOUT_S", 0.5)
    with pytest.raises(BrokersError) as raised:
        AdminBrokers("127.0.0.1:1").topic_names()
    assert raised.value.reachable is False


def test_a_setting_of_all_brokers_is_set_and_deleted(brokers: AdminBrokers) -> None:
    """The broker has the value at once; what it refuses is named and changes nothing."""
    change = AlterConfig(put={"log.cleaner.backoff.ms": "14000", "num.io.threads": "9"})
    brokers.alter_dynamic_config(change)
    wait_for("the settings", lambda: brokers.dynamic_config().get("num.io.threads") == "9")
    assert brokers.dynamic_config()["log.cleaner.backoff.ms"] == "14000"
    refused = AlterConfig(put={"log.cleaner.backoff.ms": "1", "num.io.threads": "900"})
    with pytest.raises(BrokersError, match=r"900 for configuration num\.io\.threads") as error:
        brokers.alter_dynamic_config(refused)
    assert error.value.reachable
    assert brokers.dynamic_config()["log.cleaner.backoff.ms"] == "14000"
    brokers.alter_dynamic_config(AlterConfig(put={}, drop=frozenset(change.put)))
    wait_for("the deletion", lambda: not change.put.keys() & brokers.dynamic_config().keys())
