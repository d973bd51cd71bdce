"""Quotas and metrics."""

from __future__ import annotations

from ..declare import at_least, boolean, integer, java_class, long, string, words
from ..definitions import Importance, Served, UpdateMode
from .notes import NO_JAVA

QUOTA_WINDOW_NUM = integer(
    "quota.window.num",
    11,
    "Windows over which clients' quotas are measured.",
    rule=at_least(1),
    importance=Importance.LOW,
)
QUOTA_WINDOW_SIZE_SECONDS = integer(
    "quota.window.size.seconds",
    1,
    "Length of each of these windows.",
    rule=at_least(1),
    importance=Importance.LOW,
)
REPLICATION_QUOTA_WINDOW_NUM = integer(
    "replication.quota.window.num",
    11,
    "Windows over which replication quotas are measured.",
    rule=at_least(1),
    importance=Importance.LOW,
)
REPLICATION_QUOTA_WINDOW_SIZE_SECONDS = integer(
    "replication.quota.window.size.seconds",
    1,
    "Length of each of these windows.",
    rule=at_least(1),
    importance=Importance.LOW,
)
ALTER_LOG_DIRS_REPLICATION_QUOTA_WINDOW_NUM = integer(
    "alter.log.dirs.replication.quota.window.num",
    11,
    "Windows over which moves between directories are measured.",
    rule=at_least(1),
    importance=Importance.LOW,
)
ALTER_LOG_DIRS_REPLICATION_QUOTA_WINDOW_SIZE_SECONDS = integer(
    "alter.log.dirs.replication.quota.window.size.seconds",
    1,
    "Length of each of these windows.",
    rule=at_least(1),
    importance=Importance.LOW,
)
CONTROLLER_QUOTA_WINDOW_NUM = integer(
    "controller.quota.window.num",
    11,
    "Windows over which topic creation and the like are measured.",
    rule=at_least(1),
    importance=Importance.LOW,
)
CONTROLLER_QUOTA_WINDOW_SIZE_SECONDS = integer(
    "controller.quota.window.size.seconds",
    1,
    "Length of each of these windows.",
    rule=at_least(1),
    importance=Importance.LOW,
)
CLIENT_QUOTA_CALLBACK_CLASS = java_class(
    "client.quota.callback.class",
    None,
    "Java class that decides quotas.",
    importance=Importance.LOW,
    served=Served.NEVER,
    note=NO_JAVA,
)
METRICS_NUM_SAMPLES = integer(
    "metrics.num.samples",
    2,
    "Samples kept for a metric.",
    rule=at_least(1),
    importance=Importance.LOW,
    served=Served.NEVER,
    note="Metrics are counters; the monitoring system computes rates.",
)
METRICS_SAMPLE_WINDOW_MS = long(
    "metrics.sample.window.ms",
    30_000,
    "Time over which a sample is taken.",
    rule=at_least(1),
    importance=Importance.LOW,
    served=Served.NEVER,
    note="Metrics are counters; the monitoring system computes rates.",
)
METRICS_RECORDING_LEVEL = string(
    "metrics.recording.level",
    "INFO",
    "How detailed metrics are.",
    importance=Importance.LOW,
    served=Served.NEVER,
    note="All metrics are always kept.",
)
METRIC_REPORTERS = words(
    "metric.reporters",
    (),
    "Java classes that metrics are reported to.",
    importance=Importance.LOW,
    update=UpdateMode.CLUSTER_WIDE,
    served=Served.NEVER,
    note=NO_JAVA,
)
AUTO_INCLUDE_JMX_REPORTER = boolean(
    "auto.include.jmx.reporter",
    True,
    "Whether metrics are shown by JMX.",
    importance=Importance.LOW,
    served=Served.NEVER,
    note="There is no JMX without a JVM.",
)
KAFKA_METRICS_REPORTERS = words(
    "kafka.metrics.reporters",
    (),
    "Java classes that old metrics are reported to.",
    importance=Importance.LOW,
    served=Served.NEVER,
    note=NO_JAVA,
)
KAFKA_METRICS_POLLING_INTERVAL_SECS = integer(
    "kafka.metrics.polling.interval.secs",
    10,
    "Time between two looks at old metrics.",
    rule=at_least(1),
    importance=Importance.LOW,
    served=Served.NEVER,
    note=NO_JAVA,
)
TELEMETRY_MAX_BYTES = integer(
    "telemetry.max.bytes",
    1_048_576,
    "Largest report of metrics that a client may push.",
    rule=at_least(1),
    importance=Importance.LOW,
    served=Served.NEVER,
    note="Clients are not asked for their metrics.",
)
