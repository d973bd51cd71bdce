"""What is asked of the brokers about groups."""

import pytest

from barnabas_broker.cli.client import Connection
from barnabas_broker.cli.errors import CommandError
from barnabas_broker.cli.groups.cluster import Groups
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
