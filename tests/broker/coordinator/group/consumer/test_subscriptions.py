"""What members subscribe to, in the metadata of now."""

from barnabas_broker.coordinator.group.consumer import subscriptions
from barnabas_broker.coordinator.group.consumer.group import ConsumerGroup
from barnabas_broker.coordinator.group.consumer.member import ConsumerMember
from tests.broker.coordinator.group.consumer.stories import ConsumerStory

NAMES = ("logs-a", "logs-b", "x-logs-a")


def test_an_expression_matches_whole_names_that_may_be_seen() -> None:
    """Each of several members' expressions once."""
    members = [ConsumerMember(id=str(i), regex="logs-.") for i in range(2)]
    found = subscriptions.resolve(members, NAMES, lambda name: name != "logs-b")
    assert found == {"logs-.": frozenset({"logs-a"})}


def test_only_changes_are_written() -> None:
    """New results, and the end of expressions that nobody has any more."""
    group = ConsumerGroup("g")
    resolved = {"a": frozenset({"x"})}
    for record in subscriptions.expression_records(group, resolved, version=1, now_ms=1):
        group.replay(record)
    assert group.expressions == resolved
    assert subscriptions.expression_records(group, resolved, version=2, now_ms=2) == []
    (end,) = subscriptions.expression_records(group, {}, version=3, now_ms=3)
    assert (end.part, end.value) == ("a", None)


def test_topics_that_do_not_exist_are_not_seen() -> None:
    """They will be when they come."""
    story = ConsumerStory({"t": 3})
    found = subscriptions.seen({"t", "later"}, story.image)
    assert {name: topic.partitions for name, topic in found.items()} == {"t": 3}
