"""What brokers answer about groups, and the lag that follows from it."""

import pytest

from barnabas_broker.cli.client import Connection
from barnabas_broker.cli.errors import CommandError
from barnabas_broker.cli.groups.cluster import Described, Groups, Member
from barnabas_broker.cli.groups.lag import by_topic, concerned, positions
from barnabas_broker.testing import Broker
from barnabas_kafka.errors import ErrorCode


@pytest.fixture
def groups(kafka_broker: Broker, kafka_topic: str) -> Groups:
    """The cluster, where the test's topic is there already."""
    found = Groups.of(Connection(kafka_broker.bootstrap_servers, 20))
    assert found.topics[kafka_topic] == [0]
    return found


def test_offsets_are_set_and_forgotten(groups: Groups, kafka_topic: str) -> None:
    """A group comes to be with its first offset."""
    name = f"set-{kafka_topic}"
    assert groups.describe(name) is None
    groups.commit(name, {(kafka_topic, 0): 0})
    assert groups.committed(name) == {(kafka_topic, 0): 0}
    found = groups.describe(name)
    assert found is not None
    assert (found.state, found.is_active, found.members) == ("Empty", False, ())
    assert groups.delete_offsets(name, [(kafka_topic, 0)]) == {(kafka_topic, 0): ErrorCode.NONE}
    assert groups.committed(name) == {}


def test_offsets_of_no_group_cannot_be_forgotten(groups: Groups, kafka_topic: str) -> None:
    """The error says so by the protocol's name."""
    with pytest.raises(CommandError, match="GROUP_ID_NOT_FOUND"):
        groups.delete_offsets("there-is-no-such-group", [(kafka_topic, 0)])


def test_a_partition_that_is_gone_has_no_end(groups: Groups, kafka_topic: str) -> None:
    """Groups keep offsets of it for a while; for everything but a look at them it is an error."""
    gone = ("no-such-topic", 0)
    assert groups.ends([(kafka_topic, 0), gone]) == {(kafka_topic, 0): 0}
    with pytest.raises(CommandError, match="no-such-topic-0"):
        groups.offsets([gone], -1)


MEMBER = Member("m-1", None, "/10.0.0.1", "c", (("t", 0), ("t", 1)))
GROUP = Described("g", "Classic", "Stable", "range", "h:9092  (0)", (MEMBER,))


def test_assigned_and_committed_partitions_belong_to_a_group() -> None:
    """A partition that nobody reads any more may still be behind."""
    assert concerned(GROUP, [("a", 3), ("t", 1)]) == [("a", 3), ("t", 0), ("t", 1)]


def test_lag_is_what_is_left_to_read() -> None:
    """It is not known without a committed offset, or where a partition has gone."""
    found = positions(GROUP, {("a", 3): 4, ("t", 1): 5}, {("t", 0): 8, ("t", 1): 9})
    assert [(each.partition, each.lag) for each in found] == [
        (("a", 3), None),
        (("t", 0), None),
        (("t", 1), 4),
    ]
    assert [each.member for each in found] == [None, MEMBER, MEMBER]


def test_partitions_by_topic() -> None:
    """Sorted, each topic once."""
    assert by_topic([("u", 1), ("t", 10), ("t", 2)]) == "t(2,10), u(1)"
    assert by_topic([]) == ""
