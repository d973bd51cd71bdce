"""A leader without a network and its followers, which keep fetch sessions as the product does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from barnabas_broker.cluster.image import (
    BrokerRegistration,
    MetadataImage,
    PartitionState,
    TopicImage,
)
from barnabas_broker.log.directories import LogDirectories
from barnabas_broker.log.files import FileSlice
from barnabas_broker.log.validator import validate_produce
from barnabas_broker.replica.context import ReplicationContext
from barnabas_broker.replica.fetch_session import SessionCache
from barnabas_broker.replica.follower import AskRecords
from barnabas_broker.replica.follower_session import FollowerSession
from barnabas_broker.replica.isr import IsrChange
from barnabas_broker.replica.leader_session import Wanted, WantedPartitions
from barnabas_broker.replica.manager import ReplicaManager
from barnabas_broker.replica.partition import Partition
from barnabas_broker.replica.replication_quota import ReplicationQuota, ReplicationQuotas
from barnabas_broker.replica.topic_rules import TopicRules
from barnabas_broker.security.authorizer import AllowAll
from barnabas_broker.security.principals import Principal
from barnabas_broker.server.peers.replication.leader_end_point import FetchLimits, LeaderEndPoint
from barnabas_broker.server.requests import follower_fetches
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol.messages.fetch import (
    FetchRequest,
    FetchResponse,
)
from barnabas_kafka.protocol.registry import ApiKey
from barnabas_kafka.records.builder import build_batch
from barnabas_kafka.settings.broker import BrokerSettings
from barnabas_kafka.settings.topic import TopicSettings

NOW_MS = 1_700_000_000_000
LEADER, FOLLOWERS, PARTITIONS = 1, (2, 3), 3
T_ID = UUID(int=7)
BATCH = bytes(build_batch([(NOW_MS, None, b"x", ())]))
VERSION = 15
WIDE = FetchLimits(max_wait_ms=0, min_bytes=1, max_bytes=1 << 30, partition_max_bytes=1 << 20)


def tp_of(index: int) -> TopicPartition:
    """A partition of the topic."""
    return TopicPartition("t", index)


class Leader:
    """A broker that leads all partitions, without a network: requests are put to its handler."""

    def __init__(self, directory: Path, *, sessions: int, partitions: int = PARTITIONS) -> None:
        self.now_ms = 1_000_000
        self.logs = LogDirectories.take([directory])
        self.logs.claim(broker_id=LEADER, cluster_id="c")
        self.asked: list[tuple[Partition, IsrChange]] = []
        given_settings = BrokerSettings({})
        self.manager = ReplicaManager(
            LEADER,
            self.logs,
            rules_for=lambda topic: TopicRules(
                TopicSettings.resolve(given_settings, topic.config),
                topic=topic.name,
                internal=False,
                producer_id_expiration_ms=1000,
            ),
            clock_ms=lambda: NOW_MS,
            flush_soon=lambda _log: None,
            context=ReplicationContext(
                lambda: self.now_ms, change_isr=lambda *asked: self.asked.append(asked)
            ),
        )
        quota = ReplicationQuota(windows=5, window_ms=1000)
        quota.limit = 1
        self.sessions = SessionCache(slots=sessions, eviction_ms=10**9, kind=FollowerSession)
        self._ids = iter(range(1, 10**6))
        self.broker: Any = SimpleNamespace(
            settings=given_settings,
            controller=SimpleNamespace(image=None),
            replicas=self.manager,
            replication_quotas=ReplicationQuotas(leader=quota, follower=quota, moves=quota),
            monotonic_ms=lambda: self.now_ms,
            follower_sessions=self.sessions,
            draw_session_id=lambda: next(self._ids),
        )
        self.image = MetadataImage(
            cluster_id="c", brokers={it: BrokerRegistration(it, ()) for it in (LEADER, *FOLLOWERS)}
        )
        state = PartitionState(
            (LEADER, *FOLLOWERS), (LEADER, *FOLLOWERS), LEADER, leader_epoch=0, controller_epoch=1
        )
        self.show([state] * partitions)

    def show(self, states: list[PartitionState], *, alive: tuple[int, ...] | None = None) -> None:
        """Publish these states."""
        old, new = self.image, self.image
        if alive is not None:
            brokers = {it: BrokerRegistration(it, ()) for it in (LEADER, *alive)}
            new = replace(new, brokers=brokers)
        new = new.with_changes(put=(TopicImage("t", T_ID, tuple(states), {}),))
        self.broker.controller.image = self.image = new
        assert not finished(self.manager.on_image(old, new))

    def states(self) -> list[PartitionState]:
        """As the controller has them: with every change of an ISR that was made."""
        return [
            replace(
                state,
                isr=self.partition(index).state.isr or state.isr,
                partition_epoch=max(
                    state.partition_epoch, self.partition(index).state.partition_epoch
                ),
            )
            for index, state in enumerate(self.image.topics["t"].partitions)
        ]

    def partition(self, index: int) -> Partition:
        """A partition."""
        found = self.manager.get(tp_of(index))
        assert found is not None
        return found

    def append(self, index: int, count: int = 1) -> None:
        """Write so many batches of one record, if this broker leads the partition."""
        partition = self.partition(index)
        for _ in range(count if partition.is_leader else 0):
            batches = validate_produce(
                memoryview(bytearray(BATCH)),
                rules=partition.rules.produce_rules(9),
                now_ms=NOW_MS,
            )
            partition.append(batches, now_ms=NOW_MS)

    def work(self, request: FetchRequest) -> Any:
        """The handler at work on a request."""
        call = RequestContext(
            api_key=ApiKey.FETCH,
            version=VERSION,
            correlation_id=1,
            client_id="f",
            principal=Principal("User", "b"),
            listener="L",
            client_host="h",
            now_ms=NOW_MS,
            authorizer=AllowAll(),
            broker=self.broker,
        )
        state = request.replica_state
        return follower_fetches.handle(request, call, state.replica_id, state.replica_epoch)

    def answer(self, request: FetchRequest) -> FetchResponse:
        """What the handler answers at once."""
        response: FetchResponse = finished(self.work(request))
        for topic in response.responses:
            for data in topic.partitions:
                if isinstance(data.records, FileSlice):
                    data.records = data.records.read()
        return response

    def session(self) -> FollowerSession:
        """The only session."""
        (found,) = self.sessions.sessions.values()
        assert isinstance(found, FollowerSession)
        return found

    def seen(self) -> list[Any]:
        """All that decides about what is committed, by partition."""
        found = []
        for index in range(len(self.image.topics["t"].partitions)):
            partition = self.partition(index)
            for watch in partition.appends.watches:
                watch.refresh()
            log, in_sync = partition.log, partition.in_sync
            found.append((
                log.high_watermark, log.log_end_offset, log.log_start_offset,
                partition.state.isr, in_sync.maximal_isr, in_sync.pending,
                {
                    broker: (it.log_start_offset, it.log_end_offset, it.caught_up_ms,
                             it.fetched_ms, it.leader_end_at_fetch, it.broker_epoch)
                    for broker, it in in_sync.followers.items()
                },
            ))  # fmt: skip
        return found


def finished(work: Any) -> Any:
    """What a handler comes to."""
    while True:
        try:
            next(work)
        except StopIteration as done:
            return done.value


@dataclass(slots=True)
class Copy:
    """What a follower has of a partition, and was told about it."""

    end: int = 0
    start: int = 0
    epoch: int = 0
    paused: bool = False
    reported: tuple[int, int] | None = None
    error: ErrorCode = ErrorCode.NONE


@dataclass(slots=True)
class Follower:
    """A follower that keeps its session as the product does, and its logs as numbers."""

    id: int
    leader: Leader
    limits: FetchLimits = WIDE
    broker_epoch: int = 1
    copies: dict[TopicPartition, Copy] = field(default_factory=dict)
    wanted: WantedPartitions = field(default_factory=WantedPartitions)
    link: LeaderEndPoint = field(init=False)
    refused: bool = False
    named: int = 0

    def __post_init__(self) -> None:
        count = len(self.leader.image.topics["t"].partitions)
        self.copies = {tp_of(index): Copy() for index in range(count)}
        self.restart()

    def ghost(self) -> Follower:
        """What is left of it where it begins another life: its session, and what it had."""
        left = Follower(self.id, self.leader, broker_epoch=self.broker_epoch)
        left.copies = {tp: replace(copy) for tp, copy in self.copies.items()}
        left.wanted, left.link = self.wanted, self.link
        left.link._peers = left  # type: ignore[assignment]
        return left

    def restart(self) -> None:
        """Begin without a session."""
        self.link = LeaderEndPoint(self, LEADER, broker_id=self.id)  # type: ignore[arg-type]
        self.wanted = WantedPartitions()

    async def version(self, *_given: Any, **_more: Any) -> int:
        """Of Fetch; in place of `Peers`."""
        return VERSION

    async def send(self, _leader: int, request: FetchRequest, *_: Any, **__: Any) -> FetchResponse:
        """The answer; in place of `Peers`."""
        self.named = sum(len(topic.partitions) for topic in request.topics)
        response = self.leader.answer(request)
        self.refused = response.error_code != 0
        return response

    def fetch(self) -> int:
        """Ask for everything once and take what comes; of how many partitions something came."""
        for tp, copy in self.copies.items():
            if copy.paused:
                self.wanted.remove(tp)
            else:
                ask = AskRecords(copy.epoch, copy.end, -1, copy.start)
                self.wanted.put(tp, Wanted(T_ID, ask))
        answers = run(
            self.link.fetch(self.wanted, self.limits, broker_epoch=self.broker_epoch, timeout_s=1.0)
        )
        if self.refused:  # The leader has lost the session: nothing was asked.
            return self.fetch()
        for tp, answer in answers.items():
            copy = self.copies[tp]
            copy.error = answer.fetched.error
            if copy.error is ErrorCode.NONE:
                copy.end += len(answer.batches) // len(BATCH)
                copy.reported = answer.fetched.high_watermark, answer.fetched.log_start
                copy.start = max(copy.start, min(answer.fetched.log_start, copy.end))
        return len(answers)


def run(work: Any) -> Any:
    """What a coroutine that waits for nothing returns."""
    try:
        work.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("it waits")


@contextmanager
def leading(*, sessions: int, partitions: int = PARTITIONS) -> Iterator[Leader]:
    """A leader on files of its own."""
    with TemporaryDirectory() as directory:
        leader = Leader(Path(directory), sessions=sessions, partitions=partitions)
        try:
            yield leader
        finally:
            leader.logs.close(clean=False, now_ms=NOW_MS, threads=1)
