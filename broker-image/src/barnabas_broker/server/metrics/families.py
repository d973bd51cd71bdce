"""The broker's numbers as Prometheus families, under the names that Kafka's dashboards ask for.

Kafka has JMX beans, and people have come to know them by the names that the usual rules of the JMX
exporter make of them: `kafka.server:type=BrokerTopicMetrics,name=MessagesInPerSec,topic=t`, whose
count is `kafka_server_brokertopicmetrics_messagesin_total{topic="t"}`. Where Kafka has a bean we
use its name, and nothing else is under `kafka_`; what is our own begins with `barnabas_`.

Made on the event loop, which owns what is counted, in slices: a broker may have thousands of
partitions. `docs/operations/metrics.md` lists the families.
"""

from collections.abc import Iterable, Iterator
from typing import Final, TypeVar

from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    Metric,
    SummaryMetricFamily,
)

from barnabas_broker.coordinator.group.states import GroupState
from barnabas_broker.log.health import Health
from barnabas_broker.log.partition_log import PartitionLog
from barnabas_broker.replica.broker_topic_stats import BrokerTopicStats
from barnabas_broker.server.metrics.loop_lag import LoopLag
from barnabas_broker.server.requests.api_metrics import RequestMetrics
from barnabas_broker.server.requests.broker_services import BrokerServices
from barnabas_broker.server.transport.counters import Cause, Counters

QUANTILES: Final = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)

SLICE: Final = 250
"""Partitions to collect before yielding to the event loop: about a millisecond."""

_TRAFFIC: Final = {
    "messagesin": ("records_in", "Records appended."),
    "bytesin": ("bytes_in", "Bytes of batches appended."),
    "bytesout": ("bytes_out", "Bytes of batches sent to consumers."),
    "bytesrejected": ("bytes_rejected", "Bytes of batches refused."),
    "totalproducerequests": ("produces", "Partitions produced to, one for each request."),
    "failedproducerequests": ("produces_failed", "Those that were refused."),
    "totalfetchrequests": ("fetches", "Partitions fetched from, one for each request."),
    "failedfetchrequests": ("fetches_failed", "Those that were refused."),
}

T = TypeVar("T")


def traffic(by_topic: dict[str, BrokerTopicStats]) -> Iterator[Metric]:
    """`kafka.server:type=BrokerTopicMetrics`: for all topics without a label, and for each."""
    for name, (attribute, words) in _TRAFFIC.items():
        family = CounterMetricFamily(
            f"kafka_server_brokertopicmetrics_{name}", words, labels=["topic"]
        )
        total = sum(getattr(each, attribute) for each in by_topic.values())
        family.add_sample(f"kafka_server_brokertopicmetrics_{name}_total", {}, total)
        for topic, each in by_topic.items():
            family.add_metric([topic], getattr(each, attribute))
        yield family


def requests(metrics: RequestMetrics, now_ms: int) -> Iterator[Metric]:
    """`kafka.network:type=RequestMetrics`: counts by version, errors, and times from first byte
    served to answer handed over, waiting included.
    """
    counts = CounterMetricFamily(
        "kafka_network_requestmetrics_requests",
        "Requests served.",
        labels=["request", "version"],
    )
    errors = CounterMetricFamily(
        "kafka_network_requestmetrics_errors",
        "Requests, or partitions of them, that were answered with an error.",
        labels=["request", "error"],
    )
    times = SummaryMetricFamily(
        "kafka_network_requestmetrics_totaltimems",
        "Milliseconds that requests took; quantiles of the last minutes.",
        labels=["request"],
    )
    for name, api in sorted(metrics.by_api.items()):
        for version, count in sorted(api.versions.items()):
            counts.add_metric([name, str(version)], count)
        for code, count in sorted(api.errors.items()):
            errors.add_metric([name, code.name], count)
        api.times.turn(now_ms)
        times.add_metric([name], api.times.count, api.times.sum / 1000)
        for share, microseconds in zip(QUANTILES, api.times.quantiles(*QUANTILES), strict=True):
            labels = {"request": name, "quantile": str(share)}
            times.add_sample(times.name, labels, microseconds / 1000)
    yield from (counts, errors, times)


class LogFamilies:
    """`kafka.log:type=Log`, one sample of each family for each partition; filled in slices."""

    def __init__(self) -> None:
        labels = ["topic", "partition"]
        self.families = [
            GaugeMetricFamily("kafka_log_log_size", "Bytes of the partition's log.", labels=labels),
            GaugeMetricFamily("kafka_log_log_logstartoffset", "First offset.", labels=labels),
            GaugeMetricFamily("kafka_log_log_logendoffset", "Next offset.", labels=labels),
            GaugeMetricFamily("kafka_log_log_numlogsegments", "Segments.", labels=labels),
        ]
        words = {
            "batches": "Batches in segments that are counted.",
            "records": "Records in them.",
            "raw_bytes": "Bytes of their batches before compression.",
            "stored_bytes": "Bytes of their batches as they are stored.",
        }
        self._contents = {
            name: GaugeMetricFamily(f"barnabas_log_{name}", text, labels=labels)
            for name, text in words.items()
        }
        self.families += self._contents.values()

    def add(self, log: PartitionLog) -> None:
        """Add the samples of one log."""
        labels = [log.tp.topic, str(log.tp.partition)]
        values = (log.size, log.log_start_offset, log.log_end_offset, len(log.segments))
        for family, value in zip(self.families, values, strict=False):
            family.add_metric(labels, value)
        counted = [(each.size, each.stats) for each in log.segments if each.stats is not None]
        stored = sum(size for size, _ in counted)
        saved = sum(stats.saved_bytes for _, stats in counted)
        for name, value in (
            ("batches", sum(stats.batches for _, stats in counted)),
            ("records", sum(stats.records for _, stats in counted)),
            ("raw_bytes", stored + saved),
            ("stored_bytes", stored),
        ):
            self._contents[name].add_metric(labels, value)


def gauges(broker: BrokerServices) -> Iterator[Metric]:
    """What is true of the broker, its part of the cluster and its groups at this moment."""
    yield from _replicas(broker)
    yield from _controller(broker)
    yield from _groups(broker)
    yield from _throttled(broker)
    sessions = broker.fetch_sessions
    yield _gauge(
        "kafka_server_fetchsessioncache_numincrementalfetchsessions",
        "Incremental fetch sessions.",
        len(sessions.sessions),
    )


def _replicas(broker: BrokerServices) -> Iterator[Metric]:
    leaders = under_replicated = under_minimum = at_minimum = offline = 0
    for partition in broker.replicas:
        offline += partition.log.failure is not None
        if not partition.is_leader:
            continue
        leaders += 1
        in_sync = len(partition.state.isr)
        under_replicated += in_sync < len(partition.state.replicas)
        under_minimum += in_sync < partition.min_in_sync
        at_minimum += in_sync == partition.min_in_sync
    prefix = "kafka_server_replicamanager_"
    yield _gauge(f"{prefix}partitioncount", "Partitions held here.", len(broker.replicas))
    yield _gauge(f"{prefix}leadercount", "Partitions led here.", leaders)
    yield _gauge(
        f"{prefix}underreplicatedpartitions",
        "Partitions led here with replicas that are not in sync.",
        under_replicated,
    )
    yield _gauge(
        f"{prefix}underminisrpartitioncount",
        "Partitions led here with fewer replicas in sync than min.insync.replicas.",
        under_minimum,
    )
    yield _gauge(
        f"{prefix}atminisrpartitioncount",
        "Partitions led here with just min.insync.replicas in sync.",
        at_minimum,
    )
    yield _gauge(f"{prefix}offlinereplicacount", "Replicas whose disk failed.", offline)
    yield _gauge(
        "kafka_log_logmanager_offlinelogdirectorycount",
        "Log directories that failed.",
        sum(state is Health.OFFLINE for state in broker.logs.states().values()),
    )


def _controller(broker: BrokerServices) -> Iterator[Metric]:
    image = broker.image
    active = image.controller_id == broker.id
    prefix = "kafka_controller_kafkacontroller_"
    yield _gauge(f"{prefix}activecontrollercount", "1 on the controller.", int(active))
    if not active:
        return
    states = [state for topic in image.topics.values() for state in topic.partitions]
    yield _gauge(f"{prefix}globaltopiccount", "Topics of the cluster.", len(image.topics))
    yield _gauge(f"{prefix}globalpartitioncount", "Partitions of the cluster.", len(states))
    yield _gauge(
        f"{prefix}offlinepartitionscount",
        "Partitions without a leader.",
        sum(state.leader < 0 for state in states),
    )
    yield _gauge(
        f"{prefix}preferredreplicaimbalancecount",
        "Partitions not led by their first replica.",
        sum(state.leader != state.replicas[0] for state in states if state.replicas),
    )
    yield _gauge(f"{prefix}activebrokercount", "Brokers registered.", len(image.brokers))


def _groups(broker: BrokerServices) -> Iterator[Metric]:
    groups = broker.groups.groups()
    prefix = "kafka_coordinator_group_groupmetadatamanager_"
    yield _gauge(f"{prefix}numgroups", "Groups coordinated here.", len(groups))
    for state in GroupState:
        count = sum(group.state is state for group in groups)
        name = state.value.lower()
        yield _gauge(f"{prefix}numgroups{name}", f"Those in state {state.value}.", count)
    offsets = sum(len(group.offsets) for group in groups)
    yield _gauge(f"{prefix}numoffsets", "Offsets they committed.", offsets)
    yield _gauge(
        "barnabas_groups_memory_bytes", "Memory that groups take.", broker.groups.bytes_in_use
    )
    yield _gauge(
        "barnabas_transactions_memory_bytes",
        "Memory that transactional ids take.",
        broker.transactions.bytes_in_use,
    )


def _throttled(broker: BrokerServices) -> Iterator[Metric]:
    quotas, now_ms = broker.replication_quotas, broker.monotonic_ms()
    for kind, quota, words in (
        ("leader", quotas.leader, "sent to followers of throttled partitions"),
        ("follower", quotas.follower, "fetched from leaders of throttled partitions"),
        ("alterlogdirs", quotas.moves, "moved between log directories"),
    ):
        name = f"kafka_server_{kind}replication_byte_rate"
        yield _gauge(name, f"Bytes per second {words}.", quota.rate(now_ms))


def _gauge(name: str, words: str, value: float) -> Metric:
    return GaugeMetricFamily(name, words, value=value)


def sliced(items: Iterable[T], size: int = SLICE) -> Iterator[list[T]]:
    """The items in lists of at most `size`, as they were when this began."""
    frozen = list(items)
    for start in range(0, len(frozen), size):
        yield frozen[start : start + size]


def connections(by_listener: dict[str, int], counters: Counters) -> Iterator[Metric]:
    """Open connections by listener, and what clients were refused or cut off for."""
    family = GaugeMetricFamily(
        "kafka_server_socket_server_metrics_connection_count",
        "Open client connections.",
        labels=["listener"],
    )
    for listener, count in by_listener.items():
        family.add_metric([listener], count)
    yield family
    refused = CounterMetricFamily(
        "barnabas_clients_refused", "Clients refused or cut off.", labels=["cause"]
    )
    for cause in Cause:
        refused.add_metric([cause.value], counters.totals[cause])
    yield refused


def loop_lag(lag: LoopLag, now_ms: int) -> Iterator[Metric]:
    """How late the event loop is."""
    lag.times.turn(now_ms)
    family = SummaryMetricFamily(
        "barnabas_event_loop_lag_seconds",
        "How long work that was due had to wait for the event loop; quantiles of the last minutes.",
        lag.times.count,
        lag.times.sum / 1e6,
    )
    for share, microseconds in zip(QUANTILES, lag.times.quantiles(*QUANTILES), strict=True):
        family.add_sample(family.name, {"quantile": str(share)}, microseconds / 1e6)
    yield family
    yield CounterMetricFamily(
        "barnabas_event_loop_busy_seconds",
        "CPU time of the event loop; its rate is the share of a core that is busy.",
        value=lag.busy_s,
    )
