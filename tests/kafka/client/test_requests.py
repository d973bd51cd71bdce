"""Requests without an operation of their own: where they go, and what is retried."""

from __future__ import annotations

import pytest

from barnabas_kafka.client import CONTROLLER, BrokerError, OneBroker, send_request, send_to_brokers
from barnabas_kafka.client.operation import Ask
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

REQUEST = ListPartitionReassignmentsRequest()
KEY = "the call"
ASK = Ask([KEY], 0, 1, 5000)


def answered(code: ErrorCode) -> ListPartitionReassignmentsResponse:
    """A response with an error code as a whole."""
    return ListPartitionReassignmentsResponse(error_code=code)


def test_the_request_goes_as_it_is_to_its_target() -> None:
    """Under the name of its API, in any version."""
    operation = send_request(REQUEST, ListPartitionReassignmentsResponse, CONTROLLER)
    assert operation.request(ASK) is REQUEST
    assert operation.target(KEY) == CONTROLLER
    assert operation.name == "list partition reassignments"
    refused = answered(ErrorCode.NOT_CONTROLLER)
    assert operation.read(ASK, refused) == {KEY: refused}


def test_a_retriable_error_is_retried() -> None:
    """A moved controller is looked up again; what the caller did wrong is left to the caller."""
    operation = send_request(
        REQUEST,
        ListPartitionReassignmentsResponse,
        CONTROLLER,
        error_code=lambda response: response.error_code,
    )
    with pytest.raises(BrokerError, match="NOT_CONTROLLER"):
        operation.read(ASK, answered(ErrorCode.NOT_CONTROLLER))
    rejected = answered(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    assert operation.read(ASK, rejected) == {KEY: rejected}


def test_a_request_goes_to_every_broker() -> None:
    """Each response is that of its broker."""
    operation = send_to_brokers(REQUEST, ListPartitionReassignmentsResponse)
    assert operation.keys is None
    assert operation.target(1) == OneBroker(1)
    assert operation.request(ASK) is REQUEST
    assert operation.read(ASK, answered(ErrorCode.NONE)) == {1: answered(ErrorCode.NONE)}
