"""Questions that both brokers are asked: rules of access, where none are enforced."""

from __future__ import annotations

from typing import Final

from barnabas_kafka.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from barnabas_kafka.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from barnabas_kafka.protocol.messages.describe_acls import DescribeAclsRequest
from tests.oracle.sides import Side

TOPIC, READ, ALLOW = 2, 3, 3
VERSIONS: Final = range(4)


def acls(side: Side) -> None:
    """None are kept where there is no authorizer, and none are shown."""
    described = DescribeAclsRequest(
        resource_type_filter=TOPIC, operation=READ, permission_type=ALLOW
    )
    side.ask_all("described", described, VERSIONS)
    rule = AclCreation(
        resource_type=TOPIC,
        resource_name="acls",
        principal="User:alice",
        host="*",
        operation=READ,
        permission_type=ALLOW,
    )
    unkept = DeleteAclsFilter(resource_type_filter=TOPIC, operation=READ, permission_type=ALLOW)
    for what, count in {"none": 0, "one": 1, "two": 2}.items():
        side.ask_all(f"created, {what}", CreateAclsRequest(creations=[rule] * count), VERSIONS)
        side.ask_all(f"deleted, {what}", DeleteAclsRequest(filters=[unkept] * count), VERSIONS)


QUESTIONS: Final = (acls,)
