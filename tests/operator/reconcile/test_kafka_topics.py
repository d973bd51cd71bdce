"""KafkaTopics of a cluster: requests in batches, failures that stay with their topic, statuses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from barnabas_broker.controller.topics import MAX_PARTITIONS_PER_REQUEST, check_request_size
from barnabas_kafka.errors import KafkaError
from barnabas_operator.api.topics import PARTITIONS_PER_REQUEST
from barnabas_operator.brokers import BrokersError
from barnabas_operator.kube import TOPICS, Document, Kind, KubeError
from barnabas_operator.plan.topics import CreateTopic, GrowPartitions
from barnabas_operator.reconcile.reconciler import Key, reconcile
from tests.operator import examples
from tests.operator.memory_kube import MemoryKube
from tests.operator.ports import MemoryBrokers, context_on, ledger

KEY = Key("default", "quickstart")


def up(*documents: Document, brokers: MemoryBrokers) -> MemoryKube:
    """An API server in which the quickstart's cluster is ready, with these resources."""
    kube = MemoryKube(examples.cluster())
    reconcile(KEY, context_on(kube, brokers))
    kube.settle()
    reconcile(KEY, context_on(kube, brokers))
    for document in documents:
        kube.put(document)
    brokers.requests.clear()
    kube.writes.clear()
    return kube


def ready(kube: MemoryKube, name: str) -> tuple[str, str, str]:
    """Status, reason and message of a topic's Ready."""
    conditions = kube.find("KafkaTopic", name)["status"]["conditions"]
    (found,) = [each for each in conditions if each["type"] == "Ready"]
    return found["status"], found["reason"], found["message"]


def many(count: int, **spec: Any) -> list[Document]:
    """Resources of so many topics."""
    return [examples.topic(f"t{number:05}", **spec) for number in range(count)]


def test_many_topics_are_a_few_requests() -> None:
    """200 new topics: four requests to create, and the metadata twice, not 201 times."""
    brokers = MemoryBrokers()
    kube = up(*many(200, deletionPolicy="Delete"), brokers=brokers)
    reconcile(KEY, context_on(kube, brokers))
    assert brokers.requests == ["list", "describe", *["create"] * 4, "list", "describe"]
    assert len(ledger(kube)) == 200
    assert ready(kube, "t00199")[:2] == ("True", "Ready")


class BoundedBrokers(MemoryBrokers):
    """Brokers that refuse a request for too many partitions, as the controller does."""

    def create_topics(self, topics: Mapping[str, CreateTopic]) -> Mapping[str, BrokersError]:
        """See Brokers."""
        return self._refused(topics, sum(each.partitions for each in topics.values())) or (
            super().create_topics(topics)
        )

    def grow_partitions(self, topics: Mapping[str, GrowPartitions]) -> Mapping[str, BrokersError]:
        """See Brokers."""
        added = sum(each.partitions - each.before for each in topics.values())
        return self._refused(topics, added) or super().grow_partitions(topics)

    def _refused(self, names: Iterable[str], partitions: int) -> dict[str, BrokersError]:
        try:
            check_request_size(partitions)
        except KafkaError as error:
            return dict.fromkeys(names, BrokersError("r", str(error), reachable=True))
        return {}


def test_requests_have_no_more_partitions_than_brokers_create_at_once() -> None:
    """Forty topics that are right one by one would be refused together; so would their growth."""
    brokers = BoundedBrokers()
    kube = up(*many(40, partitions=300), brokers=brokers)
    reconcile(KEY, context_on(kube, brokers))
    assert {ready(kube, f"t{number:05}")[0] for number in range(40)} == {"True"}
    assert brokers.requests.count("create") == 2
    for number in range(40):
        kube.edit("KafkaTopic", f"t{number:05}", lambda body: body["spec"].update(partitions=600))
    brokers.requests.clear()
    reconcile(KEY, context_on(kube, brokers))
    assert {ready(kube, f"t{number:05}")[0] for number in range(40)} == {"True"}
    assert brokers.requests.count("grow") == 2


def test_a_topic_has_as_many_partitions_as_brokers_create_at_once() -> None:
    """Of one with more the API server and the operator say so; no broker is asked."""
    assert PARTITIONS_PER_REQUEST == MAX_PARTITIONS_PER_REQUEST
    brokers = BoundedBrokers()
    most, more = (
        examples.topic("most", partitions=10_000),
        examples.topic("more", partitions=10_001),
    )
    kube = up(most, more, brokers=brokers)
    reconcile(KEY, context_on(kube, brokers))
    assert ready(kube, "most")[0] == "True"
    assert ready(kube, "more")[:2] == ("False", "Invalid")
    assert "partitions: is 10001, must be between 1 and 10000" in ready(kube, "more")[2]


def test_a_steady_pass_writes_nothing() -> None:
    """Neither statuses nor the ledger, and the topics are described once."""
    brokers = MemoryBrokers()
    kube = up(*many(60, deletionPolicy="Delete"), brokers=brokers)
    reconcile(KEY, context_on(kube, brokers))
    kube.writes.clear()
    brokers.requests.clear()
    reconcile(KEY, context_on(kube, brokers))
    assert kube.writes == []
    assert brokers.requests == ["list", "describe"]


def test_a_ready_topic_says_what_it_has() -> None:
    """`kubectl describe` tells more than a word."""
    brokers = MemoryBrokers()
    kube = up(examples.topic(), brokers=brokers)
    reconcile(KEY, context_on(kube, brokers))
    assert ready(kube, "packages")[2] == "the topic is as specified: 3 partitions of 1 replicas"


def test_a_refused_topic_concerns_itself_alone() -> None:
    """The others of its batch are created; it is told why."""
    brokers = MemoryBrokers()
    brokers.refuses["t00001"] = BrokersError("POLICY_VIOLATION", "no", reachable=True)
    kube = up(*many(3), brokers=brokers)
    reconcile(KEY, context_on(kube, brokers))
    assert sorted(brokers.views) == ["t00000", "t00002"]
    assert ready(kube, "t00001") == ("False", "Refused", "POLICY_VIOLATION: no")
    assert ready(kube, "t00002")[0] == "True"


def test_a_silent_controller_is_asked_once() -> None:
    """Each request would take the whole time-out; the rest waits for the next pass."""

    class Silent(MemoryBrokers):
        def create_topics(self, topics: object) -> dict[str, BrokersError]:
            self.requests.append("create")
            raise BrokersError("_TIMED_OUT", "no answer", reachable=False)

    brokers = Silent()
    kube = up(*many(200), brokers=brokers)
    reconcile(KEY, context_on(kube, brokers))
    assert brokers.requests.count("create") == 1
    assert ready(kube, "t00000")[:2] == ("False", "Unreachable")
    assert ready(kube, "t00199")[:2] == ("False", "Unreachable")


def test_a_cluster_that_does_not_answer_changes_no_status_of_known_topics() -> None:
    """51 topics are not 102 writes for a broker that restarts; a changed spec is told."""
    brokers = MemoryBrokers()
    kube = up(*many(51), brokers=brokers)
    reconcile(KEY, context_on(kube, brokers))
    kube.writes.clear()
    brokers.error = BrokersError("_TRANSPORT", "down", reachable=False)
    kube.put(examples.topic("t00007", partitions=9))
    reconcile(KEY, context_on(kube, brokers))
    assert [each for each in kube.writes if "KafkaTopic" in each] == ["status KafkaTopic t00007"]
    assert ready(kube, "t00007")[:2] == ("False", "WaitingForCluster")


@pytest.mark.parametrize("status", [403, 404, 409, 422, 500])
def test_a_status_that_cannot_be_written_does_not_stop_the_others(status: int) -> None:
    """A webhook that fails for one resource, or a conflict; only a failing server ends the pass."""

    class Refusing(MemoryKube):
        def patch_status(self, kind: Kind, namespace: str, name: str, status: Document) -> None:
            if name == "t00000":
                raise KubeError(code, "no")
            super().patch_status(kind, namespace, name, status)

    code = status
    brokers = MemoryBrokers()
    kube = Refusing(*up(*many(3), brokers=brokers).objects.values())
    if status == 500:
        with pytest.raises(KubeError):
            reconcile(KEY, context_on(kube, brokers))
    else:
        reconcile(KEY, context_on(kube, brokers))
    assert ready(kube, "t00002")[0] == "True"


def test_a_change_that_does_not_show_yet_is_not_ready() -> None:
    """Ready=True never covers a spec that is not applied: the broker asked may be behind."""

    class Behind(MemoryBrokers):
        def grow_partitions(self, topics: object) -> dict[str, BrokersError]:
            return {}

    brokers = MemoryBrokers()
    kube = up(examples.topic(), brokers=brokers)
    reconcile(KEY, context_on(kube, brokers))
    kube.put(examples.topic(partitions=5))
    reconcile(KEY, context_on(kube, Behind(views=brokers.views)))
    assert ready(kube, "packages")[:2] == ("False", "Updating")
    reconcile(KEY, context_on(kube, brokers))
    assert ready(kube, "packages")[:2] == ("True", "Ready")


def test_a_topic_created_between_two_looks_is_not_taken_over() -> None:
    """Another client was first: it is described in the next pass, and compared."""

    class Late(MemoryBrokers):
        def topic_names(self) -> frozenset[str]:
            super().topic_names()
            return frozenset()

    brokers = MemoryBrokers()
    kube = up(examples.topic(deletionPolicy="Delete", config={}), brokers=brokers)
    theirs = MemoryBrokers()
    other = up(examples.topic(config={"retention.ms": "-1"}), brokers=theirs)
    reconcile(KEY, context_on(other, theirs))
    reconcile(KEY, context_on(kube, Late(views=theirs.views)))
    assert ready(kube, "packages")[:2] == ("False", "Refused")
    reconcile(KEY, context_on(kube, theirs))
    assert ready(kube, "packages")[:2] == ("False", "AlreadyExists")
    kube.remove("KafkaTopic", "packages")
    reconcile(KEY, context_on(kube, theirs))
    assert "packages" in theirs.views


def test_a_cache_that_is_behind_does_not_take_the_memory_of_a_topic() -> None:
    """The spec was changed before the id was written, and the cache has not seen the id yet."""
    brokers = MemoryBrokers()
    kube = up(examples.topic(), brokers=brokers)
    reconcile(KEY, context_on(kube, brokers))
    topic_id = kube.find("KafkaTopic", "packages")["status"]["topicId"]
    stale = kube.put(examples.topic(partitions=5)) | {"status": {}}
    context = replace(
        context_on(kube, brokers), index=lambda kind, *_: [stale] if kind is TOPICS else []
    )
    reconcile(KEY, context)
    assert brokers.views["packages"].partitions == 3
    assert kube.find("KafkaTopic", "packages")["status"]["topicId"] == topic_id
    reconcile(KEY, context_on(kube, brokers))
    assert brokers.views["packages"].partitions == 5
    assert ready(kube, "packages")[0] == "True"


def test_a_definition_without_topic_ids_does_not_refuse_an_edit() -> None:
    """Helm does not upgrade definitions: the API server drops the id of a topic that is managed."""

    class Older(MemoryKube):
        def patch_status(self, kind: Kind, namespace: str, name: str, status: Document) -> None:
            kept = {key: value for key, value in status.items() if key != "topicId"}
            super().patch_status(kind, namespace, name, kept)

    brokers = MemoryBrokers()
    kube = Older(*up(examples.topic(), brokers=brokers).objects.values())
    reconcile(KEY, context_on(kube, brokers))
    assert "topicId" not in kube.find("KafkaTopic", "packages")["status"]
    kube.put(examples.topic(partitions=5))
    reconcile(KEY, context_on(kube, brokers))
    assert brokers.views["packages"].partitions == 5
    assert ready(kube, "packages")[0] == "True"
