"""How far a group is."""

from barnabas_broker.cli.groups.cluster import Described, Member
from barnabas_broker.cli.groups.lag import by_topic, concerned, positions

MEMBER = Member("m-1", None, "/10.0.0.1", "c", (("t", 0), ("t", 1)))
GROUP = Described("g", "Classic", "Stable", "range", "h:9092  (0)", (MEMBER,))


def test_what_is_assigned_and_what_is_committed_concerns_a_group() -> None:
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
