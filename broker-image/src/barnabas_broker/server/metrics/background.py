"""Families of what the broker looks after: log directories, the cleaner, memory for clients.

The cleaner's and the directories' are those of Kafka's `LogCleaner`, `LogCleanerManager` and
`LogManager`; memory is ours, as Kafka has no bound on it to compare with.
"""

from collections.abc import Iterator
from typing import NamedTuple

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from barnabas_broker.log.cleaner.manager import CleanerManager
from barnabas_broker.log.directories import LogDirectories
from barnabas_broker.log.health import Health
from barnabas_broker.server.metrics.waiting import Waits
from barnabas_broker.server.process.supervised_tasks import Background, background
from barnabas_broker.server.transport.memory_pool import MemoryPool
from barnabas_broker.server.transport.send_buffers import SendBuffers


class Kept(NamedTuple):
    """Where these numbers are."""

    cleaner: CleanerManager
    frames: MemoryPool
    output: SendBuffers
    waits: Waits


def of_background(kept: Kept, logs: LogDirectories, now_ms: int) -> Iterator[Metric]:
    """All of them."""
    yield from _directories(logs)
    yield from _cleaner(kept.cleaner, now_ms)
    yield _gauge("barnabas_frame_memory_bytes", "Held for requests that arrive.", kept.frames.held)
    yield _gauge(
        "barnabas_frame_memory_budget_bytes",
        "What may be held for requests beyond the first bytes of each.",
        kept.frames.budget,
    )
    yield _gauge(
        "barnabas_output_memory_bytes",
        "Held for responses that clients have not taken.",
        kept.output.held,
    )
    yield from kept.waits.families(now_ms)
    yield from _tasks(background())


def _tasks(tasks: Background) -> Iterator[Metric]:
    label = ["task"]
    down = GaugeMetricFamily("barnabas_background_task_down", "1 while it fails.", labels=label)
    failures = CounterMetricFamily(
        "barnabas_background_task_failures", "Errors that ended a turn of it.", labels=label
    )
    failing = tasks.down
    for name, count in tasks.failures.items():
        down.add_metric([name], name in failing)
        failures.add_metric([name], count)
    yield from (down, failures)


def _directories(logs: LogDirectories) -> Iterator[Metric]:
    label = ["logdirectory"]
    offline = GaugeMetricFamily(
        "kafka_log_logmanager_logdirectoryoffline", "1 for one that failed.", labels=label
    )
    full = GaugeMetricFamily(
        "barnabas_log_directory_full", "1 for one that takes no records.", labels=label
    )
    for path, state in logs.states().items():
        offline.add_metric([str(path)], state is Health.OFFLINE)
        full.add_metric([str(path)], state is Health.FULL)
    yield from (offline, full)


def _cleaner(cleaner: CleanerManager, now_ms: int) -> Iterator[Metric]:
    stats = cleaner.stats
    for name, words, value in (
        ("cleaner_recopy_percent", "What the last cleaning kept.", stats.recopy_percent),
        ("max_clean_time_secs", "How long the last cleaning took.", stats.max_clean_time_secs),
        (
            "max_buffer_utilization_percent",
            "How full its map of keys was.",
            stats.max_buffer_utilization_percent,
        ),
        (
            "max_compaction_delay_secs",
            "How long the log that waits longest has waited beyond max.compaction.lag.ms.",
            stats.max_compaction_delay_secs,
        ),
    ):
        yield _gauge(f"kafka_log_logcleaner_{name}", words, value)
    for name, words, value in (
        ("max_dirty_percent", "Of the dirtiest log.", stats.max_dirty_percent),
        (
            "uncleanable_partitions_count",
            "Partitions that cannot be cleaned.",
            len(cleaner.uncleanable),
        ),
        (
            "uncleanable_bytes",
            "What could be cleaned in them.",
            cleaner.uncleanable_bytes(now_ms),
        ),
    ):
        yield _gauge(f"kafka_log_logcleanermanager_{name}", words, value)
    for name, words, value in (
        ("runs", "Cleanings that were finished.", stats.cleanings),
        ("read_bytes", "Bytes that they read.", stats.bytes_read),
        ("kept_bytes", "Bytes that they kept.", stats.bytes_kept),
    ):
        yield CounterMetricFamily(f"barnabas_log_cleaner_{name}", words, value=value)


def _gauge(name: str, words: str, value: float) -> Metric:
    return GaugeMetricFamily(name, words, value=value)
