"""The ACL APIs, without an authorizer and with one."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.server.requests.handlers import create_acls, delete_acls, describe_acls
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from barnabas_kafka.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from barnabas_kafka.protocol.messages.describe_acls import DescribeAclsRequest
from barnabas_kafka.protocol.messages.heartbeat import HeartbeatRequest
from barnabas_kafka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas_kafka.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
)
from barnabas_kafka.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas_kafka.protocol.schema import Message
from barnabas_kafka.records.builder import build_batch
from tests.broker.controller.embedded import Denying
from tests.broker.controller.ensemble import Cluster
from tests.broker.server.running import Wire, fetch_request, port_of, running_node

READ, ALLOW = 3, 3
BATCH = build_batch([(0, None, b"value", ())])
CREATION = AclCreation(
    resource_type=2,
    resource_name="t",
    principal="User:alice",
    host="*",
    operation=READ,
    permission_type=ALLOW,
)
FILTER = DeleteAclsFilter(resource_type_filter=2, operation=READ, permission_type=ALLOW)


@pytest.mark.parametrize("version", range(4))
def test_access_is_not_controlled(wire: Wire, version: int) -> None:
    """Each question is answered, so that tools can say why nothing came of it."""
    listed = wire.ask(
        DescribeAclsRequest(resource_type_filter=2, operation=READ, permission_type=ALLOW), version
    )
    assert (listed.error_code, listed.resources) == (ErrorCode.SECURITY_DISABLED, [])
    assert listed.error_message == "No Authorizer is configured on the broker"
    created = wire.ask(CreateAclsRequest(creations=[CREATION, CREATION]), version)
    assert [each.error_code for each in created.results] == [ErrorCode.SECURITY_DISABLED] * 2
    deleted = wire.ask(DeleteAclsRequest(filters=[FILTER]), version)
    (result,) = deleted.filter_results
    assert (result.error_code, result.matching_acls) == (ErrorCode.SECURITY_DISABLED, [])


def test_unauthorized_callers_get_no_acls() -> None:
    """Before anything else."""
    cluster = Cluster(1)
    refused = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    denying = Denying(
        (AclOperation.DESCRIBE, ResourceType.CLUSTER, None),
        (AclOperation.ALTER, ResourceType.CLUSTER, None),
    )
    listed = cluster.ask(1, describe_acls.handle, DescribeAclsRequest(), 3, authorizer=denying)
    created = cluster.ask(
        1, create_acls.handle, CreateAclsRequest(creations=[CREATION]), 3, authorizer=denying
    )
    deleted = cluster.ask(
        1, delete_acls.handle, DeleteAclsRequest(filters=[FILTER]), 3, authorizer=denying
    )
    results = (listed, created.results[0], deleted.filter_results[0])
    assert [each.error_code for each in results] == [refused] * 3


# --- With an authorizer

SETTINGS = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
ANY, LITERAL, PREFIXED, MATCH, DENY = 1, 3, 4, 2, 2


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wire]:
    """A connection to a broker where everybody may do what no rule is about."""
    directory = tmp_path_factory.mktemp("guarded")
    with running_node(directory, SETTINGS) as node, Wire(port_of(node)) as connection:
        yield connection


def creation(name: str, **changes: Any) -> AclCreation:
    """A rule about a topic that ANONYMOUS is denied."""
    fields: dict[str, Any] = {
        "resource_type": 2,
        "resource_name": name,
        "principal": "User:ANONYMOUS",
        "host": "*",
        "operation": READ,
        "permission_type": DENY,
    }
    return AclCreation(**(fields | changes))


def create(wire: Wire, *creations: AclCreation, version: int = 3) -> list[int]:
    """The error codes."""
    created = wire.ask(CreateAclsRequest(creations=list(creations)), version)
    return [each.error_code for each in created.results]


def delete(wire: Wire, version: int = 3, **fields: Any) -> list[str]:
    """The names of the patterns whose rules one filter deletes."""
    filter_ = DeleteAclsFilter(**(EVERYTHING | fields))
    deleted = wire.ask(DeleteAclsRequest(filters=[filter_]), version)
    (result,) = deleted.filter_results
    assert result.error_code == 0
    return sorted(each.resource_name for each in result.matching_acls)


def described(wire: Wire, version: int = 3, **fields: Any) -> list[str]:
    """The names of the patterns whose rules a filter finds."""
    found = wire.ask(DescribeAclsRequest(**(EVERYTHING | fields)), version)
    assert found.error_code == 0
    return sorted(each.resource_name for each in found.resources)


EVERYTHING: dict[str, Any] = {
    "resource_name_filter": None,
    "principal_filter": None,
    "host_filter": None,
    "resource_type_filter": ANY,
    "pattern_type_filter": ANY,
    "operation": ANY,
    "permission_type": ANY,
}


@pytest.mark.parametrize("version", range(4))
def test_rules_are_kept_shown_and_deleted(guarded: Wire, version: int) -> None:
    """In all versions; before KIP-290 every pattern was literal."""
    name = f"kept-{version}"
    assert create(guarded, creation(name), creation(name), version=version) == [0, 0]
    fields = {"resource_name_filter": name, "pattern_type_filter": LITERAL}
    if version == 0:
        fields.pop("pattern_type_filter")
    wanted = EVERYTHING | fields
    if version == 0:
        wanted.pop("pattern_type_filter")
    found = guarded.ask(DescribeAclsRequest(**wanted), version)
    ((acl,),) = (each.acls for each in found.resources)
    assert (acl.principal, acl.host, acl.operation, acl.permission_type) == (
        "User:ANONYMOUS", "*", READ, DENY,
    )  # fmt: skip
    deleted = guarded.ask(DeleteAclsRequest(filters=[DeleteAclsFilter(**wanted)] * 2), version)
    counts = [len(each.matching_acls) for each in deleted.filter_results]
    assert counts == [1, 0], "a rule is answered for the first filter that finds it"
    assert guarded.ask(DescribeAclsRequest(**wanted), version).resources == []


def test_a_rule_is_in_effect_when_it_is_answered(guarded: Wire) -> None:
    """For the connection that fetched before, too, by the fast path and the other."""
    guarded.create_topic("effect")
    for _ in range(2):
        assert guarded.produce("effect", BATCH).error_code == 0
        assert create(guarded, creation("effect", operation=4)) == [0]
        refused = guarded.produce("effect", BATCH)
        assert refused.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert delete(guarded, resource_name_filter="effect") == ["effect"]


def test_one_line_for_each_denial(guarded: Wire, caplog: pytest.LogCaptureFixture) -> None:
    """Whichever way a request goes, and however many partitions of a topic it names."""
    guarded.create_topic("audited", partitions=3)
    rules = [
        creation("audited", operation=4),
        creation("audited"),
        creation("audited", resource_type=3),
    ]
    assert create(guarded, *rules) == [0] * 3
    data = [PartitionProduceData(index=index, records=BATCH) for index in range(3)]
    topic_data = [TopicProduceData(name="audited", partition_data=data)]
    fetch = fetch_request([("audited", 0, 0), ("audited", 1, 0)], max_wait_ms=50, min_bytes=1)
    commit = OffsetCommitRequest(
        group_id="audited",
        topics=[
            OffsetCommitRequestTopic(
                name="audited",
                partitions=[OffsetCommitRequestPartition(partition_index=0, committed_offset=0)],
            )
        ],
    )
    offsets = [OffsetFetchRequestTopic(name="audited", partition_indexes=[0, 1, 2])]
    for request, version in (
        (ProduceRequest(acks=1, timeout_ms=1000, topic_data=topic_data), 9),
        (fetch, 12),
        (HeartbeatRequest(group_id="audited", generation_id=1, member_id="m"), 4),
        (commit, 8),
        (OffsetFetchRequest(group_id="audited", topics=offsets), 0),
    ):
        caplog.clear()
        with caplog.at_level(logging.INFO):
            guarded.ask(request, version)
        denied = [each for each in caplog.messages if "is Denied" in each]
        assert len(denied) == 1, (type(request).__name__, denied)
    assert delete(guarded) == ["audited"] * 3


def test_filters(guarded: Wire) -> None:
    """Exact, any, and all that apply to a name."""
    rules = [creation("f-a"), creation("f-", resource_pattern_type=PREFIXED)]
    assert create(guarded, *rules) == [0, 0]
    for pattern, name, found in (
        (LITERAL, "f-a", ["f-a"]),
        (PREFIXED, "f-a", []),
        (ANY, "f-", ["f-"]),
        (MATCH, "f-a", ["f-", "f-a"]),
        (MATCH, "f-b", ["f-"]),
        (99, "f-a", []),
    ):
        wanted = described(guarded, pattern_type_filter=pattern, resource_name_filter=name)
        assert wanted == found
    assert delete(guarded, principal_filter="User:nobody") == []
    assert delete(guarded, pattern_type_filter=MATCH, resource_name_filter="f-a") == ["f-", "f-a"]


def test_rules_that_cannot_be(guarded: Wire) -> None:
    """Each is refused for itself, the others are kept."""
    refused = ErrorCode.INVALID_REQUEST
    wrong = [
        creation("", resource_type=2),
        creation("kafka", resource_type=4),
        creation("a/b"),
        creation("a", resource_type=99),
        creation("a", resource_type=ANY),
        creation("a", resource_pattern_type=MATCH),
        creation("a", operation=ANY),
        creation("a", operation=99),
        creation("a", permission_type=ANY),
        creation("a", principal="alice"),
    ]
    assert create(guarded, *wrong, creation("right")) == [refused] * len(wrong) + [0]
    assert described(guarded) == ["right"]
    assert delete(guarded) == ["right"]


@pytest.mark.parametrize(
    "request_",
    [
        CreateAclsRequest(creations=[creation("a", operation=0)]),
        DescribeAclsRequest(**(EVERYTHING | {"operation": 0})),
        DeleteAclsRequest(filters=[DeleteAclsFilter(**(EVERYTHING | {"permission_type": 0}))]),
    ],
    ids=lambda it: type(it).__name__,
)
def test_unknown_elements_end_the_connection(guarded: Wire, request_: Message) -> None:
    """As in Kafka, where no request of that kind is read."""
    with Wire(guarded.socket.getpeername()[1]) as another:
        another.send(request_, 3)
        assert another.closed_by_broker()


def test_rules_outlive_the_broker(tmp_path: Path) -> None:
    """They are loaded before anybody is served, and whoever may not change them is told so."""
    settings = SETTINGS | {"super.users": "User:root"}
    with running_node(tmp_path, settings) as node, Wire(port_of(node)) as wire:
        cluster = creation("kafka-cluster", resource_type=4, operation=7)
        may_describe = creation(
            "kafka-cluster", resource_type=4, operation=8, permission_type=ALLOW
        )
        assert create(wire, cluster, may_describe) == [0, 0]
    with running_node(tmp_path, settings) as node, Wire(port_of(node)) as wire:
        refused = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert create(wire, creation("a")) == [refused]
        assert described(wire) == ["kafka-cluster"]
