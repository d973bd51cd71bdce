"""A member: its votes and its waits."""

from barnabas_broker.coordinator.group.members import Client, Member


def test_what_a_member_says_of_itself() -> None:
    """Metadata by protocol, votes in its order, and whether it waits for us."""
    member = Member(
        id="m",
        instance_id=None,
        client=Client("c", "/h"),
        rebalance_timeout_ms=1,
        session_timeout_ms=1,
        protocols=(("a", b"1"), ("b", b"2")),
    )
    assert (member.metadata("b"), member.metadata("x"), member.metadata(None)) == (b"2", b"", b"")
    assert (member.vote(["b", "a"]), member.vote(["x"])) == ("a", None)
    assert not member.is_static
    assert not member.waits
    member.joining = "somebody"
    assert member.waits
    member.is_new = True
    assert not member.waits
