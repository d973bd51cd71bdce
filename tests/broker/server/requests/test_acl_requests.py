"""Filters as requests carry them."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas_broker.security.acls import AclOperation, PatternType, Permission, ResourceType
from barnabas_broker.server.requests.acl_requests import filter_of
from barnabas_broker.server.requests.handler import UnanswerableError
from barnabas_kafka.protocol.messages.describe_acls import DescribeAclsRequest


def test_numbers_of_later_releases_find_nothing() -> None:
    """They are UNKNOWN, which no rule is."""
    asked = DescribeAclsRequest(
        resource_type_filter=99, pattern_type_filter=99, operation=99, permission_type=99
    )
    wanted = filter_of(asked)
    assert (wanted.type, wanted.pattern) == (ResourceType.UNKNOWN, PatternType.UNKNOWN)
    assert (wanted.operation, wanted.permission) == (AclOperation.UNKNOWN, Permission.UNKNOWN)


@pytest.mark.parametrize(
    "field", ["resource_type_filter", "pattern_type_filter", "operation", "permission_type"]
)
def test_unknown_is_no_filter(field: str) -> None:
    """Kafka does not read such a request."""
    known: dict[str, Any] = {
        "resource_type_filter": 2, "pattern_type_filter": 3, "operation": 3, "permission_type": 3,
    }  # fmt: skip
    with pytest.raises(UnanswerableError):
        filter_of(DescribeAclsRequest(**(known | {field: 0})))
