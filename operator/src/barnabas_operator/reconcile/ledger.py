"""The ledgers of a cluster's topics and users in ConfigMaps, which are written only on changes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Generic, Self

from barnabas_operator.api.clusters import KafkaCluster
from barnabas_operator.api.reading import Resource
from barnabas_operator.kube import CONFIG_MAPS, TOPICS, USERS, Document, Kind, Kube
from barnabas_operator.names import COMPONENT, INSTANCE, ClusterNames
from barnabas_operator.plan.ledger import FORMAT, LedgerEntry, parse_former_ledger
from barnabas_operator.plan.orphans import EntryT
from barnabas_operator.plan.shards import Format, Stored, change, parse
from barnabas_operator.plan.user_ledger import FORMAT as USER_FORMAT
from barnabas_operator.plan.user_ledger import UserEntry
from barnabas_operator.reconcile.definitions import definition_uid
from barnabas_operator.reconcile.ownership import apply_owned, controller
from barnabas_operator.resources import objects

logger = logging.getLogger(__name__)

TOPICS_COMPONENT: Final = "topics"
USERS_COMPONENT: Final = "users"


class ShardStore(Generic[EntryT]):
    """A ledger as it was last read or written. All raise KubeError."""

    #: the label, and the end of the ConfigMaps' names before their numbers
    _component: str
    _kind: Kind
    _format: Format[EntryT]

    def __init__(self, cluster: Resource[KafkaCluster], kube: Kube) -> None:
        self._definition: str | None = None
        self._cluster = cluster
        self._kube = kube
        self._names = ClusterNames(cluster.meta.name, cluster.meta.namespace)
        self._stored: Stored[EntryT] = Stored()
        self._versions: dict[int, str] = {}

    @classmethod
    def read(
        cls,
        cluster: Resource[KafkaCluster],
        kube: Kube,
        is_new: Callable[[str], bool] = lambda _: True,
    ) -> Self:
        """The ledger as it is stored; what cannot be parsed is warned about, if it is new, and
        kept."""
        store = cls(cluster, kube)
        store._read(is_new)
        return store

    @property
    def entries(self) -> Mapping[str, EntryT]:
        """The entries, by their names in Kafka."""
        return self._stored.entries

    @property
    def unparsed(self) -> Mapping[int, tuple[str, ...]]:
        """Lines that cannot be parsed, by shard."""
        return self._stored.unparsed

    def write(self, entries: Mapping[str, EntryT]) -> None:
        """Store these entries, in the shards that they change."""
        entries = {name: self._with_definition(name, entry) for name, entry in entries.items()}
        if entries != self._stored.entries:
            self._write(entries)

    def _with_definition(self, name: str, entry: EntryT) -> EntryT:
        """The entry with the definition of its resource, which stays the one that it was."""
        before = self._stored.entries.get(name)
        if before is not None and before.definition and before.uid == entry.uid:
            # A pass writes thousands, of which few have changed: these are not copied.
            unchanged = entry.definition == before.definition
            return entry if unchanged else replace(entry, definition=before.definition)
        if self._definition is None:
            self._definition = definition_uid(self._kind, self._kube)
        return replace(entry, definition=self._definition)

    def _read(self, is_new: Callable[[str], bool]) -> None:
        found = self._config_maps()
        texts = {}
        for name, body in found.items():
            suffix = name.removeprefix(self._name(0)[:-1])
            if suffix.isdecimal() and name == self._name(int(suffix)):
                texts[int(suffix)] = str(_data(body).get(self._component, ""))
                self._versions[int(suffix)] = body["metadata"].get("resourceVersion", "")
        self._stored = parse(texts, self._format)
        self._take_over(found)
        for lines in self._stored.unparsed.values():
            for line in filter(is_new, lines):
                logger.warning(
                    "%s/%s: ledger entry cannot be parsed, its %s is not deleted: %.500s",
                    self._names.namespace, self._names.cluster, self._format.key, line,
                )  # fmt: skip

    def _take_over(self, found: Mapping[str, Document]) -> None:
        """What an earlier version may have stored in another way."""

    def _config_maps(self) -> dict[str, Document]:
        labels = {INSTANCE: self._names.cluster, COMPONENT: self._component}
        return {
            each["metadata"]["name"]: each
            for each in self._kube.list(CONFIG_MAPS, self._names.namespace, labels)
            # One of an earlier cluster of the name is about to be collected as garbage.
            if (owner := controller(each)) is None or owner["uid"] == self._cluster.meta.uid
        }

    def _name(self, shard: int) -> str:
        return self._names.ledger(shard, self._component)

    def _write(self, entries: Mapping[str, EntryT], unparsed: Sequence[str] = ()) -> None:
        stored, texts = change(self._stored, entries, self._format, unparsed)
        # An entry that moves is in its later shard before it leaves the earlier one.
        for number, text in sorted(texts.items(), reverse=True):
            self._apply(number, text)
        self._stored = stored

    def _apply(self, number: int, text: str) -> None:
        body = self._body(self._name(number), {self._component: text})
        # Not over what another operator has written since.
        if version := self._versions.get(number):
            body["metadata"]["resourceVersion"] = version
        written = apply_owned(self._kube, body)
        self._versions[number] = written["metadata"].get("resourceVersion", "")

    def _body(self, name: str, data: Mapping[str, str]) -> Document:
        owner, labels = self._cluster.meta, self._names.labels(self._component)
        body = objects.document("v1", "ConfigMap", name, owner=owner, labels=labels)
        body["data"] = dict(data)
        return objects.owned(body, owner=owner, kind=self._cluster.kind)


class LedgerStore(ShardStore[LedgerEntry]):
    """The topics that are deleted with their resources."""

    _component = TOPICS_COMPONENT
    _kind = TOPICS
    _format = FORMAT

    def _take_over(self, found: Mapping[str, Document]) -> None:
        """Move the entries of an earlier version, whose ConfigMap stays behind without any."""
        former = _data(found.get(self._names.former_ledger, {}))
        if not former:
            return
        entries, unparsed = parse_former_ledger(former)
        known = self._stored.unparsed.get(0, ())
        # What is stored already is newer: the former ledger was moved and could not be emptied.
        merged = {**entries, **self._stored.entries}
        self._write(merged, [line for line in unparsed if line not in known])
        apply_owned(self._kube, self._body(self._names.former_ledger, {}))


class UserLedgerStore(ShardStore[UserEntry]):
    """The users that the operator manages."""

    _component = USERS_COMPONENT
    _kind = USERS
    _format = USER_FORMAT


def _data(body: Mapping[str, Any]) -> Mapping[str, str]:
    return body.get("data") or {}
