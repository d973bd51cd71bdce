"""Ports for tests: a context on an API server in memory, and a Kafka cluster in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from barnabas_operator.brokers import Brokers, BrokersError, ClusterView
from barnabas_operator.kube import Kube
from barnabas_operator.plan.clusters import Images
from barnabas_operator.plan.topics import TopicView
from barnabas_operator.progress import Progress
from barnabas_operator.reconcile.context import Context
from barnabas_operator.standing import Standing

NOW = "2026-01-02T03:04:05Z"
IMAGES = Images(broker="b:1", zookeeper="z:1", pipeline="p:1")


@dataclass
class MemoryBrokers:
    """A cluster's topics; an `error` is what every question gets."""

    views: dict[str, TopicView] = field(default_factory=dict)
    error: BrokersError | None = None
    refuses: dict[str, BrokersError] = field(default_factory=dict)
    steps: list[str] = field(default_factory=list)

    def describe(self) -> ClusterView:
        """See Brokers."""
        self._answer()
        return ClusterView(cluster_id="an-id", broker_ids=(0,))

    def topic_names(self) -> frozenset[str]:
        """See Brokers."""
        self._answer()
        return frozenset(self.views)

    def topics(self, names: frozenset[str]) -> Mapping[str, TopicView]:
        """See Brokers."""
        self._answer()
        return {name: self.views[name] for name in names}

    def create_topic(
        self, name: str, *, partitions: int, replicas: int, config: Mapping[str, str]
    ) -> None:
        """See Brokers."""
        self._change("create", name)
        self.views[name] = TopicView(
            name=name, topic_id="id", partitions=partitions, replicas=replicas, config=dict(config)
        )

    def grow_partitions(self, name: str, partitions: int) -> None:
        """See Brokers."""
        self._change("grow", name)
        self.views[name] = replace(self.views[name], partitions=partitions)

    def alter_config(self, name: str, *, put: Mapping[str, str], drop: frozenset[str]) -> None:
        """See Brokers."""
        self._change("alter", name)
        kept = {key: value for key, value in self.views[name].config.items() if key not in drop}
        self.views[name] = replace(self.views[name], config={**kept, **put})

    def delete_topic(self, name: str) -> None:
        """See Brokers."""
        self._change("delete", name)
        self.views.pop(name, None)

    def _answer(self) -> None:
        if self.error is not None:
            raise self.error

    def _change(self, what: str, name: str) -> None:
        self._answer()
        if name in self.refuses:
            raise self.refuses[name]
        self.steps.append(f"{what} {name}")


def context_on(
    kube: Kube, brokers: Brokers | None = None, progress: Progress | None = None
) -> Context:
    """A context whose brokers and pipelines answer as told."""
    cluster = brokers or MemoryBrokers()
    return Context(
        kube=kube,
        brokers=lambda _: cluster,
        progress=lambda _: progress,
        may_restart=lambda _: Standing(yes=True),
        has_caught_up=lambda _: Standing(yes=True),
        images=IMAGES,
        now=NOW,
    )
