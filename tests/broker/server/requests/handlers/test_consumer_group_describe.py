"""ConsumerGroupDescribe on a running broker."""

from pathlib import Path

import pytest

from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from barnabas_kafka.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from barnabas_kafka.protocol.messages.describe_groups import DescribeGroupsRequest
from tests.broker.server.members import commit, find
from tests.broker.server.requests.handlers.test_consumer_group_heartbeat import ON, join, modern
from tests.broker.server.running import Wire, port_of, running_node

__all__ = ["modern"]

DENY = 2


@pytest.mark.parametrize("version", [0, 1])
def test_a_group_is_described_with_members_and_epochs(modern: Wire, version: int) -> None:
    """What the member reads and shall read, by the topic's name."""
    modern.ask(join("told", instance_id=f"i{version}", member_id=f"m{version}"), 1)
    request = ConsumerGroupDescribeRequest(group_ids=["told"])
    (group,) = modern.ask(request, version).groups
    assert (group.error_code, group.assignor_name) == (0, "uniform")
    assert group.group_epoch == group.assignment_epoch
    member = next(each for each in group.members if each.member_id == f"m{version}")
    assert (member.instance_id, member.subscribed_topic_names) == (f"i{version}", ["t"])
    assert [each.topic_name for each in member.target_assignment.topic_partitions] == ["t"]


def test_unknown_and_classic_groups_are_not_described(modern: Wire) -> None:
    """One that does not exist, and one of the classic protocol; for whose API it is the reverse."""
    assert commit(modern, "classic", "t", 1) == 0
    request = ConsumerGroupDescribeRequest(group_ids=["nowhere", "classic", ""])
    found = modern.ask(request, 1).groups
    assert [(each.error_code, each.error_message) for each in found[:2]] == [
        (ErrorCode.GROUP_ID_NOT_FOUND, "Group nowhere not found."),
        (ErrorCode.GROUP_ID_NOT_FOUND, "Group classic is not a consumer group."),
    ]
    assert found[2].error_code == ErrorCode.INVALID_GROUP_ID
    modern.ask(join("new"), 1)
    (dead,) = modern.ask(DescribeGroupsRequest(groups=["new"]), 5).groups
    assert dead.group_state == "Dead"


def test_a_group_is_shown_to_clients_that_may_describe_its_assigned_topics(tmp_path: Path) -> None:
    """Kafka checks current and target assignments, and no topic that is only subscribed to."""
    settings = {
        **ON,
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
    }
    request = ConsumerGroupDescribeRequest(group_ids=["g"])
    with running_node(tmp_path, settings) as node, Wire(port_of(node)) as wire:
        wire.create_topic("t")
        find(wire, "g")
        assert wire.ask(join("g", subscribed_topic_names=["t", "absent"]), 1).error_code == 0
        _deny_describe(wire, "absent")
        (shown,) = wire.ask(request, 1).groups
        assert (shown.error_code, len(shown.members)) == (0, 1)
        _deny_describe(wire, "t")
        (refused,) = wire.ask(request, 1).groups
        assert (refused.error_code, refused.members) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, [])


def _deny_describe(wire: Wire, topic: str) -> None:
    creation = AclCreation(
        resource_type=ResourceType.TOPIC,
        resource_name=topic,
        principal="User:ANONYMOUS",
        host="*",
        operation=AclOperation.DESCRIBE,
        permission_type=DENY,
    )
    (result,) = wire.ask(CreateAclsRequest(creations=[creation]), 3).results
    assert result.error_code == 0, result
