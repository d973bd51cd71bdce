"""Writes transactions and turns what they wrote into the next image, for all shells beside it.

The image is read back from the store after each transaction instead of being worked out a second
time, so that it cannot say anything else than what a restart would find.
"""

import logging
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from typing import Final, TypeVar

from barnabas_broker.cluster.failures import each_isolated
from barnabas_broker.cluster.image import MetadataImage
from barnabas_broker.cluster.quota_entity import QuotaConfigs, QuotaEntity
from barnabas_broker.controller.commands import Failures
from barnabas_broker.controller.controller_claim import ControllerClaim, commit_fenced
from barnabas_broker.controller.isolated_writes import commit_each
from barnabas_broker.controller.loading import (
    load_broker_configs,
    load_config,
    load_quota_configs,
    load_topic,
    load_user_configs,
)
from barnabas_broker.zk.store import CoordinationError, CoordinationStore, Operation
from barnabas_broker.zk.znodes import (
    CONFIG_USERS,
    DEFAULT_ENTITY,
    ConfigZnode,
    ControllerEpochZnode,
    TopicZnode,
)
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_zookeeper.errors import NodeExistsError, ZooKeeperError

Listener = Callable[[MetadataImage, MetadataImage], Failures | None]

Key = TypeVar("Key", bound=Hashable)

REFUSALS_LOGGED_MAX: Final = 10
"""So many refused writes of one call are logged; how many there are is logged besides."""

_log = logging.getLogger(__name__)


class MetadataStore:
    """The store, the image of what is in it, and the listeners to its changes.

    `controller_claim` is None until the controller is elected; `stale` says that a write failed in
    a way after which the image may differ from the store, and everything must be read again.
    """

    def __init__(self, store: CoordinationStore) -> None:
        self.store = store
        self.image = MetadataImage(cluster_id="")
        self.claim: ControllerClaim | None = None
        self.failures = 0
        self._failures_mended = 0
        self._listeners: list[Listener] = []

    def load(self, image: MetadataImage) -> None:
        """Begin with an image that the listeners know already."""
        self.image = image

    @property
    def stale(self) -> bool:
        """Whether something failed since everything was last read."""
        return self.failures > self._failures_mended

    def fail(self) -> None:
        """Have everything read again: the image may differ from the store."""
        self.failures += 1

    def mended(self, failures: int) -> None:
        """Everything has been read since there were so many `failures`; later ones count on."""
        self._failures_mended = failures

    @property
    def controller_epoch(self) -> int:
        """The epoch that decisions are made in, 0 before there is one."""
        return 0 if self.claim is None else self.claim.epoch

    def add_listener(self, listener: Listener) -> None:
        """Have `listener(old, new)` called after each change, in the order of adding."""
        self._listeners.append(listener)

    def remove_listener(self, listener: Listener) -> None:
        """Call it for no more changes."""
        self._listeners.remove(listener)

    def commit(
        self,
        operations: Sequence[Operation],
        *,
        topics: Iterable[str] = (),
        configured: Iterable[str] = (),
        removed: Iterable[str] = (),
        broker_configs: bool = False,
        users: Iterable[str] = (),
        quotas: Collection[QuotaEntity] = (),
        now_ms: int,
    ) -> Failures:
        """Commit and publish; the keywords say which parts of the image the operations change.

        `configured` are topics of which only the settings do, `users` those whose settings do,
        `quotas` those whose quotas do.
        Returns what listeners could not do. Raises KafkaError, having logged why, where nothing
        was written or the outcome is unknown: NOT_CONTROLLER when another controller has followed,
        TOPIC_ALREADY_EXISTS when another client was quicker, else UNKNOWN_SERVER_ERROR.
        """
        if not operations:
            return {}
        self.write(operations, now_ms=now_ms)
        with self.reading():
            put = tuple(
                load_topic(self.store, name).with_offline_of(self.image.topics.get(name))
                for name in topics
            )
            put += tuple(
                replace(
                    self.image.topics[name],
                    config=load_config(self.store, ConfigZnode.for_topic(name)),
                )
                for name in configured
            )
            configs = load_broker_configs(self.store) if broker_configs else None
            user_configs = self.read_users([ConfigZnode.for_user(it).name for it in users])
            quota_configs = self.read_quotas(quotas)
        return self.publish(
            self.image.with_changes(
                put=put,
                remove=frozenset(removed),
                broker_configs=configs,
                user_configs=user_configs,
                quota_configs=quota_configs,
            )
        )

    def read_quotas(self, entities: Collection[QuotaEntity]) -> QuotaConfigs | None:
        """The quotas of all once those of these are read again; None for none."""
        if not entities:
            return None
        known = self.image.quota_configs
        others = {it: found for it, found in known.items() if it not in entities}
        return {**others, **load_quota_configs(self.store, entities)}

    def read_users(self, names: Collection[str]) -> Mapping[str, Mapping[str, str]] | None:
        """The settings of all users once those of these znodes are read again; None for none."""
        names = [name for name in names if name != DEFAULT_ENTITY]  # It is no user of that name.
        if not names:
            return None
        users = {ConfigZnode(CONFIG_USERS, name).user for name in names}
        others = {it: found for it, found in self.image.user_configs.items() if it not in users}
        return {**others, **load_user_configs(self.store, names)}

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Turn failures of the store inside into KafkaError, as `commit` does."""
        try:
            yield
        except (CoordinationError, ZooKeeperError) as error:
            raise self._failed(error) from error

    def write(self, operations: Sequence[Operation], *, now_ms: int) -> None:
        """Commit without publishing; raises as `commit`."""
        with self.reading():
            if self.claim is None:
                self.store.commit(operations, now_ms=now_ms)
            else:
                commit_fenced(self.store, self.claim, operations, now_ms=now_ms)

    def write_each(
        self, groups: Mapping[Key, Sequence[Operation]], *, now_ms: int
    ) -> dict[Key, KafkaError]:
        """Commit each group without publishing; returns those that were refused.

        A refused group holds back no other one, and does not make everything `stale`: the caller
        reads again what it concerns. Raises as `commit` where nothing can be written at all.
        """
        with self.reading():
            refused = commit_each(self.store, self.claim, groups, now_ms=now_ms)
        for error in islice(refused.values(), REFUSALS_LOGGED_MAX):
            _log.warning("Write to ZooKeeper rejected: %s", error)
        if len(refused) > REFUSALS_LOGGED_MAX:
            _log.warning("Writes to ZooKeeper rejected: count=%d", len(refused))
        return {key: _refusal(error) for key, error in refused.items()}

    def await_lost_writes(self, *, now_ms: int) -> None:
        """After a failed write: have what is read next show each write that was carried out.

        A member of an ensemble answers reads by what it has, which may be less than was committed
        elsewhere; its answer to a transaction comes after all that was committed before. Does
        nothing while all is known. Raises CoordinationError, ZooKeeperError.
        """
        if self.stale and self.claim is not None:
            self.store.commit([self.claim.fence], now_ms=now_ms)

    def _failed(self, error: CoordinationError | ZooKeeperError) -> KafkaError:
        # Until everything has been read again, the first line has said that ZooKeeper is away.
        known = self.stale and isinstance(error, CoordinationError)
        _log.log(logging.DEBUG if known else logging.ERROR, "%s", error)
        self.fail()
        return _refusal(error)

    def publish(self, image: MetadataImage) -> Failures:
        """Make `image` the current one and call the listeners; returns what they could not do."""
        before, self.image = self.image, image
        failures: dict[str, KafkaError] = {}

        def publish(listener: Listener) -> None:
            failures.update(listener(before, image) or {})

        for failed in each_isolated(self._listeners, publish, "Publishing metadata"):
            raise failed.cause
        return failures


def _refusal(error: CoordinationError | ZooKeeperError) -> KafkaError:
    if isinstance(error, ZooKeeperError):
        if error.path == ControllerEpochZnode.PATH:
            return KafkaError(ErrorCode.NOT_CONTROLLER)
        if isinstance(error, NodeExistsError) and error.path.startswith(TopicZnode.ROOT):
            return KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS)
    return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error))
