"""The fetch session that a follower keeps with a leader (KIP-227), seen from the follower.

Decides what of all that is to be fetched has to be named in the next request, and what an answer
says about the session. Pure. Kafka's `FetchSessionHandler`.

A session begins with a request that names everything (epoch 0). If the leader gives it an id,
later requests name only what changed; else each names everything. Any error ends the session.

Apache's leader adds the partitions of a request to the session before it removes the forgotten
ones (`FetchSession.update`). A partition under the same name in both lists would leave the session
for good while it is taken to be in it, so a session by names never forgets what it still fetches.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, NamedTuple
from uuid import UUID

from barnabas_broker.replica.follower import AskRecords
from barnabas_kafka.ids import ZERO_UUID, TopicPartition

NO_SESSION: Final = 0
INITIAL_EPOCH: Final = 0
EPOCH_MAX: Final = 2**31 - 1


class Wanted(NamedTuple):
    """What is fetched of one partition, and the id of its topic, zero where unknown."""

    topic_id: UUID
    ask: AskRecords


@dataclass(frozen=True, slots=True)
class Changes:
    """What the next request is to say: `send` in this order, and forget what is in `forget`."""

    session_id: int
    epoch: int
    send: Mapping[TopicPartition, Wanted]
    forget: Mapping[TopicPartition, UUID] = field(default_factory=dict)


class WantedPartitions:
    """What is fetched from one leader, and of what of it the last request does not know."""

    __slots__ = ("_without_id", "changed", "partitions")

    def __init__(self, wanted: Mapping[TopicPartition, Wanted] = MappingProxyType({})) -> None:
        self.partitions: dict[TopicPartition, Wanted] = {}
        self._without_id: set[TopicPartition] = set()
        #: what may differ from what was said, in the order in which it changed; None: anything
        self.changed: dict[TopicPartition, None] | None = None
        for tp, each in wanted.items():
            self.put(tp, each)

    @property
    def all_have_ids(self) -> bool:
        """Whether the topic ids of all partitions are known."""
        return not self._without_id

    def put(self, tp: TopicPartition, wanted: Wanted) -> None:
        """Fetch a partition from there."""
        if self.partitions.get(tp) == wanted:
            return
        self.partitions[tp] = wanted
        if wanted.topic_id == ZERO_UUID:
            self._without_id.add(tp)
        else:
            self._without_id.discard(tp)
        self._note(tp)

    def remove(self, tp: TopicPartition) -> None:
        """Do not fetch a partition, if it was to be."""
        if self.partitions.pop(tp, None) is not None:
            self._without_id.discard(tp)
            self._note(tp)

    def _note(self, tp: TopicPartition) -> None:
        if self.changed is not None:
            self.changed[tp] = None

    def said(self) -> None:
        """A request has been made that says all of this."""
        self.changed = {}


@dataclass(slots=True)
class LeaderSession:
    """The session with one leader."""

    id: int = NO_SESSION
    epoch: int = INITIAL_EPOCH
    by_topic_id: bool = False
    partitions: dict[TopicPartition, Wanted] = field(default_factory=dict)
    #: of the topics in `partitions`, by id
    names: dict[UUID, str] = field(default_factory=dict)
    _partitions_of: Counter[UUID] = field(default_factory=Counter)

    def changes(
        self,
        wanted: Mapping[TopicPartition, Wanted],
        *,
        by_topic_id: bool,
        changed: Collection[TopicPartition] | None = None,
    ) -> Changes:
        """What to say in order to fetch exactly `wanted`; taken to be said from now on.

        Only `changed` may differ from what was said before, where it is given. A session names its
        topics by id or by name throughout; another way begins another.
        """
        if by_topic_id is not self.by_topic_id:
            self.epoch = INITIAL_EPOCH
            self.by_topic_id = by_topic_id
        if self.epoch == INITIAL_EPOCH:
            self.partitions, self.names, self._partitions_of = {}, {}, Counter()
            for tp, each in wanted.items():
                self._add(tp, each)
            return Changes(self.id, INITIAL_EPOCH, dict(wanted))
        forget = {}
        for tp in list(self.partitions) if changed is None else changed:
            known, now = self.partitions.get(tp), wanted.get(tp)
            if known is not None and (
                now is None or (by_topic_id and now.topic_id != known.topic_id)
            ):
                forget[tp] = known.topic_id
                self._remove(tp)
        send = {}
        for tp in wanted if changed is None else changed:
            now = wanted.get(tp)
            if now is not None and self.partitions.get(tp) != now:
                send[tp] = now
                self._add(tp, now)
        return Changes(self.id, self.epoch, send, forget)

    def _add(self, tp: TopicPartition, wanted: Wanted) -> None:
        if tp in self.partitions:
            self._remove(tp)
        self.partitions[tp] = wanted
        self.names[wanted.topic_id] = tp.topic
        self._partitions_of[wanted.topic_id] += 1

    def _remove(self, tp: TopicPartition) -> None:
        topic_id = self.partitions.pop(tp).topic_id
        self._partitions_of[topic_id] -= 1
        if not self._partitions_of[topic_id]:
            del self._partitions_of[topic_id], self.names[topic_id]

    def answered(self, session_id: int) -> None:
        """An answer without error came, which names the session, 0 for none."""
        if session_id == NO_SESSION:
            self.end()
            return
        self.epoch = 1 if self.epoch in (INITIAL_EPOCH, EPOCH_MAX) else self.epoch + 1
        self.id = session_id

    def failed(self) -> None:
        """No answer, or one about another session than this: close it, if it is still there."""
        self.epoch = INITIAL_EPOCH

    def end(self) -> None:
        """The leader has no such session."""
        self.id, self.epoch = NO_SESSION, INITIAL_EPOCH
