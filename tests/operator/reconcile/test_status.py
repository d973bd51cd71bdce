"""Telling: only what is new is written."""

from __future__ import annotations

from barnabas_operator.api.conditions import Verdict
from barnabas_operator.api.reading import read_metadata, read_topic
from barnabas_operator.api.topics import TopicStatus
from barnabas_operator.reconcile.status import write_refusal, write_status
from tests.operator import examples
from tests.operator.memory_kube import MemoryKube
from tests.operator.ports import context_on

READY = Verdict(ready=True, reason="Ready")


def test_a_status_is_written_once() -> None:
    """The same again is no write, another one is."""
    kube = MemoryKube(examples.topic())
    context = context_on(kube)
    for partitions in (3, 3, 4):
        topic = read_topic(kube.find("KafkaTopic", "packages"))
        write_status(topic, TopicStatus(partitions=partitions), READY, context)
    assert kube.writes == ["status KafkaTopic packages"] * 2


def test_the_status_has_its_generation() -> None:
    """kstatus asks whether the status is about the present spec."""
    kube = MemoryKube(examples.topic())
    kube.put(examples.topic(partitions=9))
    reported = write_status(
        read_topic(kube.find("KafkaTopic", "packages")), TopicStatus(), READY, context_on(kube)
    )
    assert reported.observed_generation == 2
    assert reported.conditions[0].observed_generation == 2


def test_a_refusal_is_written_once() -> None:
    """It needs no resource that can be read, only its metadata."""
    kube = MemoryKube(examples.topic())
    for _ in range(2):
        document = kube.find("KafkaTopic", "packages")
        write_refusal(document, read_metadata(document), "no", context=context_on(kube))
    assert kube.writes == ["status KafkaTopic packages"]
