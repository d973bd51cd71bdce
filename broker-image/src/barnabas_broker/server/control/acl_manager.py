"""The authorizer of a broker whose `authorizer.class.name` is Kafka's, and the thread of its ACLs.

`AclAuthorizer` answers from rules in memory. They are loaded before any client is served, and read
again when another broker announces a change or the session with ZooKeeper was away: a task sees to
that, and is down, as `/ready` says, while it cannot. Until then the rules known last apply.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from random import SystemRandom
from typing import Final, TypeVar

from barnabas_broker.cluster.failures import refusal
from barnabas_broker.security.acl_filters import AclFilter
from barnabas_broker.security.acl_rules import Rules
from barnabas_broker.security.acls import AclBinding, Entries, ResourcePattern
from barnabas_broker.security.authorizer import AclAuthorizer
from barnabas_broker.server.control.acl_store import AclStore
from barnabas_broker.server.control.change_notifications import ChangeNotificationListener
from barnabas_broker.server.process.startup import StartupError
from barnabas_broker.zk.acl_znodes import CHANGE_ROOTS
from barnabas_broker.zk.store import CoordinationError, CoordinationStore
from barnabas_broker.zk.znodes import MalformedZnodeError
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.settings import broker as keys
from barnabas_kafka.settings.broker import BrokerSettings
from barnabas_zookeeper.errors import ZooKeeperError

logger = logging.getLogger(__name__)

OWN_ENSEMBLE_PREFIX: Final = "authorizer.zookeeper."

Result = TypeVar("Result")


def rules_from(settings: BrokerSettings) -> Rules | None:
    """Rules without any ACL yet, as the settings have it; None where there is no authorizer.

    Raises StartupError for what the authorizer's settings cannot be.
    """
    if not settings[keys.AUTHORIZER_CLASS_NAME]:
        return None
    from barnabas_broker.security.acl_settings import authorizer_settings

    given = settings.explicit
    for other in sorted(each for each in given if each.startswith(OWN_ENSEMBLE_PREFIX)):
        raise StartupError(f"{other}: ACLs are kept where zookeeper.connect points; remove it")
    try:
        super_users, allow_without = authorizer_settings(given)
    except ValueError as error:
        raise StartupError(str(error)) from error
    return Rules(super_users=super_users, allow_without=allow_without)


class AclManager(ChangeNotificationListener):
    """Keeps an authorizer's rules; `load` once, then `start`, in the end `stop`. On the loop."""

    def __init__(
        self, store: CoordinationStore, rules: Rules, *, clock_ms: Callable[[], int]
    ) -> None:
        self.authorizer: Final = AclAuthorizer(rules, monotonic_s=time.monotonic)
        self._acls = AclStore(store, self.authorizer, random=SystemRandom())
        super().__init__("acls", self._acls, CHANGE_ROOTS.values(), clock_ms=clock_ms)

    async def load(self) -> None:
        """Read all ACLs. Raises CoordinationError, MalformedZnodeError, in one line."""
        try:
            await self._run(lambda: self._acls.load(now_ms=self._clock_ms()))
        except ZooKeeperError as error:
            raise CoordinationError(f"the ACLs cannot be read: {error}") from error
        count = sum(map(len, self.authorizer.rules.entries.values()))
        logger.info("Loaded %d ACLs of %d patterns", count, len(self.authorizer.rules.entries))

    def create(self, bindings: Sequence[AclBinding]) -> "asyncio.Future[list[KafkaError | None]]":
        """Add rules; for each what went wrong. Those that are done are in effect then."""
        return self._run(lambda: self._create(bindings))

    def delete(
        self, filters: Sequence[AclFilter]
    ) -> "asyncio.Future[list[dict[AclBinding, KafkaError | None]]]":
        """Delete rules; for each filter the rules that it was the first to find.

        With each what went wrong.
        """
        return self._run(lambda: self._delete(filters))

    # --- in the thread

    def _create(self, bindings: Sequence[AclBinding]) -> list[KafkaError | None]:
        by_pattern: dict[ResourcePattern, list[AclBinding]] = {}
        for binding in bindings:
            by_pattern.setdefault(binding.pattern, []).append(binding)
        failures: dict[ResourcePattern, KafkaError | None] = {}
        for pattern, some in by_pattern.items():
            added = frozenset(each.entry for each in some)
            failures[pattern] = self._update(pattern, added.union)
        return [failures[each.pattern] for each in bindings]

    def _delete(self, filters: Sequence[AclFilter]) -> list[dict[AclBinding, KafkaError | None]]:
        deleted: list[dict[AclBinding, KafkaError | None]] = [{} for _ in filters]
        patterns = dict.fromkeys(self.authorizer.rules.entries)
        for wanted in filters:
            patterns |= dict.fromkeys(wanted.named_patterns())
        for pattern in patterns:
            concerned = [at for at, wanted in enumerate(filters) if wanted.covers(pattern)]
            if not concerned:
                continue
            found: dict[AclBinding, int] = {}

            def left(
                had: Entries,
                found: dict[AclBinding, int] = found,
                concerned: list[int] = concerned,
                pattern: ResourcePattern = pattern,
            ) -> Entries:
                found.clear()
                for entry in had:
                    for at in concerned:
                        if filters[at].matches(entry):
                            found[AclBinding(pattern, entry)] = at
                            break
                return had - {binding.entry for binding in found}

            failure = self._update(pattern, left)
            for binding, at in found.items():
                deleted[at][binding] = failure
        return deleted

    def _update(
        self, pattern: ResourcePattern, change: Callable[[Entries], Entries]
    ) -> KafkaError | None:
        try:
            self._acls.update(pattern, change, now_ms=self._clock_ms())
        except KafkaError as error:
            return error
        except (CoordinationError, ZooKeeperError, MalformedZnodeError) as error:
            logger.error("Failed to update ACLs for %s: %s", pattern, error)
            self.on_znode_change(None)  # It may or may not be stored.
            return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"Failed to update ACLs: {error}")
        except Exception as error:  # One pattern that fails must not leave the others undone.
            self.on_znode_change(None)
            return refusal(error, "Updating ACLs", pattern)
        return None
