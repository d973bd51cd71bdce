"""The fetch session that a follower keeps with a leader (KIP-227), seen from the follower.

Decides what of all that is to be fetched has to be named in the next request, and what an answer
says about the session. Pure. Kafka's `FetchSessionHandler`.

A session begins with a request that names everything (epoch 0). If the leader gives it an id,
later requests name only what changed; else each names everything. Any error ends the session.

Apache's leader adds the partitions of a request to the session before it removes the forgotten
ones (`FetchSession.update`). A partition under the same name in both lists would leave the session
for good while it is taken to be in it, so a session by names never forgets what it still fetches.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from barnabas_broker.replica.follower import AskRecords
from barnabas_kafka.ids import TopicPartition

NO_SESSION: Final = 0
INITIAL_EPOCH: Final = 0
EPOCH_MAX: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Wanted:
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


@dataclass(slots=True)
class LeaderSession:
    """The session with one leader."""

    id: int = NO_SESSION
    epoch: int = INITIAL_EPOCH
    by_topic_id: bool = False
    told: dict[TopicPartition, Wanted] = field(default_factory=dict)

    def changes(self, wanted: Mapping[TopicPartition, Wanted], *, by_topic_id: bool) -> Changes:
        """What to say in order to fetch exactly `wanted`; taken to be said from now on.

        A session names its topics by id or by name throughout; another way begins another.
        """
        if by_topic_id is not self.by_topic_id:
            self.epoch = INITIAL_EPOCH
            self.by_topic_id = by_topic_id
        if self.epoch == INITIAL_EPOCH:
            self.told = dict(wanted)
            return Changes(self.id, INITIAL_EPOCH, self.told)
        forget = {}
        for tp, told in list(self.told.items()):
            now = wanted.get(tp)
            if now is None or (by_topic_id and now.topic_id != told.topic_id):
                forget[tp] = told.topic_id
                del self.told[tp]
        send = {tp: now for tp, now in wanted.items() if self.told.get(tp) != now}
        self.told.update(send)
        return Changes(self.id, self.epoch, send, forget)

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
