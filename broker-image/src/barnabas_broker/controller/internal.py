"""The topics that brokers keep for themselves: what they are made of when first needed."""

from barnabas_broker.controller.topics import (
    GROUP_METADATA_TOPIC,
    TRANSACTION_STATE_TOPIC,
    NewTopic,
)
from barnabas_kafka.settings import broker as keys
from barnabas_kafka.settings.broker import BrokerSettings
from barnabas_kafka.settings.definitions import Key


def automatic_topic(name: str, settings: BrokerSettings) -> NewTopic:
    """The topic that is created because a request named it.

    Internal topics are compacted, and have counts and settings of their own (`offsets.topic.…`,
    `transaction.state.log.…`); all others get the broker's defaults.

    A broker that keeps its own coordination data is the only one there will ever be: where nothing
    else was asked for, it holds the only replica of offsets and transactions. With several brokers
    too few live ones fail the creation, as in Kafka, or these would stay where the first broker
    came up.
    """
    if name == GROUP_METADATA_TOPIC:
        return NewTopic(
            name=name,
            num_partitions=settings[keys.OFFSETS_TOPIC_NUM_PARTITIONS],
            replication_factor=_alone_or(keys.OFFSETS_TOPIC_REPLICATION_FACTOR, settings),
            configs=[
                ("cleanup.policy", "compact"),
                ("segment.bytes", str(settings[keys.OFFSETS_TOPIC_SEGMENT_BYTES])),
                ("compression.type", "producer"),
            ],
        )
    if name == TRANSACTION_STATE_TOPIC:
        return NewTopic(
            name=name,
            num_partitions=settings[keys.TRANSACTION_STATE_LOG_NUM_PARTITIONS],
            replication_factor=_alone_or(keys.TRANSACTION_STATE_LOG_REPLICATION_FACTOR, settings),
            configs=[
                ("cleanup.policy", "compact"),
                ("segment.bytes", str(settings[keys.TRANSACTION_STATE_LOG_SEGMENT_BYTES])),
                ("compression.type", "uncompressed"),
                ("unclean.leader.election.enable", "false"),
                (
                    "min.insync.replicas",
                    str(_alone_or(keys.TRANSACTION_STATE_LOG_MIN_ISR, settings)),
                ),
            ],
        )
    return NewTopic(name=name)


def _alone_or(wanted: Key[int], settings: BrokerSettings) -> int:
    """1 where this broker is the only one and nothing else was asked for."""
    alone = not settings[keys.ZOOKEEPER_CONNECT]
    return 1 if alone and wanted.name not in settings.explicit else settings[wanted]
