"""Leader epochs: KIP-101's questions, answered as Apache's LeaderEpochFileCache does."""

import pytest

from barnabas_broker.log.epochs import EpochEntry, LeaderEpochs


def epochs(*entries: tuple[int, int]) -> LeaderEpochs:
    return LeaderEpochs(EpochEntry(*entry) for entry in entries)


def test_an_epoch_begins_once() -> None:
    """The same epoch at a later offset is no news; at an earlier one it is a correction."""
    known = epochs((1, 10))
    assert not known.assign(1, 20)
    assert known.assign(1, 5)
    assert known.entries == [EpochEntry(1, 5)]


def test_a_new_epoch_drops_what_it_contradicts() -> None:
    """An epoch that starts below others means their records have been cut."""
    known = epochs((1, 10), (2, 20), (3, 30))
    assert known.assign(4, 20)
    assert known.entries == [EpochEntry(1, 10), EpochEntry(4, 20)]


def test_an_older_epoch_drops_newer_ones() -> None:
    """After a truncation the log may be continued under an epoch below the last one seen."""
    known = epochs((1, 10), (5, 20))
    known.assign(3, 25)
    assert known.entries == [EpochEntry(1, 10), EpochEntry(3, 25)]


@pytest.mark.parametrize(("epoch", "start_offset"), [(-1, 0), (0, -1)])
def test_negative_numbers_are_mistakes(epoch: int, start_offset: int) -> None:
    """A leader without an epoch, or before all records, has no place here."""
    with pytest.raises(ValueError, match="cannot begin"):
        epochs().assign(epoch, start_offset)


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (-1, (-1, -1)),  # undefined: a follower on the old format
        (1, (1, 10)),  # older than any known: the first known epoch's start
        (2, (2, 20)),  # known and over
        (3, (2, 20)),  # skipped: the one before it
        (4, (4, 30)),  # known and over
        (6, (6, 99)),  # the latest: the log end
        (7, (-1, -1)),  # not heard of yet
    ],
)
def test_end_offset_for_epoch(asked: int, answer: tuple[int, int]) -> None:
    """The greatest known epoch at or below the one asked for, and where the next began."""
    assert epochs((2, 10), (4, 20), (6, 30)).end_offset_for(asked, 99) == answer


def test_nothing_known_answers_nothing() -> None:
    """A log without epochs cannot tell."""
    assert epochs().end_offset_for(0, 5) == (-1, -1)
    assert epochs().latest == -1


def test_the_epoch_of_an_offset() -> None:
    """The last epoch that began at or below it."""
    known = epochs((2, 10), (4, 20))
    assert [known.epoch_at(offset) for offset in (9, 10, 19, 20, 500)] == [-1, 2, 2, 4, 4]


def test_cutting_the_end() -> None:
    """Epochs that began at or above the new end never happened."""
    known = epochs((1, 10), (2, 20))
    assert not known.truncate_from_end(21)
    assert known.truncate_from_end(20)
    assert known.entries == [EpochEntry(1, 10)]
    assert known.latest == 1


def test_cutting_the_start() -> None:
    """The epoch across the new start now begins there."""
    known = epochs((1, 10), (2, 20), (3, 30))
    assert known.truncate_from_start(25)
    assert known.entries == [EpochEntry(2, 25), EpochEntry(3, 30)]
    assert not known.truncate_from_start(25)
    assert not known.truncate_from_start(7)


def test_forgetting_everything() -> None:
    """Data of the old formats carries no epochs: the cache is emptied."""
    known = epochs((1, 10))
    assert known.clear()
    assert not known.clear()
    assert known.latest == -1
