"""The checker finds every anomaly in a history made for it, and none in a good one."""

from dataclasses import replace

from tests.cluster.history import Anomaly, History, Outcome, Poll, Send, anomalies

P = ("t", 0)


def sent(value: str, offset: int, producer: str = "p", **more: object) -> Send:
    """An acknowledged record."""
    return replace(Send(producer, P, value, Outcome.OK, offset), **more)  # type: ignore[arg-type]


def polled(*records: tuple[int, str], consumer: str = "c", **more: object) -> Poll:
    """What one poll gave."""
    return replace(Poll(consumer, P, records), **more)  # type: ignore[arg-type]


GOOD = History([sent("a", 0), sent("b", 1), sent("c", 2)],
               [polled((0, "a"), (1, "b")), polled((2, "c"))])  # fmt: skip


def kinds(history: History, *, complete: bool = True) -> list[str]:
    """The names of what is wrong."""
    return [anomaly.kind for anomaly in anomalies(history, complete=complete)]


def test_a_good_history() -> None:
    """What was acknowledged was read, once and in order; what is in doubt may be there or not."""
    assert anomalies(GOOD) == []
    doubt = Send("p", P, "d", Outcome.UNKNOWN)
    assert kinds(History([*GOOD.sends, doubt], GOOD.polls)) == []
    assert kinds(History([*GOOD.sends, doubt], [*GOOD.polls, polled((3, "d"))])) == []


def test_a_lost_write() -> None:
    """What lies behind it was read."""
    history = History(GOOD.sends, [polled((0, "a"), (2, "c"))])
    assert anomalies(history) == [Anomaly("lost-write", P, "b at 1")]
    assert str(anomalies(history)[0]) == "lost-write in t-0: b at 1"


def test_an_unseen_write() -> None:
    """Nothing behind it was read: only a reading to the end tells."""
    history = History(GOOD.sends, [polled((0, "a"), (1, "b"))])
    assert kinds(history) == ["unseen"]
    assert kinds(history, complete=False) == []


def test_a_duplicate() -> None:
    """One value at two offsets."""
    assert kinds(History(GOOD.sends, [*GOOD.polls, polled((3, "a"))])) == ["duplicate"]


def test_inconsistent_offsets() -> None:
    """Two values at one offset, whether both were read or one only acknowledged."""
    history = History(GOOD.sends, [*GOOD.polls, polled((2, "x"), consumer="d")])
    assert "inconsistent-offsets" in kinds(history)
    history = History([sent("a", 0)], [polled((0, "x"))])
    assert kinds(history) == ["inconsistent-offsets", "lost-write"]


def test_an_aborted_read() -> None:
    """A failed send, or one of a transaction that was aborted, is read."""
    failed = Send("p", P, "x", Outcome.FAILED)
    assert kinds(History([failed], [polled((0, "x")), polled((0, "x"), consumer="d")])) == ["G1a"]
    history = History([sent("x", 0, transaction="1")], [polled((0, "x"))], {"1"})
    assert kinds(history) == ["G1a"]
    assert kinds(History([sent("x", 0, transaction="1")], [], {"1"})) == []


def test_a_precommitted_read() -> None:
    """A transaction sees its own write."""
    history = History([sent("x", 0, transaction="1")], [polled((0, "x"), transaction="1")])
    assert kinds(history) == ["precommitted-read"]


def test_offsets_within_a_poll() -> None:
    """They go up, and leave nothing out that others were given."""
    reader = polled((0, "a"), (1, "b"), (2, "c"))
    assert kinds(History(GOOD.sends, [reader, polled((2, "c"), (1, "b"), consumer="d")])) == [
        "int-nonmonotonic-poll"
    ]
    assert kinds(History(GOOD.sends, [reader, polled((0, "a"), (2, "c"), consumer="d")])) == [
        "int-poll-skip"
    ]
    assert kinds(History([], [polled((0, "a"), (7, "c"))])) == []


def test_offsets_from_poll_to_poll() -> None:
    """The same, unless a group may have given the partition away in between."""
    whole = polled((0, "a"), (1, "b"), (2, "c"))
    back = [polled((1, "b"), consumer="d"), polled((0, "a"), consumer="d")]
    assert kinds(History(GOOD.sends, [whole, *back])) == ["nonmonotonic-poll"]
    ahead = [polled((0, "a"), consumer="d"), polled((2, "c"), consumer="d")]
    assert kinds(History(GOOD.sends, [whole, *ahead])) == ["poll-skip"]
    by_group = [replace(poll, assigned=False) for poll in [*back, *ahead]]
    assert kinds(History(GOOD.sends, [whole, *by_group])) == []


def test_sends_out_of_order() -> None:
    """Of one producer to one partition; of two there is no order."""
    reads = [polled((0, "b"), (1, "a"))]
    assert kinds(History([sent("a", 1), sent("b", 0)], reads)) == ["nonmonotonic-send"]
    assert kinds(History([sent("a", 1), sent("b", 0, producer="q")], reads)) == []
