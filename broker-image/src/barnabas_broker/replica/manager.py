"""All partitions that this broker holds, kept in step with the metadata image."""

import logging
from collections.abc import Callable, Iterator
from functools import partial

from barnabas_broker.cluster.image import MetadataImage, PartitionState, TopicImage
from barnabas_broker.log.directories import LogDirectories
from barnabas_broker.log.partition_log import PartitionLog
from barnabas_broker.replica.partition import Partition
from barnabas_broker.replica.topic_rules import TopicRules
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import NO_EPOCH, TopicPartition

log = logging.getLogger(__name__)

RulesFor = Callable[[TopicImage], TopicRules]


class ReplicaManager:
    """Creates, leads and deletes the partitions that the image puts on this broker."""

    def __init__(
        self,
        broker_id: int,
        logs: LogDirectories,
        *,
        rules_for: RulesFor,
        clock_ms: Callable[[], int],
        flush_soon: Callable[[PartitionLog], None],
    ) -> None:
        self._broker_id = broker_id
        self._logs = logs
        self._rules_for = rules_for
        self._clock_ms = clock_ms
        self._flush_soon = flush_soon
        self._partitions: dict[TopicPartition, Partition] = {}

    def __len__(self) -> int:
        return len(self._partitions)

    def __iter__(self) -> Iterator[Partition]:
        return iter(self._partitions.values())

    def leader(self, tp: TopicPartition, client_epoch: int = NO_EPOCH) -> Partition:
        """The partition, if this broker leads it in the epoch the client knows.

        Raises KafkaError with UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER,
        FENCED_LEADER_EPOCH or UNKNOWN_LEADER_EPOCH.
        """
        partition = self._partitions.get(tp)
        if partition is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        partition.check_leader(client_epoch)
        return partition

    def on_image(self, old: MetadataImage, new: MetadataImage) -> dict[str, KafkaError]:
        """Make this broker hold what the new image says, touching only topics that changed.

        Returns the topics for which that could not be done, with the first error of each; the
        others are not affected.
        """
        failures: dict[str, KafkaError] = {}
        changed_defaults = old.broker_configs != new.broker_configs
        for name, topic in old.topics.items():
            if name not in new.topics or new.topics[name].id != topic.id:
                self._attempt(name, partial(self._drop, topic), failures)
        for name, topic in new.topics.items():
            before = old.topics.get(name)
            if before is not topic or changed_defaults:
                changed = changed_defaults or before is None or before.config != topic.config
                update = partial(self._update, topic, settings_changed=changed)
                self._attempt(name, update, failures)
        return failures

    def _attempt(
        self, topic: str, work: Callable[[], None], failures: dict[str, KafkaError]
    ) -> None:
        try:
            work()
        except KafkaError as error:
            log.error("topic %s: %s", topic, error.message)
            failures.setdefault(topic, error)
        except OSError as error:
            log.error("topic %s: %s", topic, error)
            failures.setdefault(topic, KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)))

    def _update(self, topic: TopicImage, *, settings_changed: bool) -> None:
        rules = self._rules_for(topic)
        for index, state in enumerate(topic.partitions):
            if self._broker_id not in state.replicas:
                continue
            tp = TopicPartition(topic.name, index)
            partition = self._partitions.get(tp)
            if partition is None:
                self._add(tp, topic, state, rules)
                continue
            if settings_changed:
                partition.take_rules(rules)
            if state is not partition.state:
                partition.become(state)

    def _add(
        self, tp: TopicPartition, topic: TopicImage, state: PartitionState, rules: TopicRules
    ) -> None:
        partition_log = self._logs.logs.get(tp)
        if partition_log is None:
            partition_log = self._logs.create(tp, rules.log_config, topic.id, self._clock_ms())
        elif partition_log.topic_id not in (None, topic.id):
            raise KafkaError(
                ErrorCode.INCONSISTENT_TOPIC_ID,
                f"{partition_log.directory} belongs to an earlier topic of this name; "
                "move it away and restart the broker",
            )
        partition = Partition(
            self._broker_id, tp, log=partition_log, rules=rules, flush_soon=self._flush_soon
        )
        partition.become(state)
        self._partitions[tp] = partition

    def _drop(self, topic: TopicImage) -> None:
        for index in range(len(topic.partitions)):
            tp = TopicPartition(topic.name, index)
            partition = self._partitions.pop(tp, None)
            if partition is not None:
                self._logs.delete(tp, self._clock_ms())
                partition.wake_fetches()
