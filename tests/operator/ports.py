"""Ports for tests: a context on an API server in memory, and a Kafka cluster in memory."""

from __future__ import annotations

import itertools
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from barnabas_operator.brokers import Brokers, BrokersError
from barnabas_operator.kube import Kube
from barnabas_operator.plan.observed import ClusterView, Images
from barnabas_operator.plan.topics import AlterConfig, CreateTopic, GrowPartitions, TopicView
from barnabas_operator.plan.user_acls import Acl
from barnabas_operator.plan.users import AclChange, CredentialChange, QuotaChange, UserView
from barnabas_operator.progress import Progress
from barnabas_operator.reconcile.context import Context
from barnabas_operator.restart_check import CheckResult
from tests.operator.memory_kube import MemoryKube

NOW = "2026-01-02T03:04:05Z"
VIEW = ClusterView(cluster_id="an-id", broker_ids=(0,), controller_id=0)
IMAGES = Images(broker="b:1", zookeeper="z:1", pipeline="p:1")


@dataclass
class MemoryBrokers:
    """A cluster's topics; an `error` is what every question gets."""

    views: dict[str, TopicView] = field(default_factory=dict)
    view: ClusterView = VIEW
    error: BrokersError | None = None
    refuses: dict[str, BrokersError] = field(default_factory=dict)
    steps: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    ids: Iterator[int] = field(default_factory=itertools.count)
    # By user: iterations and password of each mechanism, and ACLs.
    credentials: dict[str, dict[str, tuple[int, str]]] = field(default_factory=dict)
    acls: dict[str, set[Acl]] = field(default_factory=dict)
    authorizes: bool = True
    quotas: dict[str, dict[str, float]] = field(default_factory=dict)
    has_quotas: bool = True
    # What each broker advertises.
    addresses: dict[int, str] = field(default_factory=dict)
    # The dynamic settings of all brokers; `refuses` may name one.
    config: dict[str, str] = field(default_factory=dict)

    def describe(self) -> ClusterView:
        """See Brokers."""
        self._answer()
        return self.view

    def elect_preferred_leaders(self) -> None:
        """See Brokers."""
        self._answer()
        self.requests.append("elect")

    def advertised(self, brokers: Collection[int]) -> Mapping[int, str]:
        """See Brokers."""
        self._answer()
        self.requests.append("advertised")
        return {each: self.addresses[each] for each in brokers if each in self.addresses}

    def dynamic_config(self) -> Mapping[str, str]:
        """See Brokers."""
        self._answer()
        self.requests.append("describe all brokers")
        return dict(self.config)

    def alter_dynamic_config(self, change: AlterConfig) -> None:
        """See Brokers."""
        self._answer()
        self.requests.append("alter all brokers")
        for error in (self.refuses.get(name) for name in (*change.put, *change.drop)):
            if error is not None:
                raise error
        self.steps.append(f"all brokers: {change}")
        kept = {name: value for name, value in self.config.items() if name not in change.drop}
        self.config = {**kept, **change.put}

    def topic_names(self) -> frozenset[str]:
        """See Brokers."""
        self._answer()
        self.requests.append("list")
        return frozenset(self.views)

    def topics(self, names: Collection[str]) -> Mapping[str, TopicView | BrokersError]:
        """See Brokers."""
        self._answer()
        self.requests.append("describe")
        return {name: self.views[name] for name in names if name in self.views}

    def create_topics(self, topics: Mapping[str, CreateTopic]) -> Mapping[str, BrokersError]:
        """See Brokers."""
        failed = self._change("create", topics)
        exists = BrokersError("TOPIC_ALREADY_EXISTS", "it exists", reachable=True)
        for name, each in topics.items():
            if name in failed:
                continue
            if name in self.views:
                failed[name] = exists
                continue
            self.views[name] = TopicView(
                name=name,
                topic_id=f"id-{next(self.ids)}",
                partitions=each.partitions,
                replicas=each.replicas,
                config=dict(each.config),
            )
        return failed

    def grow_partitions(self, topics: Mapping[str, GrowPartitions]) -> Mapping[str, BrokersError]:
        """See Brokers."""
        failed = self._change("grow", topics)
        for name in topics.keys() - failed.keys():
            self.views[name] = replace(self.views[name], partitions=topics[name].partitions)
        return failed

    def alter_configs(self, topics: Mapping[str, AlterConfig]) -> Mapping[str, BrokersError]:
        """See Brokers."""
        failed = self._change("alter", topics)
        for name in topics.keys() - failed.keys():
            old, change = self.views[name].config, topics[name]
            kept = {key: value for key, value in old.items() if key not in change.drop}
            self.views[name] = replace(self.views[name], config={**kept, **change.put})
        return failed

    def delete_topics(self, names: Collection[str]) -> Mapping[str, BrokersError]:
        """See Brokers."""
        failed = self._change("delete", names)
        for name in set(names) - failed.keys():
            self.views.pop(name, None)
        return failed

    def users(self, names: Collection[str]) -> Mapping[str, UserView]:
        """See Brokers."""
        if not names:
            return {}
        self._answer()
        self.requests.append("users")
        return {
            name: UserView(
                credentials={m: n for m, (n, _) in self.credentials.get(name, {}).items()},
                acls=frozenset(self.acls.get(name, ())) if self.authorizes else None,
                quotas=dict(self.quotas.get(name, {})) if self.has_quotas else None,
            )
            for name in names
        }

    def alter_credentials(
        self, users: Mapping[str, CredentialChange]
    ) -> Mapping[str, BrokersError]:
        """See Brokers."""
        failed = self._change("credentials", users)
        for name in users.keys() - failed.keys():
            change, kept = users[name], self.credentials.setdefault(name, {})
            for mechanism in change.remove:
                kept.pop(mechanism, None)
            if change.mechanism:
                kept[change.mechanism] = change.iterations, change.password
        return failed

    def alter_acls(self, users: Mapping[str, AclChange]) -> Mapping[str, BrokersError]:
        """See Brokers."""
        failed = self._change("acls", users)
        for name in users.keys() - failed.keys():
            acls = self.acls.setdefault(name, set())
            acls |= users[name].create
            acls -= users[name].delete
        return failed

    def alter_quotas(self, users: Mapping[str, QuotaChange]) -> Mapping[str, BrokersError]:
        """See Brokers."""
        failed = self._change("quotas", users)
        for name in users.keys() - failed.keys():
            kept = {k: v for k, v in self.quotas.get(name, {}).items() if k not in users[name].drop}
            self.quotas[name] = {**kept, **users[name].put}
        return failed

    def _answer(self) -> None:
        if self.error is not None:
            raise self.error

    def _change(self, what: str, names: Collection[str]) -> dict[str, BrokersError]:
        self._answer()
        self.requests.append(what)
        failed = {name: self.refuses[name] for name in names if name in self.refuses}
        self.steps += [f"{what} {name}" for name in names if name not in failed]
        return failed


def context_on(
    kube: Kube, brokers: Brokers | None = None, progress: Progress | None = None
) -> Context:
    """A context whose brokers and pipelines answer as told."""
    cluster = brokers or MemoryBrokers()
    return Context(
        kube=kube,
        brokers=lambda _: cluster,
        progress=lambda _: progress,
        restart_check=lambda *_: CheckResult(ok=True),
        in_sync=lambda *_: CheckResult(ok=True),
        recovery=lambda *_: "",
        ensemble_mode=lambda *_: "standalone",
        images=IMAGES,
        now=NOW,
    )


def user_ledger(kube: MemoryKube, cluster: str = "quickstart") -> dict[str, Any]:
    """The entries of a cluster's users, by their names in Kafka."""
    return {
        entry["user"]: entry
        for (kind, _, name), body in kube.objects.items()
        if kind == "ConfigMap" and name.startswith(f"{cluster}-users-")
        for entry in map(json.loads, body["data"]["users"].splitlines())
    }


def ledger(kube: MemoryKube, cluster: str = "quickstart") -> dict[str, Any]:
    """The entries of a cluster's ledger by topic, as they are stored; others by their lines."""
    found = {}
    for (kind, _, name), body in kube.objects.items():
        if kind == "ConfigMap" and name.startswith(f"{cluster}-topics-"):
            for line in body["data"]["topics"].splitlines():
                try:
                    entry = json.loads(line)
                    found[entry["topic"]] = entry
                except (ValueError, TypeError):
                    found[line] = None
    return found
