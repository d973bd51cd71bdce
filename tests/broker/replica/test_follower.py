"""What a follower asks and does, answer by answer."""

import pytest

from barnabas_broker.replica import follower
from barnabas_broker.replica.follower import (
    Append,
    AskEpochEnd,
    AskLogEnds,
    AskRecords,
    EpochEnd,
    Fetched,
    Following,
    LogEnds,
    Phase,
    StartAt,
    Step,
    Stop,
    Truncate,
    Wait,
)
from barnabas_kafka.errors import ErrorCode
from simulator.memory_log import MemoryLog


def log_of(*epochs: int, high_watermark: int = 0) -> MemoryLog:
    """A log with one record of each of these epochs."""
    log = MemoryLog()
    for epoch in epochs:
        log.append(epoch, "x")
    log.high_watermark = high_watermark
    return log


def following(log: MemoryLog, *, on_fetch: bool = False, epoch: int = 9) -> Following:
    """A follower of a leader of that epoch."""
    return follower.follow(log, leader_epoch=epoch, truncates_on_fetch=on_fetch)


def fetching(log: MemoryLog, *, on_fetch: bool = True) -> Following:
    """A follower that fetches."""
    state = following(log, on_fetch=on_fetch)
    return follower.truncated(state, log, Truncate(log.log_end_offset, agreed=True))


def test_initial_state_of_a_follower() -> None:
    """By epoch from the log's end; without epochs from what is surely common."""
    log = log_of(1, 1, 3, high_watermark=1)
    assert following(log) == Following(9, Phase.TRUNCATING, 3, -1, False)
    assert following(log, on_fetch=True) == Following(9, Phase.FETCHING, 3, 3, True)
    old = MemoryLog(keeps_epochs=False)
    old.append(1, "x")
    assert following(old, on_fetch=True) == Following(9, Phase.TRUNCATING, 0, -1, True)


def test_the_same_epoch_goes_on() -> None:
    """A change of the ISR is no reason to begin again; a new epoch of the same leader is."""
    log = log_of(1)
    state = fetching(log)
    assert follower.follow(log, leader_epoch=9, truncates_on_fetch=True, before=state) is state
    again = follower.follow(log, leader_epoch=10, truncates_on_fetch=False, before=state)
    assert again.phase is Phase.TRUNCATING


def test_the_request_of_each_state() -> None:
    """One question for each phase, always in the epoch it follows."""
    log = log_of(1, 3)
    state = following(log)
    assert follower.question(state, log) == AskEpochEnd(9, 3)
    assert follower.question(fetching(log), log) == AskRecords(9, 2, 3, 0)
    plain = fetching(log, on_fetch=False)
    assert follower.question(plain, log) == AskRecords(9, 2, -1, 0)
    old = MemoryLog(keeps_epochs=False)
    assert follower.question(following(old), old) == Truncate(0, agreed=True)


@pytest.mark.parametrize(
    ("answer", "cut"),
    [
        # Both know the epoch: the shorter of the two.
        (EpochEnd(5, 4), Truncate(4, agreed=True)),
        (EpochEnd(5, 7), Truncate(5, agreed=True)),
        (EpochEnd(3, 2), Truncate(2, agreed=True)),
        # Epoch 4 is unknown here: off with what came after 3, and ask about 3.
        (EpochEnd(4, 9), Truncate(3, agreed=False)),
        # All that is known here is newer.
        (EpochEnd(0, 0), Truncate(0, agreed=True)),
        # Version 0 of the answer, or a leader without such epochs.
        (EpochEnd(-1, 4), Truncate(4, agreed=True)),
        (EpochEnd(-1, 9), Truncate(5, agreed=True)),
        (EpochEnd(-1, -1), Truncate(5, agreed=True)),
    ],
)
def test_truncation_offsets(answer: EpochEnd, cut: Truncate) -> None:
    """Every case of KIP-101 and KIP-279, for a log that holds epochs 3, 3, 3, 5, 5."""
    log = log_of(3, 3, 3, 5, 5)
    state = following(log)
    asked = AskEpochEnd(9, 5)
    assert follower.on_epoch_end(state, log, asked, answer) == Step(state, cut)


def test_it_asks_until_they_agree() -> None:
    """After a cut that did not find agreement the next epoch down is asked for."""
    log = log_of(1, 3, 5)
    state = following(log)
    cut = Truncate(2, agreed=False)
    log.truncate_to(2)
    state = follower.truncated(state, log, cut)
    assert follower.question(state, log) == AskEpochEnd(9, 3)
    log.truncate_to(1)
    state = follower.truncated(state, log, Truncate(1, agreed=True))
    assert follower.question(state, log) == AskRecords(9, 1, -1, 0)


def test_a_diverging_fetch_cuts_and_fetches_again() -> None:
    """No marks are taken from that answer; the next fetch tells whether they agree now."""
    log = log_of(1, 3, 5)
    state = fetching(log)
    asked = AskRecords(9, 3, 5, 0)
    step = follower.on_fetch(state, log, asked, Fetched(2, 0, EpochEnd(4, 6)))
    assert step == Step(state, Truncate(2, agreed=False))
    log.truncate_to(2)
    state = follower.truncated(state, log, Truncate(2, agreed=False))
    assert follower.question(state, log) == AskRecords(9, 2, 3, 0)


def test_records_of_a_newer_epoch_are_not_appended() -> None:
    """Nothing of a newer epoch than the one it asked in: that is another leader's (KAFKA-18723)."""
    log = log_of(1)
    state = fetching(log)
    step = follower.on_fetch(state, log, AskRecords(9, 1, 1, 0), Fetched(1, 0))
    assert step == Step(state, Append(max_epoch=9, high_watermark=1, log_start=0))
    log.append(9, "y")
    assert follower.appended(state, log) == Following(9, Phase.FETCHING, 2, 9, True)


def test_late_answers_are_dropped() -> None:
    """An answer to another epoch, offset or phase changes nothing."""
    log = log_of(1, 1)
    state = fetching(log)
    nothing = Step(state)
    fetched = Fetched(2, 0)
    assert follower.on_fetch(state, log, AskRecords(8, 2, 1, 0), fetched) == nothing
    assert follower.on_fetch(state, log, AskRecords(9, 1, 1, 0), fetched) == nothing
    assert follower.on_epoch_end(state, log, AskEpochEnd(9, 1), EpochEnd(1, 0)) == nothing
    assert follower.on_log_ends(state, log, AskLogEnds(9), LogEnds(0, 0)) == nothing
    asking = following(log)
    assert follower.on_fetch(asking, log, AskRecords(9, 2, -1, 0), fetched) == Step(asking)
    assert follower.on_epoch_end(asking, log, AskEpochEnd(8, 1), EpochEnd(1, 0)) == Step(asking)


def test_out_of_range() -> None:
    """A longer log is cut to the leader's, one that is all too old begun anew, others go on."""
    log = log_of(1, 1, 3)
    state = fetching(log)
    out = Fetched(error=ErrorCode.OFFSET_OUT_OF_RANGE)
    step = follower.on_fetch(state, log, AskRecords(9, 3, 3, 0), out)
    assert step.effect is None
    state = step.state
    asked = follower.question(state, log)
    assert asked == AskLogEnds(9)
    assert follower.on_log_ends(state, log, asked, LogEnds(0, 2)).effect == Truncate(2, agreed=True)
    assert follower.on_log_ends(state, log, asked, LogEnds(4, 8)).effect == StartAt(4)
    on = follower.on_log_ends(state, log, asked, LogEnds(1, 8))
    assert on == Step(Following(9, Phase.FETCHING, 3, 3, True))
    begun = follower.truncated(state, MemoryLog(), StartAt(4))
    assert begun == Following(9, Phase.FETCHING, 4, -1, True)


@pytest.mark.parametrize(
    ("error", "phase", "effect"),
    [
        (
            ErrorCode.FENCED_LEADER_EPOCH,
            Phase.STOPPED,
            Stop(ErrorCode.FENCED_LEADER_EPOCH),
        ),
        (
            ErrorCode.UNKNOWN_LEADER_EPOCH,
            None,
            Wait(ErrorCode.UNKNOWN_LEADER_EPOCH),
        ),
        (
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            None,
            Wait(ErrorCode.NOT_LEADER_OR_FOLLOWER),
        ),
    ],
)
def test_refusals(error: ErrorCode, phase: Phase | None, effect: Wait | Stop) -> None:
    """Fenced is over until the controller speaks; anything else is asked again later."""
    log = log_of(1)
    for state in (following(log), fetching(log), Following(9, Phase.RESETTING, 1, 1, True)):
        match follower.question(state, log):
            case AskEpochEnd() as epoch:
                step = follower.on_epoch_end(state, log, epoch, EpochEnd(error=error))
            case AskLogEnds() as ends:
                step = follower.on_log_ends(state, log, ends, LogEnds(error=error))
            case AskRecords() as records:
                step = follower.on_fetch(state, log, records, Fetched(error=error))
        assert step.effect == effect
        assert step.state.phase is (phase or state.phase)
        if phase is Phase.STOPPED:
            assert follower.question(step.state, log) is None
