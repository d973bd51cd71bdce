"""Families of what waits, and of what is waited for: purgatories, disks and ZooKeeper.

Purgatories and the session with ZooKeeper are under the names of Kafka's
`DelayedOperationPurgatory`, `SessionExpireListener` and `ZooKeeperClientMetrics`; Kafka has no
group commit.
"""

import threading
from collections.abc import Iterator
from typing import Final

from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    Metric,
    SummaryMetricFamily,
)

from barnabas_broker.coordinator.group.states import GroupState
from barnabas_broker.replica.group_commit import GroupCommits
from barnabas_broker.server.requests.broker_services import BrokerServices
from barnabas_broker.server.requests.histogram import Histogram
from barnabas_broker.zk.session_counts import SessionCounts, SessionState

QUANTILES: Final = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)
_MS: Final = 1_000
_S: Final = 1_000_000


def purgatories(broker: BrokerServices) -> Iterator[Metric]:
    """Requests that wait, by what they wait for (Kafka's `delayedOperation`).

    The size counts one for each partition or member that a request waits on.
    """
    label = ["delayedoperation"]
    sizes = GaugeMetricFamily(
        "kafka_server_delayedoperationpurgatory_purgatorysize",
        "Waits of requests, one for each partition or member waited on.",
        labels=label,
    )
    requests = GaugeMetricFamily(
        "kafka_server_delayedoperationpurgatory_numdelayedoperations",
        "Requests that wait.",
        labels=label,
    )
    led = [partition for partition in broker.replicas if partition.is_leader]
    for name, waiters in (
        ("Produce", [partition.produce_waiters for partition in led]),
        ("Fetch", [partition.fetch_waiters for partition in led]),
        ("DeleteRecords", [partition.delete_waiters for partition in led]),
    ):
        sizes.add_metric([name], sum(map(len, waiters)))
        distinct = {id(waiter) for each in waiters for waiter in each}
        requests.add_metric([name], len(distinct))
    groups = broker.groups.groups()
    members = sum(len(group.members) for group in groups)
    preparing = [group for group in groups if group.state is GroupState.PREPARING_REBALANCE]
    sizes.add_metric(["Heartbeat"], members)
    requests.add_metric(["Heartbeat"], members)
    sizes.add_metric(["Rebalance"], sum(len(group.members) for group in preparing))
    requests.add_metric(["Rebalance"], len(preparing))
    yield from (sizes, requests)


class Waits:
    """Notes how long syncs and ZooKeeper's answers take; one for each broker."""

    def __init__(self, commits: GroupCommits | None, session: SessionCounts | None) -> None:
        self._syncs = Histogram()
        self._session = session
        self._answers = Histogram()
        self._lock = threading.Lock()  # Over `_answers`: several threads ask ZooKeeper.
        if commits is not None:
            commits.took = self._syncs.observe
        if session is not None:
            session.took = self._answered

    def _answered(self, microseconds: int) -> None:
        with self._lock:
            self._answers.observe(microseconds)

    def families(self, now_ms: int) -> Iterator[Metric]:
        """Syncs always; the session where there is one."""
        yield _summary(
            "barnabas_group_commit_seconds",
            "How long a sync took that records waited for; quantiles of the last minutes.",
            self._syncs,
            now_ms,
            unit=_S,
        )
        if self._session is None:
            return
        yield from _session(self._session)
        with self._lock:
            yield _summary(
                "kafka_server_zookeeperclientmetrics_zookeeperrequestlatencyms",
                "Milliseconds that ZooKeeper took to answer; quantiles of the last minutes.",
                self._answers,
                now_ms,
                unit=_MS,
            )


def _session(counts: SessionCounts) -> Iterator[Metric]:
    prefix = "kafka_server_sessionexpirelistener_"
    state = GaugeMetricFamily(
        f"{prefix}sessionstate", "1 for the state that the session is in.", labels=["state"]
    )
    for each in SessionState:
        state.add_metric([each.value], each is counts.state)
    yield state
    for name, words, value in (
        ("zookeepersyncconnects", "Connections made to ZooKeeper.", counts.connects),
        ("zookeeperdisconnects", "Connections to ZooKeeper lost.", counts.disconnects),
        ("zookeeperauthfailures", "Times ZooKeeper refused the user.", counts.refusals),
        ("zookeeperexpires", "Sessions that ZooKeeper ended.", counts.expires),
    ):
        yield CounterMetricFamily(f"{prefix}{name}", words, value=value)


def _summary(name: str, words: str, times: Histogram, now_ms: int, *, unit: int) -> Metric:
    """A family of `times`, which are in microseconds, in units of so many of these."""
    times.turn(now_ms)
    family = SummaryMetricFamily(name, words, times.count, times.sum / unit)
    for share, microseconds in zip(QUANTILES, times.quantiles(*QUANTILES), strict=True):
        family.add_sample(name, {"quantile": str(share)}, microseconds / unit)
    return family
