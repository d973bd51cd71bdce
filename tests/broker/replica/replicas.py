"""Replicas of one partition that tell what happens to them, line by line.

The decisions are the broker's own (`in_sync`, `follower`, `epoch_checks`); the logs are in memory;
a test decides what is sent and when. Each step adds a line to the transcript, with the log end
and the high watermark of every replica after it.
"""

from collections.abc import Iterable

from barnabas_broker.cluster.image import PartitionState
from barnabas_broker.replica import epoch_checks, follower
from barnabas_broker.replica.follower import (
    Append,
    AskEpochEnd,
    AskLogEnds,
    AskRecords,
    EpochEnd,
    Fetched,
    Following,
    LogEnds,
    StartAt,
    Truncate,
)
from barnabas_broker.replica.isr import InSync, InSyncRules
from barnabas_kafka.errors import ErrorCode
from simulator.memory_log import MemoryLog, Record


class Replica:
    """One broker's copy."""

    def __init__(self, broker: int, log: MemoryLog, rules: InSyncRules) -> None:
        self.broker = broker
        self.log = log
        self.leading = InSync(broker, rules)
        self.following: Following | None = None
        self.up = True

    def __str__(self) -> str:
        if not self.up:
            return f"{self.broker} is down"
        values = "".join(record.value for record in self.log.records)
        return f"{self.broker} has {values or '-'}, HW {self.log.high_watermark}"


class Partition:
    """All copies, and the controller's word."""

    def __init__(
        self,
        brokers: Iterable[int],
        *,
        rules: InSyncRules | None = None,
        epochs: bool = True,
        truncates_on_fetch: bool = False,
    ) -> None:
        rules = rules or InSyncRules()
        self.replicas = {
            broker: Replica(broker, MemoryLog(keeps_epochs=epochs), rules) for broker in brokers
        }
        self.truncates_on_fetch = truncates_on_fetch
        self.now_ms = 0
        self.state = PartitionState(
            replicas=tuple(self.replicas), isr=(), leader=-1, leader_epoch=-1, controller_epoch=1
        )
        self.transcript: list[str] = []

    def tell(self, line: str) -> None:
        """Add a line: what happened, then how everybody is."""
        states = " | ".join(str(replica) for replica in self.replicas.values())
        self.transcript.append(f"{line:<34}| {states}")

    # --- the controller ----------------------------------------------------------------------

    def elect(self, leader: int, isr: tuple[int, ...]) -> None:
        """The controller makes `leader` the leader, and all who are up hear of it."""
        state = self.state
        self.state = PartitionState(
            replicas=state.replicas,
            isr=isr,
            leader=leader,
            leader_epoch=state.leader_epoch + 1,
            controller_epoch=1,
            partition_epoch=state.partition_epoch + 1,
        )
        for replica in self.replicas.values():
            if replica.up:
                self._obey(replica)
        self.tell(f"{leader} leads, epoch {self.state.leader_epoch}, ISR {list(isr)}")

    def _obey(self, replica: Replica) -> None:
        state = self.state
        if state.leader == replica.broker:
            end = replica.log.log_end_offset
            if replica.leading.become(state, log_end=end, now_ms=self.now_ms):
                replica.log.assign_epoch_start(state.leader_epoch)
            replica.following = None
            self._commit(replica)
        else:
            replica.leading.resign(state)
            replica.following = follower.follow(
                replica.log,
                leader_epoch=state.leader_epoch,
                truncates_on_fetch=self.truncates_on_fetch,
                before=replica.following,
            )

    def isr_becomes(self, isr: tuple[int, ...]) -> None:
        """A change of the ISR that the leader asked for has been written."""
        state = self.state
        leading = self.replicas[state.leader].leading
        version = state.partition_epoch + 1
        assert leading.change_committed(
            isr=isr, leader_epoch=state.leader_epoch, partition_epoch=version
        )
        self.state = PartitionState(
            replicas=state.replicas,
            isr=isr,
            leader=state.leader,
            leader_epoch=state.leader_epoch,
            controller_epoch=1,
            partition_epoch=version,
        )
        self._commit(self.replicas[state.leader])
        self.tell(f"the ISR is {list(isr)}")

    # --- the brokers -------------------------------------------------------------------------

    def down(self, *brokers: int) -> None:
        """Brokers crash: what they wrote is on disk, what they knew is gone."""
        for broker in brokers:
            self.replicas[broker].up = False
        self.tell(f"{' and '.join(map(str, brokers))} went down")

    def lose_tail(self, broker: int, *, keeps: int) -> None:
        """The power is gone where a broker was, and of its log all but the first records."""
        self.replicas[broker].log.truncate_to(keeps)

    def up(self, broker: int) -> None:
        """A broker starts again and hears who leads."""
        old = self.replicas[broker]
        self.replicas[broker] = Replica(broker, old.log, old.leading.rules)
        self.replicas = dict(sorted(self.replicas.items()))
        if self.state.leader != broker:
            self._obey(self.replicas[broker])
        self.tell(f"{broker} is up")

    def produce(self, value: str) -> None:
        """A producer writes one record to the leader."""
        leader = self.replicas[self.state.leader]
        leader.log.append(self.state.leader_epoch, value)
        self._commit(leader)
        self.tell(f"a producer writes {value} to {leader.broker}")

    def _commit(self, leader: Replica) -> None:
        log = leader.log
        log.high_watermark = leader.leading.committed_end(
            log.high_watermark,
            own_end=log.log_end_offset,
            log_end=log.log_end_offset,
            now_ms=self.now_ms,
        )

    def send_fetch(self, broker: int) -> tuple[AskRecords, Fetched, list[Record]]:
        """A follower's Fetch reaches the leader, which answers it."""
        replica, leader = self.replicas[broker], self.replicas[self.state.leader]
        assert replica.following is not None
        asked = follower.question(replica.following, replica.log)
        assert isinstance(asked, AskRecords)
        log = leader.log
        if asked.offset > log.log_end_offset:
            self.tell(f"{broker} fetches from {asked.offset}")
            return asked, Fetched(error=ErrorCode.OFFSET_OUT_OF_RANGE), []
        diverging = epoch_checks.divergence(
            log, offset=asked.offset, fetched_epoch=asked.fetched_epoch
        )
        answer = Fetched(log.high_watermark, 0, diverging)
        records = [] if diverging else log.records[asked.offset :]
        if diverging is None:
            # The answer has the mark from before: the log was read first.
            leader.leading.fetched(
                broker,
                offset=asked.offset,
                log_start=asked.log_start,
                leader_end=log.log_end_offset,
                now_ms=self.now_ms,
            )
            self._commit(leader)
        self.tell(f"{broker} fetches from {asked.offset}")
        return asked, answer, records

    def take_answer(self, broker: int, sent: tuple[AskRecords, Fetched, list[Record]]) -> None:
        """The leader's answer reaches the follower."""
        replica = self.replicas[broker]
        asked, answer, records = sent
        assert replica.following is not None
        step = follower.on_fetch(replica.following, replica.log, asked, answer)
        replica.following = step.state
        match step.effect:
            case Append(max_epoch, high_watermark, _):
                replica.log.append_fetched(records, max_epoch=max_epoch)
                replica.following = follower.appended(step.state, replica.log)
                replica.log.take_marks(high_watermark)
                values = "".join(record.value for record in records) or "nothing"
                self.tell(f"{broker} gets {values}, HW {high_watermark}")
            case Truncate():
                self._cut(replica, step.effect)
            case None:
                self.tell(f"{broker} is out of range")

    def fetch(self, broker: int) -> None:
        """A Fetch and its answer, once the logs agree."""
        self.agree(broker)
        self.take_answer(broker, self.send_fetch(broker))
        self.agree(broker)

    def answer_parked(self, broker: int, parked: tuple[AskRecords, Fetched, list[Record]]) -> None:
        """A fetch that found nothing is answered with what has come since (or its time is up)."""
        asked, _, _ = parked
        log = self.replicas[self.state.leader].log
        self.take_answer(
            broker, (asked, Fetched(log.high_watermark, 0), log.records[asked.offset :])
        )

    def agree(self, broker: int) -> None:
        """A follower finds out where its log parts from the leader's, in all rounds it needs."""
        replica, leader = self.replicas[broker], self.replicas[self.state.leader]
        for _ in range(10):
            assert replica.following is not None
            asked = follower.question(replica.following, replica.log)
            if isinstance(asked, Truncate):
                self._cut(replica, asked)
            elif isinstance(asked, AskEpochEnd):
                answer = epoch_checks.epoch_end(leader.log, asked.epoch)
                self.tell(f"{broker} asks for epoch {asked.epoch}: {reported(answer)}")
                step = follower.on_epoch_end(replica.following, replica.log, asked, answer)
                assert isinstance(step.effect, Truncate)
                self._cut(replica, step.effect)
            elif isinstance(asked, AskLogEnds):
                ends = LogEnds(0, leader.log.log_end_offset)
                self.tell(f"{broker} asks for the log's ends: {ends.start}, {ends.end}")
                step = follower.on_log_ends(replica.following, replica.log, asked, ends)
                assert isinstance(step.effect, Truncate)
                self._cut(replica, step.effect)
            else:
                return
        raise AssertionError("it goes on and on")

    def _cut(self, replica: Replica, cut: Truncate | StartAt) -> None:
        end = replica.log.log_end_offset
        replica.log.truncate_to(cut.offset)
        assert replica.following is not None
        replica.following = follower.truncated(replica.following, replica.log, cut)
        if end:
            self.tell(f"{replica.broker} cuts {end - cut.offset or 'nothing'}, at {cut.offset}")


def reported(answer: EpochEnd) -> str:
    """An answer in words."""
    return f"{answer.epoch} ends at {answer.offset}"
