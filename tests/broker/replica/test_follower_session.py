"""A follower's session says and learns what a look at every partition would, and looks at few."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas_broker.replica import follower_session
from barnabas_broker.replica.fetch_session import Key
from barnabas_broker.replica.follower import AskRecords
from barnabas_broker.replica.follower_session import FollowerSession, FollowerTarget
from barnabas_broker.replica.isr import REFUSED_MS
from barnabas_broker.replica.leader_session import Wanted
from barnabas_broker.server.peers.replication.leader_end_point import FetchLimits
from barnabas_broker.server.requests import follower_fetches
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ReplicaState,
)
from tests.broker.replica.leading import (
    BATCH,
    FOLLOWERS,
    LEADER,
    PARTITIONS,
    T_ID,
    Follower,
    Leader,
    finished,
    leading,
    run,
    tp_of,
)


class World:
    """A leader and its followers, to which things happen."""

    def __init__(self, leader: Leader) -> None:
        self.leader = leader
        self.followers = {it: Follower(it, leader) for it in FOLLOWERS}
        self.alive = set(FOLLOWERS)
        self.ghosts: dict[int, Follower] = {}

    def happens(self, what: str, first: int, second: int) -> None:
        """One event; the numbers say where, and how much."""
        index, follower = first % PARTITIONS, self.followers[FOLLOWERS[second % 2]]
        getattr(self, f"_{what}")(index, follower, first, second)

    def _append(self, index: int, _follower: Follower, _first: int, second: int) -> None:
        self.leader.append(index, 1 + second % 3)

    def _fetch(self, _index: int, follower: Follower, first: int, _second: int) -> None:
        if first % 4 == 0:  # Nothing else for a while, as usual.
            follower.fetch()
            self.leader.now_ms += first * 100
        follower.fetch()

    def _rest(self, *_: Any) -> None:
        """Everybody has everything and has been told so: nothing is left to look at."""
        for index in range(PARTITIONS):
            for follower in self.followers.values():
                self._learn(index, follower, 0, 0)
                follower.copies[tp_of(index)].paused = False
        for _round in range(4):
            for follower in self.followers.values():
                follower.fetch()
            for _asked in list(self.leader.asked):
                self._settle(0, follower, 0, 1)
            self.leader.now_ms += 1_000

    def _time(self, _index: int, _follower: Follower, first: int, _second: int) -> None:
        self.leader.now_ms += first * 2_000

    def _tick(self, *_: Any) -> None:
        self.leader.manager.shrink_isrs()
        self.leader.manager.recheck_held()

    def _settle(self, _index: int, _follower: Follower, first: int, second: int) -> None:
        if not self.leader.asked:
            return
        partition, change = self.leader.asked.pop(first % len(self.leader.asked))
        if second % 3 == 0:
            partition.isr_change_refused(change)
        else:
            partition_epoch = change.partition_epoch + 1
            partition.isr_changed(
                replace(
                    partition.state,
                    isr=change.isr,
                    leader_epoch=change.leader_epoch,
                    partition_epoch=partition_epoch,
                )
            )

    def _elect(self, index: int, _follower: Follower, first: int, second: int) -> None:
        """A new leader epoch: of this broker, or of another from which it takes over later."""
        states = self.leader.states()
        state = states[index]
        states[index] = replace(
            state,
            isr=state.isr[: 1 + second % 3],
            leader=LEADER if first % 3 else FOLLOWERS[second % 2],
            leader_epoch=state.leader_epoch + 1,
            partition_epoch=state.partition_epoch + 1,
        )
        self.leader.show(states)

    def _reassign(self, index: int, follower: Follower, first: int, _second: int) -> None:
        """The controller names another ISR, in the same leader epoch."""
        states = self.leader.states()
        state = states[index]
        isr = tuple(it for it in state.replicas if it != follower.id or first % 2)
        states[index] = replace(state, isr=isr, partition_epoch=state.partition_epoch + 1)
        self.leader.show(states)

    def _learn(self, index: int, follower: Follower, _first: int, _second: int) -> None:
        state = self.leader.image.topics["t"].partitions[index]
        follower.copies[tp_of(index)].epoch = state.leader_epoch

    def _delete(self, index: int, _follower: Follower, first: int, _second: int) -> None:
        partition = self.leader.partition(index)
        if partition.is_leader:
            partition.delete_records_before(min(first, partition.log.high_watermark))

    def _restart(self, _index: int, follower: Follower, first: int, _second: int) -> None:
        """A follower comes back, with less than it had."""
        if first % 2:
            self.ghosts[follower.id] = follower.ghost()
            follower.broker_epoch += 1
        follower.restart()
        for copy in follower.copies.values():
            copy.end = max(copy.start, copy.end - first % 3)
            copy.reported = None

    def _truncate(self, index: int, follower: Follower, first: int, _second: int) -> None:
        """A follower cuts its log, and goes on."""
        copy = follower.copies[tp_of(index)]
        copy.end = max(copy.start, copy.end - 1 - first % 2)

    def _ghost(self, _index: int, follower: Follower, *_: Any) -> None:
        """A fetch of a follower's earlier life arrives late."""
        ghost = self.ghosts.get(follower.id)
        if ghost is not None:
            ghost.fetch()

    def _register(self, _index: int, follower: Follower, *_: Any) -> None:
        """A follower has a new registration, and goes on."""
        follower.broker_epoch += 1

    def _pause(self, index: int, follower: Follower, first: int, _second: int) -> None:
        follower.copies[tp_of(index)].paused = first % 2 == 0

    def _evict(self, *_: Any) -> None:
        for session_id in list(self.leader.sessions.sessions):
            self.leader.sessions.sessions.pop(session_id).close()

    def _throttle(self, index: int, _follower: Follower, first: int, _second: int) -> None:
        self.leader.partition(index).leader_throttled = first % 2 == 0

    def _leave(self, _index: int, follower: Follower, first: int, _second: int) -> None:
        """A broker's registration goes, or comes back."""
        (self.alive.add if first % 2 else self.alive.discard)(follower.id)
        self.leader.show(self.leader.states(), alive=tuple(sorted(self.alive)))


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(
            ["append"] * 5 + ["fetch"] * 8 + ["time"] * 2 + ["tick"] * 2 + ["settle"] * 3
            + ["learn"] * 2 + ["rest"] * 4 + ["elect", "reassign", "delete", "restart", "ghost",
                               "truncate", "register", "pause", "evict", "throttle", "leave"]
        ),
        st.integers(0, 11),
        st.integers(0, 5),
    ),
    min_size=10,
    max_size=60,
)  # fmt: skip


@settings(max_examples=max(settings().max_examples // 2, 50))
@given(EVENTS)
def test_a_session_knows_what_a_look_at_every_partition_shows(
    events: list[tuple[str, int, int]],
) -> None:
    """One leader keeps sessions, the other is asked for everything each time; all else is equal.

    So it is without the look at everything now and then, which finds what was missed.
    """
    with (
        pytest.MonkeyPatch.context() as patched,
        leading(sessions=100) as few,
        leading(sessions=0) as every,
    ):
        patched.setattr(follower_session, "SCAN_MS", 10**15)
        worlds = World(few), World(every)
        for number, event in enumerate(events):
            for world in worlds:
                world.happens(*event)
            received = [{it.id: it.copies for it in world.followers.values()} for world in worlds]
            assert received[0] == received[1], (number, event)
            assert few.seen() == every.seen(), (number, event)
            assert [change for _, change in few.asked] == [change for _, change in every.asked]
            for session in few.sessions.sessions.values():
                assert isinstance(session, FollowerSession)
                targets = cast("dict[Key, FollowerTarget]", session.targets)
                watches = {key: it.watch for key, it in targets.items()}
                active = {key for key, it in watches.items() if it is None or it.active}
                assert session.active.keys() == active
        assert not every.sessions.sessions


def test_a_fetch_looks_at_what_has_changed_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a thousand partitions the one that was written to, and then the mark that moved."""
    looked: list[TopicPartition] = []
    real = follower_fetches._FollowerFetch._look

    def look(self: Any, found: Any, key: Any, target: Any, *given: Any, **more: Any) -> Any:
        looked.append(TopicPartition(target.topic, target.partition))
        return real(self, found, key, target, *given, **more)

    monkeypatch.setattr(follower_fetches._FollowerFetch, "_look", look)
    with leading(sessions=10, partitions=1000) as leader:
        follower, other = Follower(2, leader), Follower(3, leader)
        for each in (follower, other):
            assert each.fetch() == 1000
            assert each.named == 1000
        looked.clear()
        assert (follower.fetch(), follower.named, looked) == (0, 0, [])
        leader.append(500)
        assert (follower.fetch(), follower.named, looked) == (1, 0, [tp_of(500)])
        assert other.fetch() == 1
        assert leader.partition(500).log.high_watermark == 0
        for each in (follower, other):
            assert each.fetch() == 0
            assert each.named == 1
        assert leader.partition(500).log.high_watermark == 1
        looked.clear()
        for each in (follower, other):
            assert (each.fetch(), each.named) == (1, 0)
            assert each.copies[tp_of(500)].reported == (1, 0)
        assert looked == [tp_of(500)] * 2
        assert not any(
            session.active
            for session in leader.sessions.sessions.values()
            if isinstance(session, FollowerSession)
        )


def test_unreported_log_start_changes_are_found_by_a_periodic_scan() -> None:
    """Retention moves the start of a log without a word; followers hear of it all the same."""
    with leading(sessions=10) as leader:
        followers = [Follower(it, leader) for it in FOLLOWERS]
        leader.append(0, 3)
        for _ in range(3):
            for each in followers:
                each.fetch()
        leader.partition(0).log.delete_records_before(2)
        for _ in range(60):
            leader.now_ms += 100
            followers[0].fetch()
        assert followers[0].copies[tp_of(0)].reported == (3, 2)
        assert leader.partition(0).in_sync.followers[2].log_start_offset == 2


def test_every_partition_has_its_turn_under_a_small_limit() -> None:
    """However much is written to the others: one that was passed over comes next."""
    with leading(sessions=10) as leader:
        small = FetchLimits(max_wait_ms=0, min_bytes=1, max_bytes=1, partition_max_bytes=len(BATCH))
        follower = Follower(2, leader, limits=small)
        for index in range(PARTITIONS):
            leader.append(index, 40)
        for number in range(1, 31):
            leader.append(0)
            follower.fetch()
            ends = [copy.end for copy in follower.copies.values()]
            assert sum(ends) == number
            assert max(ends) - min(ends) <= 1


def test_a_closed_session_is_forgotten_by_its_partitions() -> None:
    """Nothing of it is told any more, nor kept."""
    with leading(sessions=10) as leader:
        follower = Follower(2, leader)
        follower.fetch()
        assert [len(leader.partition(it).appends.watches) for it in range(PARTITIONS)] == [1] * 3
        follower.copies[tp_of(1)].paused = True
        follower.fetch()
        assert [len(leader.partition(it).appends.watches) for it in range(PARTITIONS)] == [1, 0, 1]
        for _ in range(5):  # Each begins a session, and closes the one before.
            follower.link._session.failed()
            follower.fetch()
        assert len(leader.sessions.sessions) == 1
        assert [len(leader.partition(it).appends.watches) for it in range(PARTITIONS)] == [1, 0, 1]
        session = leader.session()
        leader.sessions.sessions.pop(session.id)
        session.close()
        assert [len(leader.partition(it).appends.watches) for it in range(PARTITIONS)] == [0] * 3
        session.watch((T_ID, 0), session.active[T_ID, 0], leader.partition(0), deaf=False)
        assert not leader.partition(0).appends.watches


def test_a_refused_fetch_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the right to it, a follower is told so of each partition, and is not caught up."""
    with leading(sessions=10) as leader:
        follower = Follower(2, leader)
        follower.fetch()
        follower.fetch()
        before = leader.seen()
        leader.now_ms += 10_000
        with monkeypatch.context() as patched:
            patched.setattr(RequestContext, "allowed_on_cluster", lambda *_, **__: False)
            follower.fetch()
        errors = {copy.error for copy in follower.copies.values()}
        assert errors == {ErrorCode.TOPIC_AUTHORIZATION_FAILED}
        assert leader.seen() == before
        follower.fetch()
        assert {copy.error for copy in follower.copies.values()} == {ErrorCode.NONE}


def test_a_partition_that_cannot_be_led_is_tried_with_every_fetch() -> None:
    """And told of as soon as it can."""
    with leading(sessions=10) as leader:
        follower = Follower(2, leader)
        follower.fetch()
        world = World(leader)
        world.happens("elect", 0, 0)
        for _ in range(3):
            follower.fetch()
            assert follower.copies[tp_of(0)].error is ErrorCode.FENCED_LEADER_EPOCH
        with pytest.raises(KafkaError):
            leader.manager.leader(tp_of(0))
        assert follower.named == 0, "the leader knows what is wanted"


def outside(leader: Leader, *isr: int) -> None:
    """All partitions with this ISR, in a new leader epoch."""
    states = [
        replace(it, isr=isr, leader_epoch=1, partition_epoch=it.partition_epoch + 1)
        for it in leader.states()
    ]
    leader.show(states)


def caught_up(follower: Follower) -> Follower:
    """The follower after it has fetched all there is, and has nothing more to hear."""
    for tp, copy in follower.copies.items():
        copy.epoch = follower.leader.partition(tp.partition).leader_epoch
    for _ in range(3):
        follower.fetch()
    return follower


@pytest.mark.parametrize("made", [True, False])
def test_one_that_is_not_let_in_asks_again(made: bool) -> None:
    """Its change was refused, or another ISR was written: its next fetches are looked at."""
    with leading(sessions=10) as leader:
        outside(leader, 1, 2)
        follower = caught_up(Follower(3, leader))
        assert not leader.session().active, "it counts as one that is let in"
        ((partition, change), *_) = leader.asked
        if made:
            state = partition.state
            after = replace(state, isr=(1, 2), partition_epoch=state.partition_epoch + 1)
            partition.isr_changed(after)
        else:
            partition.isr_change_refused(change)
        leader.asked.clear()
        if not made:
            follower.fetch()
            assert leader.asked == [], "the controller has just said no"
            leader.now_ms += REFUSED_MS
        follower.fetch()
        assert [it for it, _ in leader.asked] == [partition]


def test_one_that_is_registered_again_is_let_in_though_nothing_else_happens() -> None:
    """While it is not, every fetch of it is looked at."""
    with leading(sessions=10) as leader:
        outside(leader, 1, 2)
        states = list(leader.image.topics["t"].partitions)
        leader.show(states, alive=(2,))
        follower = caught_up(Follower(3, leader))
        assert leader.asked == []
        leader.show(states, alive=(2, 3))
        follower.fetch()
        assert len(leader.asked) == PARTITIONS


def test_late_fetches_of_an_earlier_life_prove_nothing() -> None:
    """The session of a follower that has restarted is still there, and a request of it comes."""
    with leading(sessions=10) as leader:
        follower = caught_up(Follower(2, leader))
        ghost = follower.ghost()
        follower.restart()
        follower.broker_epoch += 1
        follower.fetch()
        before = leader.seen()
        leader.now_ms += 1_000
        ghost.fetch()
        assert leader.seen() == before


def request_of_all(epoch: int) -> FetchRequest:
    """A full fetch, or the first one after it, that may wait."""
    partitions = [
        FetchPartition(partition=it, fetch_offset=0, log_start_offset=0, current_leader_epoch=0)
        for it in range(PARTITIONS)
    ]
    for each in partitions:
        each.partition_max_bytes = 1 << 20
    return FetchRequest(
        max_wait_ms=60_000,
        min_bytes=1,
        session_id=1 if epoch else 0,
        session_epoch=epoch,
        topics=[] if epoch else [FetchTopic(topic_id=T_ID, partitions=partitions)],
        replica_state=ReplicaState(replica_id=2, replica_epoch=1),
    )


def test_records_appended_between_turns_complete_the_fetch() -> None:
    """A partition that was read already grows before the fetch begins to wait."""
    with leading(sessions=10) as leader:
        work = leader.work(request_of_all(0))
        for _ in range(2 * PARTITIONS):  # Named, and all but the last of them read.
            next(work)
        leader.append(0)
        response = finished(work)
        assert isinstance(response, FetchResponse)
        assert response.responses[0].partitions[0].records


@pytest.mark.parametrize("what", ["append", "elect", "close"])
def test_a_fetch_waits_for_partitions_that_rest(what: str) -> None:
    """An append ends the wait, and so do another leader and the end of the session."""

    async def wait() -> None:
        with leading(sessions=10) as leader:
            opening = request_of_all(0)
            opening.max_wait_ms = 0
            finished(leader.work(opening))
            waiting = finished(leader.work(request_of_all(1)))
            assert not leader.session().active
            assert not waiting.done()
            if what == "append":
                leader.append(1)
            elif what == "elect":
                World(leader).happens("elect", 0, 0)
            else:
                leader.session().close()
            response = finished(waiting.result())
            received = [data for topic in response.responses for data in topic.partitions]
            expected = {"append": [(1, 0)], "elect": [(0, 74)], "close": []}[what]
            assert [(data.partition_index, data.error_code) for data in received] == expected
            assert not leader.session().fetch_waiters

    asyncio.run(wait())


@pytest.mark.parametrize("lost", ["divergence", "epoch"])
def test_an_unapplied_high_watermark_is_sent_again(lost: str) -> None:
    """It takes none from an answer that has it cut its log, or that is of an earlier epoch."""
    with leading(sessions=10) as leader:
        leader.append(0, 4)
        followers = [Follower(it, leader) for it in FOLLOWERS]
        for _ in range(3):
            for each in followers:
                each.fetch()
        states = leader.states()
        version = states[0].partition_epoch + 1
        states[0] = replace(states[0], leader_epoch=2, partition_epoch=version)
        leader.show(states)
        follower, tp = followers[1], tp_of(0)

        def ask(end: int, epoch: int) -> dict[TopicPartition, Any]:
            follower.wanted.put(tp, Wanted(T_ID, AskRecords(2, end, epoch, 0)))
            answers: dict[TopicPartition, Any] = run(
                follower.link.fetch(follower.wanted, follower.limits, broker_epoch=1, timeout_s=1.0)
            )
            return answers

        if lost == "divergence":
            follower.restart()
            diverging = ask(6, 0)[tp].fetched.diverging
            assert diverging is not None
            assert diverging.offset == 4
        answers = ask(4, 0)
        assert tp in answers
        assert answers[tp].fetched.high_watermark == 4
