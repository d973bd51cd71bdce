"""DescribeCluster: the brokers without any topics."""

from pathlib import Path

import pytest

from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.security.authorizer import Authorizer
from barnabas_broker.server.requests.handlers.describe_cluster import handle
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol import codec
from barnabas_kafka.protocol.messages.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from tests.broker.controller.embedded import Denying, Embedded


def ask(
    embedded: Embedded,
    request: DescribeClusterRequest,
    *,
    version: int = 1,
    listener: str = "PLAINTEXT",
    authorizer: Authorizer | None = None,
) -> DescribeClusterResponse:
    """Send a request and read the answer in the given version."""
    call = embedded.call(version, listener=listener, authorizer=authorizer)
    response = handle(request, call)
    assert isinstance(response, DescribeClusterResponse)
    return codec.decode(DescribeClusterResponse, codec.encode(response, version), version)


@pytest.mark.parametrize("version", [0, 1])
def test_brokers_controller_and_cluster_id(tmp_path: Path, version: int) -> None:
    """Through the listener of the client."""
    embedded = Embedded(tmp_path)
    answer = ask(embedded, DescribeClusterRequest(), version=version, listener="SECURE")
    assert (answer.error_code, answer.cluster_id) == (0, embedded.image.cluster_id)
    assert answer.controller_id == 1
    broker = answer.brokers[0]
    assert (broker.broker_id, broker.host, broker.port, broker.rack) == (
        1,
        "secure.example",
        9093,
        "here",
    )


def test_a_controller_that_cannot_be_reached_is_not_named(tmp_path: Path) -> None:
    """A client would look for it among the brokers and fail."""
    answer = ask(Embedded(tmp_path), DescribeClusterRequest(), listener="INNER")
    assert (answer.brokers, answer.controller_id) == ([], -1)


@pytest.mark.parametrize(
    ("version", "endpoint", "error"),
    [
        (1, 2, ErrorCode.MISMATCHED_ENDPOINT_TYPE),
        (1, 9, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
    ],
)
def test_a_broker_knows_brokers_only(
    tmp_path: Path, version: int, endpoint: int, error: ErrorCode
) -> None:
    """Questions to a KRaft controller are sent elsewhere (KIP-919)."""
    request = DescribeClusterRequest(endpoint_type=endpoint)
    assert ask(Embedded(tmp_path), request, version=version).error_code == error


def test_authorised_operations(tmp_path: Path) -> None:
    """Told when asked for, and none of them to who may not describe the cluster."""
    embedded = Embedded(tmp_path)
    asking = DescribeClusterRequest(include_cluster_authorized_operations=True)
    denying = Denying((AclOperation.DESCRIBE, ResourceType.CLUSTER, None))
    operations = [
        ask(embedded, request, authorizer=authorizer).cluster_authorized_operations
        for request, authorizer in (
            (DescribeClusterRequest(), None),
            (asking, None),
            (asking, denying),
        )
    ]
    assert operations == [-(2**31), 8096, 0]
