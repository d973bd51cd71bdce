"""Every operation: its request fits every version it may travel in, and answers are read by key."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas_kafka import client as c
from barnabas_kafka.client.cluster import CONTROLLER, CoordinatorOf, CoordinatorType, LeaderOf
from barnabas_kafka.client.operation import ONLY, Ask, Operation
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol import codec, registry
from barnabas_kafka.protocol.messages.create_acls import AclCreationResult, CreateAclsResponse
from barnabas_kafka.protocol.messages.create_delegation_token import (
    CreateDelegationTokenResponse,
)
from barnabas_kafka.protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsResponse,
)
from barnabas_kafka.protocol.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)
ACL = c.Acl(
    resource_type=c.AclResourceType.TOPIC,
    resource_name="t",
    principal="User:a",
    operation=c.AclOperation.READ,
)
ALICE: c.QuotaEntity = frozenset({("user", "alice"), ("client-id", None)})
TOPIC = c.topic_resource("t")

OPERATIONS: list[Operation[Any]] = [
    c.describe_cluster(),
    c.list_topics(),
    c.create_topics([c.NewTopic("t", 1, 1)]),
    c.delete_topics(["t"]),
    c.create_partitions({"t": 2}),
    c.describe_configs([TOPIC], synonyms=True),
    c.alter_configs({TOPIC: []}),
    c.alter_partition_reassignments({P0: [1, 2], P1: None}),
    c.list_partition_reassignments([P0]),
    c.list_partition_reassignments(),
    c.elect_leaders([P0, P1]),
    c.elect_leaders(None),
    c.list_offsets({P0: 5}),
    c.delete_records({P0: 5}),
    c.describe_log_dirs([1]),
    c.describe_acls(c.AclFilter(pattern_type=c.PatternType.LITERAL)),
    c.create_acls([ACL]),
    c.delete_acls([c.AclFilter(pattern_type=c.PatternType.LITERAL)]),
    c.describe_scram_credentials(["a"]),
    c.alter_scram_credentials([c.ScramCredential("a", "p")], [("b", "SCRAM-SHA-256")]),
    c.describe_quotas({"user": "alice", "client-id": None}),
    c.alter_quotas({ALICE: {"producer_byte_rate": 1.0, "consumer_byte_rate": None}}),
    c.list_groups(),
    c.describe_groups(["g"]),
    c.delete_groups(["g"]),
    c.fetch_offsets({"g": [P0]}),
    c.commit_offsets("g", {P0: c.CommittedOffset(5)}),
    c.delete_offsets("g", [P0]),
    c.list_transactions(),
    c.describe_transactions(["x"]),
    c.describe_producers([P0]),
]
CASES = [
    pytest.param(operation, version, id=f"{operation.name} v{version}")
    for operation in OPERATIONS
    for version in range(
        registry.api(operation.api_key).versions.min,
        min(
            registry.api(operation.api_key).versions.max,
            32767 if operation.newest is None else operation.newest,
        )
        + 1,
    )
]


@pytest.mark.parametrize(("operation", "version"), CASES)
def test_a_request_fits_every_version(operation: Operation[Any], version: int) -> None:
    """What a version cannot express is left out, where that does not change what is meant."""
    keys = [1] if operation.keys is None else operation.keys
    request = operation.request(Ask(keys, version, 1, 5000))
    kind = registry.api(operation.api_key).request
    encoded = codec.encode(request, version)
    assert codec.encode(codec.decode(kind, encoded, version), version) == encoded


def test_operations_go_to_those_that_can_answer() -> None:
    """The controller, the leader, and both kinds of coordinators."""
    assert c.alter_partition_reassignments({}).target(P0) == CONTROLLER
    assert c.list_offsets([]).target(P0) == LeaderOf(P0)
    group = CoordinatorOf(CoordinatorType.GROUP, "g")
    assert c.commit_offsets("g", {}).target(P0) == group
    assert c.fetch_offsets({}).target("g") == group
    transaction = CoordinatorOf(CoordinatorType.TRANSACTION, "x")
    assert c.describe_transactions([]).target("x") == transaction


def test_an_unclean_election_is_not_taken_for_another() -> None:
    """Version 0 knows preferred elections only, so the request cannot be sent in it."""
    request = c.elect_leaders([P0], c.ElectionType.UNCLEAN).request(Ask([ONLY], 0, 1, 1))
    with pytest.raises(codec.EncodeError):
        codec.encode(request, 0)


@pytest.mark.parametrize("version", [5, 8])
def test_committed_offsets_in_both_formats(version: int) -> None:
    """A partition without an offset is left out; an error is that of its partition."""
    single = [
        OffsetFetchResponsePartition(partition_index=0, committed_offset=7),
        OffsetFetchResponsePartition(partition_index=1, committed_offset=-1),
        OffsetFetchResponsePartition(partition_index=2, error_code=3),
    ]
    several = [
        OffsetFetchResponsePartitions(partition_index=0, committed_offset=7),
        OffsetFetchResponsePartitions(partition_index=1, committed_offset=-1),
        OffsetFetchResponsePartitions(partition_index=2, error_code=3),
    ]
    if version == 5:
        response = OffsetFetchResponse(
            topics=[OffsetFetchResponseTopic(name="t", partitions=single)]
        )
    else:
        topics = [OffsetFetchResponseTopics(name="t", partitions=several)]
        response = OffsetFetchResponse(
            groups=[OffsetFetchResponseGroup(group_id="g", topics=topics)]
        )
    found = c.fetch_offsets({"g": None}).read(Ask(["g"], version, 1, 1), response)["g"]
    assert found[P0].offset == 7
    assert set(found) == {P0, TopicPartition("t", 2)}
    assert found[TopicPartition("t", 2)].code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_acls_are_answered_in_the_order_of_the_request() -> None:
    """One that has no answer is left out, and fails by that."""
    other = c.Acl(
        resource_type=c.AclResourceType.GROUP,
        resource_name="g",
        principal="User:a",
        operation=c.AclOperation.READ,
    )
    response = CreateAclsResponse(results=[AclCreationResult(error_code=31)])
    read = c.create_acls([ACL, other]).read(Ask([ACL, other], 3, 1, 1), response)
    assert {acl: error.code for acl, error in read.items()} == {
        ACL: ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    }


def test_an_acl_that_could_not_be_removed_fails_its_filter() -> None:
    """The filter did not do what it was for."""
    filter_ = c.AclFilter()
    result = DeleteAclsFilterResult(
        matching_acls=[
            DeleteAclsMatchingAcl(error_code=-1, resource_type=2, operation=3, permission_type=3)
        ]
    )
    response = DeleteAclsResponse(filter_results=[result])
    read = c.delete_acls([filter_]).read(Ask([filter_], 3, 1, 1), response)
    assert read[filter_].code is ErrorCode.UNKNOWN_SERVER_ERROR


def test_the_token_requester_defaults_to_the_owner() -> None:
    """Before KIP-373 it is the owner; who is named must be a principal."""
    operation = c.create_delegation_token(["User:bob"], max_lifetime_ms=5)
    codec.encode(operation.request(Ask([ONLY], 1, 1, 1)), 1)
    response = CreateDelegationTokenResponse(
        principal_type="User", principal_name="alice", token_id="id", hmac=b"secret"
    )
    token = operation.read(Ask([ONLY], 1, 1, 1), response)[ONLY]
    assert isinstance(token, c.DelegationToken)
    assert (token.owner, token.requester) == ("User:alice", "User:alice")
    assert "secret" not in repr(token)
    with pytest.raises(ValueError, match="Kind:name"):
        c.describe_delegation_tokens(["alice"])


def test_passwords_do_not_travel() -> None:
    """Nor are they shown; the salt is fresh."""
    credential = c.ScramCredential("alice", "pencil", iterations=4096)
    operation = c.alter_scram_credentials([credential])
    encoded = codec.encode(operation.request(Ask(["alice"], 0, 1, 1)), 0)
    assert b"pencil" not in encoded
    assert "pencil" not in repr(credential)
    assert encoded != codec.encode(operation.request(Ask(["alice"], 0, 1, 1)), 0)
