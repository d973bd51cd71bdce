"""The asyncio admin client: carries out operations within one deadline each.

    async with AsyncAdmin(ClientConfig(bootstrap_servers="localhost:9092")) as admin:
        results = await admin.call(create_topics([NewTopic("orders", partitions=6)]))

A call is a loop of rounds: place the keys without a result on brokers, ask these brokers at the
same time, take the outcomes, pause. `progress` decides what is retried.
"""

import asyncio
import random
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

from barnabas_kafka.client.cluster import (
    Controller,
    CoordinatorOf,
    LeaderOf,
    OneBroker,
)
from barnabas_kafka.client.config import ClientConfig
from barnabas_kafka.client.directory import Directory
from barnabas_kafka.client.errors import (
    BrokerError,
    ClientClosedError,
    ClientError,
    DeadlineExceededError,
    DisconnectError,
    MalformedResponseError,
)
from barnabas_kafka.client.operation import Ask, Operation
from barnabas_kafka.client.pool import Pool
from barnabas_kafka.client.progress import Group, Progress, backoff_s
from barnabas_kafka.client.transport import BrokerConnection
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.schema import Request

T = TypeVar("T")


class AsyncAdmin:
    """An admin client for one event loop. Close it, or use it as a context manager."""

    def __init__(self, config: ClientConfig) -> None:
        """Nothing is connected before the first call. Raises ValueError for a bad address."""
        self._config = config
        self._pool = Pool(config)
        self._directory = Directory(config, self._pool)
        self._closed = False

    async def call(self, operation: Operation[T], *, timeout_s: float | None = None) -> T:
        """The result of an operation.

        Raises ClientError where all of it failed; an operation on several keys gives `Results` with
        an error for each key that failed, DeadlineExceededError for those that were not completed
        in time. Without `timeout_s` it is the time of the configuration.
        """
        if self._closed:
            raise ClientClosedError("the client is closed")
        limit_s = self._config.timeout_s if timeout_s is None else timeout_s
        call = _Call(self._config, self._pool, self._directory, operation, limit_s)
        return operation.finish(await call.run())

    async def close(self) -> None:
        """Close all connections; calls under way fail. The client cannot be used any more."""
        self._closed = True
        await self._directory.close()
        self._pool.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


class _Call:
    """One operation under way."""

    def __init__(
        self,
        config: ClientConfig,
        pool: Pool,
        directory: Directory,
        operation: Operation[Any],
        timeout_s: float,
    ) -> None:
        self._config = config
        self._pool = pool
        self._directory = directory
        self._operation = operation
        self._timeout_s = timeout_s
        self._loop = asyncio.get_running_loop()
        self._started = self._loop.time()
        self._newer_than = float("-inf")
        self._reason: ClientError | None = None
        self._progress: Progress | None = None

    async def run(self) -> Any:
        """The results; raises ClientError where there are none."""
        try:
            async with asyncio.timeout(self._timeout_s):
                keys = self._operation.keys
                if keys is None:
                    keys = sorted((await self._view()).brokers)
                self._progress = Progress(self._operation, keys)
                await self._rounds(self._progress)
        except TimeoutError:
            if self._progress is None:
                text = f"{self._operation.name} did not complete in {self._timeout_s:g} s"
                reason = f": {self._reason}" if self._reason else ""
                raise DeadlineExceededError(text + reason) from None
            self._progress.expire(self._timeout_s, self._reason)
        return self._progress.results()

    async def _rounds(self, progress: Progress) -> None:
        while progress.pending:
            nodes = await self._place(progress)
            groups = progress.groups(nodes)
            async with asyncio.TaskGroup() as attempts:
                for group in groups:
                    attempts.create_task(self._attempt(progress, group))
            self._drop_outdated(progress)
            if progress.pending:
                await asyncio.sleep(progress.pause_s(random.random()))  # noqa: S311

    async def _view(self) -> Any:
        """The cluster, as new as this call needs it; waits for a broker that answers."""
        attempt = 0
        while True:
            try:
                return await self._directory.view(self._newer_than)
            except ClientError as error:
                if not error.retriable:
                    raise
                self._reason = error
            attempt += 1
            await asyncio.sleep(backoff_s(attempt, random.random()))  # noqa: S311

    async def _place(self, progress: Progress) -> dict[Any, int]:
        """The broker of each pending key. A key that cannot be placed fails, perhaps for now."""
        view = await self._view()
        placement = self._directory.placement
        targets = {key: self._operation.target(key) for key in progress.pending}
        unknown = {each for each in targets.values() if placement.node(view, each) is None}
        problems: dict[Any, ClientError] = {}
        problems |= await self._look_up([e for e in unknown if isinstance(e, LeaderOf)])
        problems |= await self._look_up([e for e in unknown if isinstance(e, CoordinatorOf)])
        nodes: dict[Any, int] = {}
        for key, target in targets.items():
            node = placement.node(view, target)
            if target in problems:
                progress.fail([key], problems[target])
            elif node is None:
                progress.fail([key], _not_placed(target))
            elif isinstance(target, OneBroker) and node not in view.brokers:
                self._fail_absent(progress, key, node)
            else:
                nodes[key] = node
        return nodes

    def _fail_absent(self, progress: Progress, key: Any, node: int) -> None:
        """A broker that is not in the metadata: absent if the metadata is newer than the call."""
        if self._newer_than >= self._started:
            error = f"broker {node} is not registered"
            progress.fail([key], BrokerError(ErrorCode.BROKER_NOT_AVAILABLE, error))
        else:
            self._newer_than = self._started

    async def _look_up(self, wanted: Sequence[Any]) -> dict[Any, ClientError]:
        """Learn where these leaders or coordinators are; the errors of those that have none."""
        if not wanted:
            return {}
        try:
            if isinstance(wanted[0], LeaderOf):
                found = await self._directory.find_leaders([each.partition for each in wanted])
            else:
                found = await self._directory.find_coordinators(wanted)
        except ClientError as error:
            return dict.fromkeys(wanted, error)
        problems = {each: node for each, node in found.items() if isinstance(node, ClientError)}
        self._directory.placement.learn(
            {each: node for each, node in found.items() if each not in problems}
        )
        return problems

    async def _attempt(self, progress: Progress, group: Group) -> None:
        """Ask one broker about its keys; the outcome goes to `progress`."""
        operation = self._operation
        asked: list[Ask[Any]] = []

        def build(connection: BrokerConnection) -> tuple[Request, int]:
            version = connection.version(operation.api_key, operation.newest)
            asked[:] = [Ask(group.keys, version, group.node, self._timeout_ms())]
            return operation.request(asked[0]), version

        try:
            address = self._directory.address(group.node)
            if address is None:
                raise DisconnectError(f"broker {group.node} has left the cluster")
            response = await self._pool.ask(address, build)
            throttle_ms = getattr(response, "throttle_time_ms", 0)
            progress.take(group.keys, operation.read(asked[0], response), throttle_ms)
        except ClientError as error:
            progress.fail(group.keys, error)
        except ValueError as error:  # A number that is newer than the enumerations here.
            text = f"cannot read the response to {operation.name}: {error}"
            progress.fail(group.keys, MalformedResponseError(text))

    def _timeout_ms(self) -> int:
        left_s = self._started + self._timeout_s - self._loop.time()
        return max(1, int(min(left_s, self._config.request_timeout_s) * 1000))

    def _drop_outdated(self, progress: Progress) -> None:
        outdated, progress.outdated = progress.outdated, set()
        if outdated:
            self._newer_than = self._loop.time()
        self._directory.placement.forget(outdated)


def _not_placed(target: Any) -> ClientError:
    if isinstance(target, Controller):
        return BrokerError(ErrorCode.NOT_CONTROLLER, "the cluster has no active controller")
    return BrokerError(
        ErrorCode.NOT_COORDINATOR, f"the metadata does not have the broker of {target}"
    )
