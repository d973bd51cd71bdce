"""The ACL APIs of a broker that lets everybody do everything."""

import pytest

from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.server.handlers import create_acls, delete_acls, describe_acls
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from barnabas_kafka.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from barnabas_kafka.protocol.messages.describe_acls import DescribeAclsRequest
from tests.broker.controller.embedded import Denying
from tests.broker.controller.ensemble import Cluster
from tests.broker.server.running import Wire

READ, ALLOW = 3, 3
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
    assert "authorizer" in listed.error_message
    created = wire.ask(CreateAclsRequest(creations=[CREATION, CREATION]), version)
    assert [each.error_code for each in created.results] == [ErrorCode.SECURITY_DISABLED] * 2
    deleted = wire.ask(DeleteAclsRequest(filters=[FILTER]), version)
    (result,) = deleted.filter_results
    assert (result.error_code, result.matching_acls) == (ErrorCode.SECURITY_DISABLED, [])


def test_whoever_may_not_ask_is_not_told() -> None:
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
