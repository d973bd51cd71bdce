"""ACLs in the coordination data: read, changed, and read again when another broker changes them.

Every call blocks, in the one thread of the manager (`server.control.acl_manager`). Rules are
published as soon as they are known to be stored, so that a client which adds a rule finds it in
effect on this broker with the response. A change is one transaction with its announcement: no
broker misses it.
"""

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from random import Random
from typing import Final

from barnabas_broker.controller.writes import create_parents
from barnabas_broker.security.acls import (
    AccessControlEntry,
    AclOperation,
    Entries,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
    from_kafka_name,
    kafka_name,
)
from barnabas_broker.security.authorizer import AclAuthorizer
from barnabas_broker.server.control.change_notifications import ChangeNotifications
from barnabas_broker.zk import acl_znodes
from barnabas_broker.zk.acl_znodes import AclZnode, Entry
from barnabas_broker.zk.names import is_znode_name
from barnabas_broker.zk.store import (
    CoordinationError,
    CoordinationStore,
    Create,
    Delete,
    Operation,
    SetData,
    operation_bytes,
)
from barnabas_broker.zk.znodes import MalformedZnodeError
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_zookeeper.errors import BadVersionError, NodeExistsError, NoNodeError

logger = logging.getLogger(__name__)

TRIES_MAX: Final = 10
PAUSE_S: Final = (0.1, 0.15)
"""How often a change that another broker's crosses is tried, and the pauses between, as Kafka's."""

READ_AT_ONCE: Final = 500
"""Znodes that one call reads."""

Change = Callable[[Entries], Entries]


class AclStore:
    """The ACLs of a cluster; what is known of them is what the authorizer has."""

    def __init__(
        self, store: CoordinationStore, authorizer: AclAuthorizer, *, random: Random
    ) -> None:
        self._store = store
        self._authorizer = authorizer
        self._random = random
        self._notifications = {
            pattern: ChangeNotifications(store, root)
            for pattern, root in acl_znodes.CHANGE_ROOTS.items()
        }

    def load(self, *, now_ms: int) -> None:
        """Make Kafka's znodes where they are missing, watch for changes, and read everything.

        Raises CoordinationError, ZooKeeperError; MalformedZnodeError where a broker would begin
        without knowing a rule.
        """
        self._make_parents(now_ms)
        self._watch()
        self._publish_all(self._read(self._listed()))

    def catch_up(self, *, now_ms: int, everything: bool) -> None:
        """Read what was announced since, or everything; what cannot be read stays as it was.

        Raises as `load`, but for MalformedZnodeError.
        """
        if everything:
            self._make_parents(now_ms)
        announced = self._watch()
        known = self._authorizer.rules.entries
        if everything:
            self._publish_all(self._read(self._listed(), known))
            return
        changed = self._read(announced, known)
        self._publish(changed)
        for pattern, entries in changed.items():
            logger.info("Processing ACL change notification for %s: %d", pattern, len(entries))

    def update(self, pattern: ResourcePattern, change: Change, *, now_ms: int) -> None:
        """Have `change` say what is to be said of a pattern, given what is; then it is in effect.

        It is asked again where others changed the same meanwhile. Raises KafkaError
        INVALID_REQUEST where there can be no such znode, CoordinationError, ZooKeeperError.
        """
        if not is_znode_name(pattern.name):
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Invalid resource name {pattern.name!r}")
        znode = _znode(pattern)
        for _ in range(TRIES_MAX):
            entries, version = self._entries(znode, pattern)
            changed = change(entries)
            if changed == entries:
                self._publish({pattern: entries})
                return
            write = self._write(znode, changed, version)
            announcement = Create(
                znode.change_path, znode.encode_change(pattern.type.name), sequential=True
            )
            operations = [write, *self._notifications[znode.pattern].expired(now_ms), announcement]
            if sum(map(operation_bytes, operations)) > self._store.transaction_bytes_max:
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"too many ACLs of {pattern}")
            try:
                self._store.commit(operations, now_ms=now_ms)
            except (BadVersionError, NodeExistsError, NoNodeError):
                time.sleep(self._random.uniform(*PAUSE_S))
                continue
            logger.info("Updated ACLs for %s: %d entries", pattern, len(changed))
            self._publish({pattern: changed})
            return
        raise CoordinationError(f"lost {TRIES_MAX} races for the ACLs of {pattern}")

    def _entries(self, znode: AclZnode, pattern: ResourcePattern) -> tuple[Entries, int | None]:
        try:
            data, stat = self._store.get(znode.path)
        except NoNodeError:
            return frozenset(), None
        return entries_of(znode, data), stat.version

    def _write(self, znode: AclZnode, entries: Entries, version: int | None) -> Operation:
        data = znode.encode(map(_written, entries))
        if version is None:
            return Create(znode.path, data)
        if entries:
            return SetData(znode.path, data, version)
        return Delete(znode.path, version)

    def _make_parents(self, now_ms: int) -> None:
        wanted = [
            f"{root}/{kind}" for root in acl_znodes.ROOTS.values() for kind in acl_znodes.TYPES
        ]
        wanted += acl_znodes.CHANGE_ROOTS.values()
        create_parents(self._store, wanted, now_ms=now_ms, purpose="the znodes of ACLs")

    def _watch(self) -> list[ResourcePattern]:
        """Watch for announcements; the patterns that new ones name."""
        named: dict[ResourcePattern, None] = {}
        for notifications in self._notifications.values():
            for path, data in notifications.watch():
                try:
                    named[_announced(path, data)] = None
                except MalformedZnodeError as error:
                    logger.error("ACL change notification ignored: %s", error)
        return list(named)

    def _listed(self) -> list[ResourcePattern]:
        """Every pattern that has a znode."""
        patterns = []
        for kind, root in acl_znodes.ROOTS.items():
            for name in self._store.children(root):
                of = from_kafka_name(ResourceType, name)
                if of in (ResourceType.UNKNOWN, ResourceType.ANY):
                    logger.warning("Ignoring unknown resource type %s in %s", name, root)
                    continue
                patterns += [
                    ResourcePattern(of, each, PatternType[kind])
                    for each in self._store.children(f"{root}/{name}")
                ]
        return patterns

    def _read(
        self,
        patterns: Iterable[ResourcePattern],
        known: Mapping[ResourcePattern, Entries] | None = None,
    ) -> dict[ResourcePattern, Entries]:
        """What is stored of each; of one that cannot be read what is `known`, else it is raised."""
        wanted = list(patterns)
        read: dict[ResourcePattern, Entries] = {}
        for start in range(0, len(wanted), READ_AT_ONCE):
            some = wanted[start : start + READ_AT_ONCE]
            znodes = [_znode(pattern) for pattern in some]
            found = self._store.get_many([znode.path for znode in znodes])
            for pattern, znode, each in zip(some, znodes, found, strict=True):
                try:
                    read[pattern] = frozenset() if each is None else entries_of(znode, each[0])
                except MalformedZnodeError as error:
                    if known is None:
                        raise
                    logger.error("Malformed ACL znode: %s; keeping the previous ACLs", error)
                    read[pattern] = known.get(pattern, frozenset())
        return read

    def _publish(self, changed: Mapping[ResourcePattern, Entries]) -> None:
        known = self._authorizer.rules
        if any(known.entries.get(at, frozenset()) != each for at, each in changed.items()):
            self._authorizer.publish(known.with_entries(changed))

    def _publish_all(self, found: Mapping[ResourcePattern, Entries]) -> None:
        gone = self._authorizer.rules.entries.keys() - found.keys()
        self._publish({**dict.fromkeys(gone, frozenset()), **found})


def _znode(pattern: ResourcePattern) -> AclZnode:
    return AclZnode(pattern.pattern.name, kafka_name(pattern.type), pattern.name)


def entries_of(znode: AclZnode, data: bytes | None) -> Entries:
    """What a znode says. Raises MalformedZnodeError."""
    return frozenset(
        AccessControlEntry(
            each.principal,
            each.host,
            from_kafka_name(AclOperation, each.operation),
            from_kafka_name(Permission, each.permission),
        )
        for each in znode.decode(data)
    )


def _written(entry: AccessControlEntry) -> Entry:
    names = kafka_name(entry.permission), kafka_name(entry.operation)
    return Entry(entry.principal, *names, entry.host)


def _announced(path: str, data: bytes | None) -> ResourcePattern:
    pattern, kind, name = acl_znodes.decode_change(path, data)
    of = from_kafka_name(ResourceType, kind)
    if pattern not in acl_znodes.ROOTS or of in (ResourceType.UNKNOWN, ResourceType.ANY):
        raise MalformedZnodeError(path, f"ACLs of {pattern} {kind} are not known here")
    if not is_znode_name(name):
        raise MalformedZnodeError(path, "no znode can have that name")
    return ResourcePattern(of, name, PatternType[pattern])
