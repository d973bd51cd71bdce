"""Looks up the cluster for the client: metadata, partition leaders and coordinators.

Metadata is asked of several addresses, each a moment after the one before, until one answers: a
broker that is away delays the answer by `STAGGER_S`, not by a time-out. Concurrent callers share
one refresh.
"""

import asyncio
import random
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from barnabas_kafka.client.cluster import (
    Address,
    ClusterView,
    CoordinatorOf,
    LeaderOf,
    Placement,
)
from barnabas_kafka.client.config import ClientConfig
from barnabas_kafka.client.errors import (
    AuthenticationError,
    BrokerError,
    ClientClosedError,
    ClientError,
    DisconnectError,
    error_code,
)
from barnabas_kafka.client.pool import Build, Pool
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import NO_NODE, TopicPartition
from barnabas_kafka.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from barnabas_kafka.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from barnabas_kafka.protocol.registry import ApiKey

STAGGER_S: Final = 0.5
METADATA_NEWEST: Final = 12
COORDINATOR_NEWEST: Final = 5
COORDINATOR_BATCH: Final = 4
"""The first version of FindCoordinator with several keys (KIP-699)."""


class Directory:
    """What is known of the cluster, and how more is learnt."""

    def __init__(self, config: ClientConfig, pool: Pool) -> None:
        self._config = config
        self._pool = pool
        self._bootstrap = config.addresses()
        self._refreshing: asyncio.Task[ClusterView] | None = None
        self._loaded_at = float("-inf")
        self.current = ClusterView()
        self.placement = Placement()

    async def view(self, newer_than: float) -> ClusterView:
        """The cluster as it was at `newer_than` or later, by the loop's clock."""
        now = asyncio.get_running_loop().time()
        oldest = max(newer_than, now - self._config.metadata_max_age_s)
        while self._loaded_at < oldest:  # A refresh under way may have begun too early.
            if self._refreshing is None:
                task = asyncio.create_task(self._refresh(), name="refresh of the metadata")
                self._refreshing = task
                task.add_done_callback(self._refreshed)
            refreshing = self._refreshing
            try:
                await asyncio.shield(refreshing)
            except asyncio.CancelledError:
                # Where only the refresh was cancelled, the caller gets the reason.
                if refreshing.cancelled():
                    raise ClientClosedError("the client was closed") from None
                raise
        return self.current

    async def ask_any(self, build: Build) -> Any:
        """The response of any broker; raises the most specific error where none answers."""
        errors: list[ClientError] = []
        asking: set[asyncio.Task[Any]] = set()
        left = self._candidates()
        try:
            while left or asking:
                if left:
                    asking.add(asyncio.create_task(self._pool.ask(left.pop(0), build)))
                done, asking = await asyncio.wait(
                    asking,
                    timeout=STAGGER_S if left else None,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                for each in done:
                    error = each.exception()
                    if error is None:
                        return each.result()
                    if not isinstance(error, ClientError):
                        raise error
                    errors.append(error)
        finally:
            for each in asking:
                each.add_done_callback(_taken_note_of)
                each.cancel()
        for error in errors:
            if isinstance(error, AuthenticationError):
                raise error
        raise errors[-1] if errors else DisconnectError("no bootstrap server is given")

    def address(self, node: int) -> Address | None:
        """Where a broker of the current view listens; for NO_NODE the best of all."""
        if node == NO_NODE:
            return next(iter(self._candidates()), None)
        broker = self.current.brokers.get(node)
        return broker.address if broker else None

    async def find_leaders(self, partitions: Collection[TopicPartition]) -> Mapping[Any, Any]:
        """The leader of each partition, or the error of a partition that has none."""
        topics = sorted({each.topic for each in partitions})

        def build(connection: Any) -> tuple[MetadataRequest, int]:
            request = MetadataRequest(
                topics=[MetadataRequestTopic(name=name) for name in topics],
                allow_auto_topic_creation=False,
            )
            return request, connection.version(ApiKey.METADATA, METADATA_NEWEST)

        response: MetadataResponse = await self.ask_any(build)
        found: dict[TopicPartition, int | ClientError] = {}
        for topic in response.topics:
            name = topic.name or ""
            for each in topic.partitions:
                code = each.error_code if each.leader_id < 0 else ErrorCode.NONE
                found[TopicPartition(name, each.partition_index)] = (
                    BrokerError(code) if code else each.leader_id
                )
        unknown = {topic.name: topic.error_code for topic in response.topics if topic.error_code}
        missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        result: dict[Any, int | ClientError] = {}
        for each_partition in partitions:
            fallback = BrokerError(unknown.get(each_partition.topic, missing))
            result[LeaderOf(each_partition)] = found.get(each_partition, fallback)
        return result

    async def find_coordinators(self, wanted: Sequence[CoordinatorOf]) -> Mapping[Any, Any]:
        """The coordinator of each group or transactional id, or an error."""
        found: dict[Any, int | ClientError] = {}
        for kind in {each.type for each in wanted}:
            left = [each.key for each in wanted if each.type is kind]
            while left:
                response = await self.ask_any(_coordinator_request(kind, left))
                answered = _coordinators(response, left)
                found |= {CoordinatorOf(kind, key): node for key, node in answered.items()}
                left = [key for key in left if key not in answered]
        return found

    async def close(self) -> None:
        """End the refresh under way."""
        if self._refreshing is not None:
            self._refreshing.cancel()

    async def _refresh(self) -> ClusterView:
        started = asyncio.get_running_loop().time()

        def build(connection: Any) -> tuple[MetadataRequest, int]:
            version = connection.version(ApiKey.METADATA, METADATA_NEWEST)
            return MetadataRequest(topics=[], allow_auto_topic_creation=version < 4), version

        view = ClusterView.of(await self.ask_any(build))
        if not view.brokers:
            raise BrokerError(
                ErrorCode.LEADER_NOT_AVAILABLE, "the broker has no metadata of the cluster yet"
            )
        self.current, self._loaded_at = view, started
        live = {broker.address for broker in view.brokers.values()}
        self._pool.keep_only(live | set(self._bootstrap))
        return view

    def _refreshed(self, task: "asyncio.Task[ClusterView]") -> None:
        self._refreshing = None
        _taken_note_of(task)

    def _candidates(self) -> list[Address]:
        """In a random order: what is connected, what was not tried yet, what has failed lately."""
        known = [broker.address for broker in self.current.brokers.values()]
        random.shuffle(known)
        bootstrap = [address for address in self._bootstrap if address not in known]
        random.shuffle(bootstrap)
        return sorted(known + bootstrap, key=self._pool.rank)


def _coordinator_request(
    kind: int, keys: Sequence[str]
) -> Callable[[Any], tuple[FindCoordinatorRequest, int]]:
    """Builds the request: for all keys, or in old versions for the first one."""

    def build(connection: Any) -> tuple[FindCoordinatorRequest, int]:
        version: int = connection.version(ApiKey.FIND_COORDINATOR, COORDINATOR_NEWEST)
        if version >= COORDINATOR_BATCH:
            request = FindCoordinatorRequest(key_type=kind, coordinator_keys=list(keys))
        else:
            request = FindCoordinatorRequest(key_type=kind, key=keys[0])
        return request, version

    return build


def _coordinators(
    response: FindCoordinatorResponse, keys: Sequence[str]
) -> Mapping[str, int | ClientError]:
    """The coordinators of the keys that the response is about, at least one."""
    if not response.coordinators:
        return {keys[0]: _node(response.error_code, response.error_message, response.node_id)}
    missing = BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    found: dict[str, int | ClientError] = dict.fromkeys(keys, missing)
    for each in response.coordinators:
        if each.key in found:
            found[each.key] = _node(each.error_code, each.error_message, each.node_id)
    return found


def _node(code: int, message: str | None, node: int) -> int | ClientError:
    return BrokerError(error_code(code), message) if code else node


def _taken_note_of(task: "asyncio.Task[Any]") -> None:
    """Retrieve the error of a task that nothing waits for any more."""
    if not task.cancelled():
        task.exception()
