"""What old notes and habits call a setting, and what it is called today.

The table serves two readers: the broker, which gives a better hint for an unknown name than its
spelling alone, and the page `docs/reference/names-in-old-notes.md`, which is generated from it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final


class Side(Enum):
    """The program that reads a setting."""

    BROKER = "broker"
    PRODUCER = "producer"
    CONSUMER = "consumer"
    STREAMS = "streams"


@dataclass(frozen=True, slots=True)
class OldName:
    """A name as it is said, the name that is meant (None where there is none any more), and why."""

    said: str
    meant: str | None
    side: Side
    history: str
    answer: str


_UNKNOWN = "Kept as an unknown name, with this hint; refused with --strict."
_CLIENT = "Set in the client; the broker does not read it."
_LISTENERS = "Gone since 3.0; the listeners settings say the same."

OLD_NAMES: Final[tuple[OldName, ...]] = (
    # Names of brokers and topics that were never right.
    OldName(
        "log.cleaner.compaction.lag.ms", "log.cleaner.min.compaction.lag.ms", Side.BROKER,
        "Misquoted; the setting came with 0.10.1 (KIP-58), its default is 0.", _UNKNOWN,
    ),
    OldName(
        "replica.lag.max.ms", "replica.lag.time.max.ms", Side.BROKER,
        "Misquoted. The default was 10 s up to 2.4 and is 30 s since 2.5 (KIP-537).", _UNKNOWN,
    ),
    OldName(
        "min.insync.replics", "min.insync.replicas", Side.BROKER, "Misspelt.", _UNKNOWN,
    ),
    OldName(
        "delete.topic.enble", "delete.topic.enable", Side.BROKER,
        "Misspelt. The default was false up to 0.11 and is true since 1.0.", _UNKNOWN,
    ),
    OldName("listener", "listeners", Side.BROKER, "Misspelt.", _UNKNOWN),
    OldName(
        "log.retention", "log.retention.hours", Side.BROKER,
        "Short for three settings: log.retention.ms goes before .minutes and .hours.", _UNKNOWN,
    ),
    # Names of brokers that are gone.
    OldName(
        "replica.lag.max.messages", "replica.lag.time.max.ms", Side.BROKER,
        "Gone since 0.9 (KIP-16): followers are judged by time alone.", _UNKNOWN,
    ),
    OldName("port", "listeners", Side.BROKER, _LISTENERS, _UNKNOWN),
    OldName("host.name", "listeners", Side.BROKER, _LISTENERS, _UNKNOWN),
    OldName("advertised.host.name", "advertised.listeners", Side.BROKER, _LISTENERS, _UNKNOWN),
    OldName("advertised.port", "advertised.listeners", Side.BROKER, _LISTENERS, _UNKNOWN),
    OldName(
        "quota.producer.default", None, Side.BROKER,
        "Gone since 3.0; default quotas are set with kafka-configs.", _UNKNOWN,
    ),
    OldName(
        "quota.consumer.default", None, Side.BROKER,
        "Gone since 3.0; default quotas are set with kafka-configs.", _UNKNOWN,
    ),
    OldName(
        "zookeeper.sync.time.ms", None, Side.BROKER,
        "Gone since 3.0; nothing read it.", _UNKNOWN,
    ),
    OldName(
        "log.retention.check.interval.minutes", "log.retention.check.interval.ms", Side.BROKER,
        "Old unit.", _UNKNOWN,
    ),
    # Plugins of another distribution.
    OldName(
        "confluent.support.metrics.enable", None, Side.BROKER,
        "Confluent's own; Apache Kafka never read it.", _UNKNOWN,
    ),
    OldName(
        "confluent.support.customer.id", None, Side.BROKER,
        "Confluent's own; Apache Kafka never read it.", _UNKNOWN,
    ),
    OldName(
        "confluent.metrics.reporter.bootstrap.servers", None, Side.BROKER,
        "Read by a reporter of Confluent's named in metric.reporters.", _UNKNOWN,
    ),
    OldName(
        "confluent.metrics.reporter.topic.replicas", None, Side.BROKER,
        "Read by a reporter of Confluent's named in metric.reporters.", _UNKNOWN,
    ),
    # Names of producers.
    OldName(
        "producer.type", None, Side.PRODUCER,
        "Of the Scala producer, gone since 2.0; it chose whether send() waited, and never had "
        "to do with flushing. What reaches the disk when is set by log.flush.interval.messages "
        "and log.flush.interval.ms.", _CLIENT,
    ),
    OldName(
        "request.required.acks", "acks", Side.PRODUCER,
        "Of the Scala producer, gone since 2.0; acks above 1 are refused since 0.9.",
        "Produce with acks other than 0, 1 and -1 gets INVALID_REQUIRED_ACKS.",
    ),
    OldName(
        "metadata.broker.list", "bootstrap.servers", Side.PRODUCER,
        "Of the Scala producer, gone since 2.0; librdkafka still takes it.", _CLIENT,
    ),
    OldName(
        "compression.codec", "compression.type", Side.PRODUCER,
        "Of the Scala producer, gone since 2.0; librdkafka still takes it.", _CLIENT,
    ),
    OldName("compresstion.type", "compression.type", Side.PRODUCER, "Misspelt.", _CLIENT),
    OldName(
        "block.on.buffer.full", "max.block.ms", Side.PRODUCER,
        "Deprecated in 0.9, gone since 1.0.", _CLIENT,
    ),
    OldName(
        "metadata.fetch.timeout.ms", "max.block.ms", Side.PRODUCER,
        "Deprecated in 0.9, gone since 1.0.", _CLIENT,
    ),
    OldName(
        "timeout.ms", "request.timeout.ms", Side.PRODUCER,
        "Deprecated in 0.9, gone since 1.0; the producer sends the time with each request.",
        "The broker waits for replicas as long as the request says.",
    ),
    OldName("request.timout.ms", "request.timeout.ms", Side.PRODUCER, "Misspelt.", _CLIENT),
    OldName(
        "enable.idempotent", "enable.idempotence", Side.PRODUCER,
        "Misspelt; a setting of the producer, not of the broker. The default is true since 3.0.",
        _CLIENT,
    ),
    OldName("transcational.id", "transactional.id", Side.PRODUCER, "Misspelt.", _CLIENT),
    # Names of consumers.
    OldName(
        "auto.commit.enable", "enable.auto.commit", Side.CONSUMER,
        "Of the Scala consumer, gone since 2.0.", _CLIENT,
    ),
    OldName(
        "fetch.message.max.bytes", "max.partition.fetch.bytes", Side.CONSUMER,
        "Of the Scala consumer, gone since 2.0; fetch.max.bytes bounds the whole answer.",
        _CLIENT,
    ),
    OldName(
        "partition.fetch.bytes", "max.partition.fetch.bytes", Side.CONSUMER, "Misquoted.", _CLIENT,
    ),
    OldName("value.seserializer", "value.deserializer", Side.CONSUMER, "Misspelt.", _CLIENT),
    # Streams.
    OldName(
        "processing.guarantee=exactly_once", "processing.guarantee=exactly_once_v2", Side.STREAMS,
        "Deprecated in 3.0, gone since 4.0.", _CLIENT,
    ),
)  # fmt: skip

_BY_NAME: Final = {old.said: old for old in OLD_NAMES}
_CLOSE_ENOUGH = 0.8


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """The known name that is meant: by the table, else the most alike, else None."""
    candidates = list(known)
    old = _BY_NAME.get(name)
    if old is not None:
        return old.meant if old.meant in candidates else None
    import difflib  # Late: only a mistake needs it.

    close = difflib.get_close_matches(name, candidates, n=1, cutoff=_CLOSE_ENOUGH)
    return close[0] if close else None


def explain(name: str, known: Iterable[str]) -> str:
    """One sentence about an unknown name, for the log and for refusals."""
    old = _BY_NAME.get(name)
    near = nearest_name(name, known)
    hint = f"; did you mean {near}?" if near else ""
    if old is None:
        return f"unknown setting{hint}"
    where = "" if old.side is Side.BROKER else f" of the {old.side.value}"
    return f"unknown setting{where}{hint} ({old.history.rstrip('.')})"
