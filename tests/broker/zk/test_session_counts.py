"""How a session fares, in numbers; `test_waiting` shows what is made of them."""

from barnabas_broker.zk.session_counts import SessionCounts, SessionState


def test_every_change_is_a_state_and_a_count() -> None:
    """A session that was expired and one that was closed are two things."""
    counts = SessionCounts()
    seen = [counts.state]
    for change in (
        counts.connected,
        counts.disconnected,
        counts.connected,
        counts.expired,
        counts.refused,
    ):
        change()
        seen.append(counts.state)
    counts.closed()
    assert seen == [
        SessionState.CONNECTING,
        SessionState.CONNECTED,
        SessionState.CONNECTING,
        SessionState.CONNECTED,
        SessionState.EXPIRED,
        SessionState.AUTH_FAILED,
    ]
    assert counts.state is SessionState.CLOSED
    assert (counts.connects, counts.disconnects, counts.expires, counts.refusals) == (2, 1, 1, 1)


def test_nobody_has_to_listen() -> None:
    """Times are told to whoever wants them."""
    counts = SessionCounts()
    counts.took(5)
    heard: list[int] = []
    counts.took = heard.append
    counts.took(7)
    assert heard == [7]
