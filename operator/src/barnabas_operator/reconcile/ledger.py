"""The ledger of a cluster's topics in ConfigMaps, which are written only when they change."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

from barnabas_operator.api.clusters import KafkaCluster
from barnabas_operator.api.reading import Resource
from barnabas_operator.kube import CONFIG_MAPS, Document, Kube
from barnabas_operator.names import COMPONENT, INSTANCE, ClusterNames
from barnabas_operator.plan.ledger import (
    Ledger,
    StoredLedger,
    changed_shards,
    parse_former_ledger,
    parse_shards,
)
from barnabas_operator.reconcile.ownership import apply_owned, controller
from barnabas_operator.resources import objects

logger = logging.getLogger(__name__)

TOPICS_COMPONENT: Final = "topics"
KEY: Final = "topics"


class LedgerStore:
    """The ledger as it was last read or written. All raise KubeError."""

    def __init__(self, cluster: Resource[KafkaCluster], kube: Kube) -> None:
        self._cluster = cluster
        self._kube = kube
        self._names = ClusterNames(cluster.meta.name, cluster.meta.namespace)
        self._stored = StoredLedger()
        self._versions: dict[int, str] = {}

    @classmethod
    def read(cls, cluster: Resource[KafkaCluster], kube: Kube) -> LedgerStore:
        """The ledger as it is stored; what cannot be parsed is warned about and kept."""
        store = cls(cluster, kube)
        store._read()
        return store

    @property
    def entries(self) -> Ledger:
        """The topics that are deleted with their resources."""
        return self._stored.entries

    def write(self, entries: Ledger) -> None:
        """Store these entries, in the shards that they change."""
        if entries != self._stored.entries:
            self._write(entries)

    def _read(self) -> None:
        names = self._names
        labels = {INSTANCE: names.cluster, COMPONENT: TOPICS_COMPONENT}
        found = {
            each["metadata"]["name"]: each
            for each in self._kube.list(CONFIG_MAPS, names.namespace, labels)
            # One of an earlier cluster of the name is about to be collected as garbage.
            if (owner := controller(each)) is None or owner["uid"] == self._cluster.meta.uid
        }
        texts = {}
        for name, body in found.items():
            suffix = name.removeprefix(names.ledger(0)[:-1])
            if suffix.isdecimal() and name == names.ledger(int(suffix)):
                texts[int(suffix)] = str(_data(body).get(KEY, ""))
                self._versions[int(suffix)] = body["metadata"].get("resourceVersion", "")
        self._stored = parse_shards(texts)
        if former := _data(found.get(names.former_ledger, {})):
            self._migrate(former)
        for lines in self._stored.unparsed.values():
            for line in lines:
                logger.warning(
                    "%s/%s: ledger entry cannot be parsed, its topic is not deleted: %.500s",
                    names.namespace, names.cluster, line,
                )  # fmt: skip

    def _migrate(self, former: Mapping[str, str]) -> None:
        """Move the entries of an earlier version, whose ConfigMap stays behind without any."""
        entries, unparsed = parse_former_ledger(former)
        known = self._stored.unparsed.get(0, ())
        # What is stored already is newer: the former ledger was moved and could not be emptied.
        merged = {**entries, **self._stored.entries}
        self._write(merged, [line for line in unparsed if line not in known])
        apply_owned(self._kube, self._body(self._names.former_ledger, {}))

    def _write(self, entries: Ledger, unparsed: Sequence[str] = ()) -> None:
        stored, texts = changed_shards(self._stored, entries, unparsed)
        for number, text in sorted(texts.items()):
            self._apply(number, text)
        self._stored = stored

    def _apply(self, number: int, text: str) -> None:
        body = self._body(self._names.ledger(number), {KEY: text})
        # Not over what another operator has written since.
        if version := self._versions.get(number):
            body["metadata"]["resourceVersion"] = version
        written = apply_owned(self._kube, body)
        self._versions[number] = written["metadata"].get("resourceVersion", "")

    def _body(self, name: str, data: Mapping[str, str]) -> Document:
        owner, labels = self._cluster.meta, self._names.labels(TOPICS_COMPONENT)
        body = objects.document("v1", "ConfigMap", name, owner=owner, labels=labels)
        body["data"] = dict(data)
        return objects.owned(body, owner=owner, kind=self._cluster.kind)


def _data(body: Mapping[str, Any]) -> Mapping[str, str]:
    return body.get("data") or {}
