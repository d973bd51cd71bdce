"""JoinGroup on a running broker."""

import pytest

from barnabas_kafka.errors import ErrorCode
from tests.broker.server.members import Member, find, join_request
from tests.broker.server.running import Wire


@pytest.mark.parametrize("version", range(10))
def test_every_version_enters(wire: Wire, version: int) -> None:
    """Alone in a group one leads it."""
    find(wire, "g")
    member = Member(wire, f"join-{version}")
    member.enter(version=version)
    assert member.told.leader == member.id
    assert [each.metadata for each in member.told.members] == [b"m"]
    assert member.id.startswith("wire-")


def test_a_group_has_a_name(wire: Wire) -> None:
    """The empty one is refused."""
    answer = wire.ask(join_request(""), 5)
    assert answer.error_code == ErrorCode.INVALID_GROUP_ID
