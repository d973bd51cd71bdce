"""Incremental fetch sessions: what a client fetches is remembered, only changes travel (KIP-227).

A session is opened by a full fetch (session id 0, epoch 0) and used by incremental ones, whose
epoch grows by one with each request. A full fetch with the epoch -1 opens none; one that names a
session closes it. Session ids are drawn by the caller, so that this module has no randomness.

What a request means, by (session id, epoch):

    (0, -1)        a fetch without session
    (0, 0)         a full fetch that opens a session, if the cache has room
    (id, -1)       a full fetch that closes session `id`
    (id, 0)        a full fetch that closes session `id` and opens another; it closes its own only
    (id, epoch)    an incremental fetch: changes of the request are merged into the session

Errors are FETCH_SESSION_ID_NOT_FOUND for a session that was evicted or never existed, and
INVALID_FETCH_SESSION_EPOCH for one that missed a request. Clients answer either with a new full
fetch.

Invariants: the cache never holds more than `slots` sessions, nor in all sessions more than twice
`partitions_max` partitions; the partitions of a session are in
fetch order, and a partition that had records goes to the end, so that under a small response limit
every partition gets its turn.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from barnabas_broker.cluster.image import MetadataImage, PartitionState
from barnabas_broker.invariants import violated
from barnabas_broker.replica.partition import READ_COMMITTED, Partition
from barnabas_kafka.errors import ErrorCode, KafkaError

NO_SESSION: Final = 0
INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
EPOCH_MAX: Final = 2**31 - 1

PARTITIONS_MAX: Final = 250_000
"""Partitions in all sessions together, at some 500 bytes each. Beyond it large sessions are not
opened, and those that grow are closed: their clients name everything in each fetch."""

# A partition is known by topic name where the request has names, by topic id from version 13 on.
Key = tuple[str | UUID, int]


@dataclass(slots=True)
class Target:
    """What a client wants of one partition, and what the last response sent of it."""

    topic: str  # Empty where only an id was given and nothing here has it.
    topic_id: UUID
    partition: int
    fetch_offset: int
    max_bytes: int
    current_leader_epoch: int
    last_fetched_epoch: int
    last_sent: tuple[int, int] | None = (
        None  # (high watermark, log start offset) of the last answer
    )
    # Where the last answer had nothing for the client: the partition, and its state then.
    quiet: Partition | None = None
    quiet_state: PartitionState | None = None

    def is_quiet(self, partition: Partition) -> None:
        """The answer for `partition` has no records, no error, and what was sent holds."""
        self.quiet, self.quiet_state = partition, partition.state


@dataclass(slots=True)
class Session:
    """The partitions one client fetches."""

    id: int
    owner: str  # principal; only the opener may use a session
    by_topic_id: bool
    targets: dict[Key, Target]
    used_ms: int
    created_ms: int
    epoch: int = INITIAL_EPOCH + 1
    image: MetadataImage | None = None  # The one that the last request was answered from.

    def take_image(self, image: MetadataImage) -> None:
        """Serve a request from `image`: under another, nothing is known to be quiet any more."""
        if image is not self.image:
            self.image = image
            for target in self.targets.values():
                target.quiet = None

    def merge(self, changed: Mapping[Key, Target], forgotten: Iterable[Key]) -> None:
        """Take the changes of an incremental request: added, updated and removed partitions."""
        for key in forgotten:
            self.targets.pop(key, None)
        for key, target in changed.items():
            known = self.targets.get(key)
            if known is not None:
                target.last_sent = known.last_sent
            self.targets[key] = target

    def close(self) -> None:
        """The session is over."""

    def move_to_end(self, key: Key) -> None:
        """Give every other partition its turn before this one."""
        target = self.targets.pop(key, None)
        if target is not None:
            self.targets[key] = target


def still_quiet(target: Target, partition: Partition, isolation_level: int) -> bool:
    """Whether a partition that was quiet at the last answer still has nothing new to send.

    Compared is all that an answer without records depends on, but for the image, which
    `Session.take_image` looks after, and what the caller may read.
    """
    log = partition.log
    high_watermark = log.high_watermark
    return (
        (high_watermark, log.log_start_offset) == target.last_sent
        and partition.state is target.quiet_state
        and log.failure is None
        and target.fetch_offset
        == (log.last_stable_offset if isolation_level == READ_COMMITTED else high_watermark)
    )


@dataclass(frozen=True, slots=True)
class FetchContext:
    """The partitions that one request is to be answered for."""

    targets: Mapping[Key, Target]
    session: Session | None
    incremental: bool

    @property
    def session_id(self) -> int:
        """The id to answer with, 0 where there is no session."""
        return NO_SESSION if self.session is None else self.session.id


@dataclass(slots=True, kw_only=True)
class SessionCache:
    """All fetch sessions of a broker, at most `slots`."""

    slots: int
    eviction_ms: int  # a session unused this long may be evicted for a new one
    partitions_max: int = PARTITIONS_MAX
    kind: type[Session] = Session
    sessions: dict[int, Session] = field(default_factory=dict)

    def begin(
        self,
        request: "SessionRequest",
        targets: dict[Key, Target],
        *,
        draw_id: Callable[[], int],
        now_ms: int,
    ) -> FetchContext:
        """Decide what a request means; see the module's table.

        Raises KafkaError with FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH or
        FETCH_SESSION_TOPIC_ID_ERROR.
        """
        if request.epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            named = self.sessions.get(request.session_id)
            if named is not None and named.owner == request.owner:  # Ids can be guessed.
                self.drop(named.id)
            session = None
            if request.epoch == INITIAL_EPOCH:
                session = self._open(request, targets, draw_id, now_ms)
            return FetchContext(targets, session, incremental=False)
        session = self.sessions.get(request.session_id)
        if session is None or session.owner != request.owner:
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != request.epoch:
            raise KafkaError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.by_topic_id != request.by_topic_id:
            raise KafkaError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        if targets and not self._may_hold(len(session.targets) + len(targets), session):
            self.drop(session.id)
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        session.merge(targets, request.forgotten)
        assert session.id == request.session_id, violated("sessions are kept by their ids")
        session.epoch = 1 if session.epoch == EPOCH_MAX else session.epoch + 1
        assert 0 < session.epoch <= EPOCH_MAX, violated("a session's epoch is positive")
        session.used_ms = now_ms
        return FetchContext(session.targets, session, incremental=True)

    def drop(self, session_id: int) -> None:
        """Close a session, if there is one of that id."""
        session = self.sessions.pop(session_id, None)
        if session is not None:
            session.close()

    def _open(
        self,
        request: "SessionRequest",
        targets: dict[Key, Target],
        draw_id: Callable[[], int],
        now_ms: int,
    ) -> Session | None:
        if not (self._may_hold(len(targets)) and self._has_room(len(targets), now_ms)):
            return None
        session_id = draw_id()
        while session_id == NO_SESSION or session_id in self.sessions:
            session_id = draw_id()
        assert session_id != NO_SESSION, violated("a session has an id")
        session = self.kind(
            id=session_id,
            owner=request.owner,
            by_topic_id=request.by_topic_id,
            targets=targets,
            used_ms=now_ms,
            created_ms=now_ms,
        )
        self.sessions[session_id] = session
        assert len(self.sessions) <= self.slots, violated("fetch sessions are bounded")
        return session

    def _may_hold(self, partitions: int, session: Session | None = None) -> bool:
        """Whether a session, this one or a new one, may have so many partitions.

        One that takes no more than its share always may, which saves counting.
        """
        if partitions * self.slots <= self.partitions_max:
            return True
        others = sum(len(each.targets) for each in self.sessions.values() if each is not session)
        return others + partitions <= self.partitions_max

    def _has_room(self, partitions: int, now_ms: int) -> bool:
        """Whether a session of so many partitions may be opened, evicting another if need be.

        A session makes room when it was not used for `eviction_ms`, or when it is that old and
        smaller than the new one: large sessions save the most.
        """
        if len(self.sessions) < self.slots:
            return True
        if not self.sessions:
            return False
        stalest = min(self.sessions.values(), key=lambda session: session.used_ms)
        if now_ms - stalest.used_ms > self.eviction_ms:
            self.drop(stalest.id)
            return True
        smallest = min(self.sessions.values(), key=lambda session: len(session.targets))
        if len(smallest.targets) < partitions and now_ms - smallest.created_ms > self.eviction_ms:
            self.drop(smallest.id)
            return True
        return False


@dataclass(frozen=True, slots=True)
class SessionRequest:
    """The part of a Fetch request that is about its session."""

    session_id: int
    epoch: int
    owner: str
    by_topic_id: bool
    forgotten: tuple[Key, ...] = ()
