"""What is wrong with a KafkaTopic of a file, by itself and in its cluster.

On Kubernetes the conditions of a topic say what brokers refuse, and a topic waits for brokers that
are yet to come. A file is all there is here: what no broker will do is a mistake in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from barnabas_kafka.settings.broker import BrokerSettings
from barnabas_kafka.settings.topic import override_problems
from barnabas_operator.api.clusters import KafkaCluster
from barnabas_operator.api.reading import Metadata, Resource
from barnabas_operator.api.topics import KafkaTopic
from barnabas_operator.plan.topics import INTERNAL_TOPICS


def broken_rules(meta: Metadata, topic: KafkaTopic) -> Iterator[str]:
    """What is wrong with a topic by itself; each begins with the path in the resource."""
    given = topic.spec.topic_name
    name = given or meta.name
    path = "metadata.name" if given is None else "spec.topicName"
    if name in (".", ".."):
        yield f"{path}: cannot be . or .."
    if name in INTERNAL_TOPICS:
        yield f"{path}: {name} is an internal topic of Kafka; brokers manage it themselves"
    yield from setting_problems(topic.spec.config)


def setting_problems(config: Mapping[str, str]) -> Iterator[str]:
    """What is wrong with the settings of a topic."""
    for problem in override_problems(BrokerSettings({}), config):
        yield f"spec.config.{problem}"


def unfit_for(topic: Resource[KafkaTopic], cluster: Resource[KafkaCluster]) -> str:
    """What a topic asks of its cluster that this does not have; empty if it has all."""
    replicas, brokers = topic.body.spec.replicas, cluster.body.spec.brokers.replicas
    if replicas <= brokers:
        return ""
    count = "one broker" if brokers == 1 else f"{brokers} brokers"
    return (
        f"spec.replicas: is {replicas}, and KafkaCluster {cluster.meta.name} has {count}; each"
        " replica needs a broker of its own (spec.brokers.replicas)"
    )
