"""The operator's metrics, through Prometheus' client library.

Series with the labels `namespace` and `cluster` are removed with their cluster, so their number is
bounded by that of the clusters.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)
from prometheus_client.gc_collector import GCCollector
from prometheus_client.process_collector import ProcessCollector

from barnabas_operator.handlers.health import Health
from barnabas_operator.handlers.work_queue import WorkQueue
from barnabas_operator.kube import KubeError
from barnabas_operator.reconcile.reconciler import Key

CLUSTER: Final = ("namespace", "cluster")
# In place of a namespace.
ALL: Final = "(all)"
BUCKETS: Final = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Metrics:
    """A Reporter that keeps the figures, and the health that the probes ask for."""

    def __init__(self, health: Health) -> None:
        self._health = health
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        prefix, registry = "barnabas_operator", self.registry
        self._reconciliations = Counter(
            f"{prefix}_reconciliations", "Reconciliations that ended, by result.",
            (*CLUSTER, "result"), registry=registry,
        )  # fmt: skip
        self._duration = Histogram(
            f"{prefix}_reconciliation_duration_seconds", "How long reconciliations took.",
            buckets=BUCKETS, registry=registry,
        )  # fmt: skip
        self._last_success = Gauge(
            f"{prefix}_last_success_timestamp_seconds", "When a reconciliation last succeeded.",
            CLUSTER, registry=registry,
        )  # fmt: skip
        self._depth = Gauge(
            f"{prefix}_workqueue_depth", "Clusters in the work queue.", registry=registry
        )
        self._wait = Gauge(
            f"{prefix}_workqueue_longest_wait_seconds",
            "How long the longest due cluster has waited for a slot.", registry=registry,
        )  # fmt: skip
        self._running = Gauge(
            f"{prefix}_workqueue_longest_running_seconds",
            "The age of the oldest reconciliation that runs.", registry=registry,
        )  # fmt: skip
        self._slow = Gauge(
            f"{prefix}_slow_clusters", "Clusters whose reconciliations are slow.", registry=registry
        )
        self._failed_namespaces = Gauge(
            f"{prefix}_namespaces_failed", "Namespaces that cannot be listed.", registry=registry
        )
        self._steps = Counter(
            f"{prefix}_steps", "Steps of plans on the API server, by result.",
            ("step", "result"), registry=registry,
        )  # fmt: skip
        self._expiry = Gauge(
            f"{prefix}_certificate_expiry_timestamp_seconds", "When a certificate expires.",
            (*CLUSTER, "certificate"), registry=registry,
        )  # fmt: skip
        self._user_expiry = Gauge(
            f"{prefix}_user_certificate_expiry_timestamp_seconds",
            "When the certificate of a KafkaUser expires.", (*CLUSTER, "user"), registry=registry,
        )  # fmt: skip
        # The names with a series, by its label, namespace and cluster; passes are in threads.
        self._expiring: dict[tuple[str, str, str], frozenset[str]] = {}
        self._lock = threading.Lock()
        self._leader = Gauge(
            f"{prefix}_leader", "Whether this operator is the leader.", ("namespace",),
            registry=registry,
        )  # fmt: skip

    def expiries(self, namespace: str, cluster: str, ends: Mapping[str, float]) -> None:
        """When the certificates of a cluster expire, by their names; there are few of them."""
        self._set_expiries(self._expiry, "certificate", namespace, cluster, ends)

    def user_expiries(self, namespace: str, cluster: str, ends: Mapping[str, float]) -> None:
        """When the certificates of a cluster's KafkaUsers expire: as many as have one."""
        self._set_expiries(self._user_expiry, "user", namespace, cluster, ends)

    def _set_expiries(
        self, gauge: Gauge, label: str, namespace: str, cluster: str, ends: Mapping[str, float]
    ) -> None:
        labels = {"namespace": namespace, "cluster": cluster}
        for name, end in ends.items():
            gauge.labels(**labels, **{label: name}).set(end)
        with self._lock:
            before = self._expiring.get((label, namespace, cluster), frozenset())
            self._expiring[label, namespace, cluster] = frozenset(ends)
        for name in before - ends.keys():
            gauge.remove_by_labels({**labels, label: name})

    def leads(self, namespace: str | None, *, leads: bool | None) -> None:
        """The leadership changed; see leadership.Changed."""
        label = namespace or ALL
        if leads is None:
            self._leader.remove_by_labels({"namespace": label})
        else:
            self._leader.labels(label).set(leads)

    def count_step(self, step: str, result: str) -> None:
        """A step of a plan was applied, or refused by the API server; called from any thread."""
        self._steps.labels(step, result).inc()

    def text(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self.registry)

    def reconciled(self, key: Key, seconds: float, error: Exception | None) -> None:
        """See Reporter."""
        labels = (key.namespace, key.cluster)
        self._reconciliations.labels(*labels, "error" if error else "success").inc()
        self._duration.observe(seconds)
        if error is None:
            self._last_success.labels(*labels).set(time.time())

    def forgotten(self, key: Key) -> None:
        """See Reporter."""
        labels = {"namespace": key.namespace, "cluster": key.cluster}
        self._reconciliations.remove_by_labels(labels)
        self._last_success.remove_by_labels(labels)
        for label, gauge in (("certificate", self._expiry), ("user", self._user_expiry)):
            gauge.remove_by_labels(labels)
            with self._lock:
                self._expiring.pop((label, key.namespace, key.cluster), None)

    def namespaces_failed(self, errors: dict[str, KubeError]) -> None:
        """See Reporter."""
        self._failed_namespaces.set(len(errors))
        self._health.synced = True

    def beat(self, queue: WorkQueue, now: float) -> None:
        """See Reporter."""
        self._health.beat(queue, now)
        self._depth.set(len(queue.due))
        self._wait.set(queue.longest_wait(now))
        self._running.set(queue.longest_pass(now)[0])
        self._slow.set(len(queue.slow))
