"""The end of one transaction, carried out against partitions that fail."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest

from barnabas_broker.coordinator.results import Producer
from barnabas_broker.coordinator.transaction import ending
from barnabas_broker.coordinator.transaction.ending import AT_ONCE, Ending
from barnabas_broker.coordinator.transaction.markers import Marker, MarkerWriter
from barnabas_broker.coordinator.transaction.shard import WriteMarkers
from barnabas_broker.replica.delayed_produce import DelayedProduce, Uncounted
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import TopicPartition
from tests.waiting import ANSWER, seconds

Tell = Callable[[TopicPartition, ErrorCode], None]


class Slow:
    """A partition whose records count when it is told so."""

    def __init__(self) -> None:
        self.produce_waiters: set[DelayedProduce] = set()
        self.counts = False

    def verdict(self, end: int, *, acks: int, leader_epoch: int) -> ErrorCode | None:
        return ErrorCode.NONE if self.counts else None


class Writer:
    """Answers each partition with the next of its codes, and then with NONE."""

    def __init__(self, codes: dict[int, list[ErrorCode]], slow: Slow | None = None) -> None:
        self.codes = codes
        self.slow = slow
        self.asked: list[int] = []

    def write(self, tp: TopicPartition, marker: Marker, tell: Tell) -> Uncounted | None:
        self.asked.append(tp.partition)
        assert marker == Marker(Producer(7, 1), True, 4)
        if self.slow is not None:
            return Uncounted(self.slow, 1, 0, lambda code: tell(tp, code))
        codes = self.codes.get(tp.partition)
        tell(tp, codes.pop(0) if codes else ErrorCode.NONE)
        return None


class Elsewhere:
    """Broker 3, which leads all partitions: for each outcome it writes all but the last of them."""

    def __init__(self, *outcomes: Exception | None) -> None:
        self.outcomes = list(outcomes)
        self.asked: list[list[int]] = []

    def leader(self, tp: TopicPartition) -> int | None:
        return 3

    def write(
        self, leader: int, marker: Marker, partitions: Sequence[TopicPartition], tell: Tell
    ) -> asyncio.Future[None]:
        self.asked.append([tp.partition for tp in partitions])
        ended = asyncio.get_running_loop().create_future()
        heard_of = partitions[:-1] if self.outcomes else partitions
        for tp in heard_of:
            tell(tp, ErrorCode.NONE)
        outcome = self.outcomes.pop(0) if self.outcomes else None
        if outcome is None:
            ended.set_result(None)
        else:
            ended.set_exception(outcome)
        return ended


def carried_out(
    writer: Writer,
    partitions: int,
    *,
    elsewhere: Elsewhere | None = None,
    exists: bool = True,
    attempts: int = 1,
    at_completion: Callable[[], None] = lambda: None,
    meanwhile: Callable[[], None] = lambda: None,
) -> None:
    """Run an ending until it is completed, which fails all but the last of `attempts` times."""

    async def scenario() -> None:
        done = asyncio.get_running_loop().create_future()
        left = attempts

        def complete() -> bool:
            nonlocal left
            at_completion()
            left -= 1
            if not left:
                done.set_result(None)
            return not left

        order = WriteMarkers(
            "tx",
            Producer(7, 1),
            True,
            frozenset(TopicPartition("t", index) for index in range(partitions)),
        )
        Ending(
            order,
            4,
            cast(MarkerWriter, writer),
            elsewhere=elsewhere,
            exists=lambda tp: exists,
            complete=complete,
            goes_on=lambda: True,
        ).begin()
        asyncio.get_running_loop().call_later(0.01, meanwhile)
        await asyncio.wait_for(done, seconds(ANSWER))

    asyncio.run(scenario())


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait long between tries."""
    monkeypatch.setattr(ending, "PAUSE_FIRST_S", 0.001)


def test_every_partition_gets_its_marker() -> None:
    """In order, some at once."""
    writer = Writer({})
    carried_out(writer, AT_ONCE * 2 + 1)
    assert writer.asked == list(range(AT_ONCE * 2 + 1))


def test_partitions_that_fail_are_tried_again() -> None:
    """Only these, and as often as it takes."""
    away = [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_ENOUGH_REPLICAS]
    writer = Writer({1: away})
    carried_out(writer, 3)
    assert writer.asked == [0, 1, 2, 1, 1]


def test_a_marker_without_a_response_is_sent_again() -> None:
    """However the request to its leader has ended: it is asked for again, and it alone."""
    elsewhere = Elsewhere(ValueError("999 is not a valid ErrorCode"), None)
    carried_out(Writer({}), 3, elsewhere=elsewhere)
    assert elsewhere.asked == [[0, 1, 2], [2], [2]]


def test_a_request_that_is_ended_by_what_it_waits_for_is_made_again() -> None:
    """Nobody has cancelled the task itself: the broker goes on, and so must the transaction."""

    class Cancelled(Elsewhere):
        def write(
            self, leader: int, marker: Marker, partitions: Sequence[TopicPartition], tell: Tell
        ) -> asyncio.Future[None]:
            written = super().write(leader, marker, partitions, tell)
            if len(self.asked) > 1:
                return written

            async def ended() -> None:
                raise asyncio.CancelledError

            return asyncio.ensure_future(ended())

    elsewhere = Cancelled(None)
    carried_out(Writer({}), 3, elsewhere=elsewhere)
    assert elsewhere.asked == [[0, 1, 2], [2]]


def test_a_marker_that_cannot_be_written_here_is_tried_again() -> None:
    """Whatever it was that failed; the others are written."""

    class Failing(Writer):
        def write(self, tp: TopicPartition, marker: Marker, tell: Tell) -> Uncounted | None:
            if self.asked == [0]:
                self.asked.append(tp.partition)
                raise ValueError("of another type than expected")
            return super().write(tp, marker, tell)

    writer = Failing({})
    carried_out(writer, 3)
    assert writer.asked == [0, 1, 2, 1]


@pytest.mark.parametrize("failing", ["leader", "write"])
def test_a_marker_whose_leader_cannot_be_asked_is_tried_again(
    failing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it was that failed: without its marker readers would wait for ever."""
    elsewhere = Elsewhere()
    real = getattr(elsewhere, failing)

    def fail_once(*given: Any) -> Any:
        monkeypatch.setattr(elsewhere, failing, real)
        raise ValueError("of another type than expected")

    monkeypatch.setattr(elsewhere, failing, fail_once)
    carried_out(Writer({}), 3, elsewhere=elsewhere)
    assert sorted(index for asked in elsewhere.asked for index in asked) == [0, 1, 2]


def test_a_completion_that_fails_is_tried_again() -> None:
    """Whatever it was that failed; the markers are not written once more."""
    failed: list[bool] = []

    def fail_once() -> None:
        if not failed:
            failed.append(True)
            raise ValueError("of another type than expected")

    writer = Writer({})
    carried_out(writer, 1, at_completion=fail_once)
    assert (failed, writer.asked) == ([True], [0])


@pytest.mark.parametrize("exists", [True, False])
def test_partitions_that_are_no_more_need_none(exists: bool) -> None:
    """One that this broker only has not heard of yet does."""
    writer = Writer({0: [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]})
    carried_out(writer, 1, exists=exists)
    assert writer.asked == ([0, 0] if exists else [0])


def test_a_partition_that_knows_a_newer_epoch_is_left(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It would refuse for ever; it is told."""
    writer = Writer({0: [ErrorCode.INVALID_PRODUCER_EPOCH]})
    carried_out(writer, 1)
    assert writer.asked == [0]
    assert "Transaction marker fenced: partition=t-0 transactional.id='tx'" in caplog.text


def test_a_completion_that_is_not_appended_is_tried_again() -> None:
    """Without writing the markers once more."""
    writer = Writer({})
    carried_out(writer, 1, attempts=3)
    assert writer.asked == [0]


def test_markers_that_do_not_count_yet_are_waited_for() -> None:
    """The transaction is completed when they do."""
    slow = Slow()

    def count() -> None:
        slow.counts = True
        for waiter in list(slow.produce_waiters):
            waiter.look()

    carried_out(Writer({}, slow), 2, meanwhile=count)
    assert slow.counts
