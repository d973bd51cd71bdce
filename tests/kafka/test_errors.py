"""Tests of barnabas_kafka.errors."""

import pytest

from barnabas_kafka.errors import ErrorCode, KafkaError


def test_codes_are_dense() -> None:
    """The protocol numbers its errors from -1 without gaps, so none was forgotten in between."""
    assert [code.value for code in ErrorCode] == list(range(-1, 134))


def test_refreshing_metadata_implies_a_retry() -> None:
    """A client refreshes its metadata in order to try again."""
    assert all(code.retriable for code in ErrorCode if code.invalid_metadata)


@pytest.mark.parametrize(
    ("code", "retriable", "invalid_metadata"),
    [
        (ErrorCode.NONE, False, False),
        (ErrorCode.UNKNOWN_SERVER_ERROR, False, False),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, True, True),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, True, False),
        (ErrorCode.UNKNOWN_LEADER_EPOCH, True, False),
        (ErrorCode.FENCED_LEADER_EPOCH, True, True),
        (ErrorCode.MESSAGE_TOO_LARGE, False, False),
    ],
)
def test_remedies(code: ErrorCode, retriable: bool, invalid_metadata: bool) -> None:
    """What clients do about some errors that matter most."""
    assert (code.retriable, code.invalid_metadata) == (retriable, invalid_metadata)


def test_codes_are_numbers() -> None:
    """A code can be assigned to a field of a message and found by its number."""
    assert ErrorCode(3) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert ErrorCode.NOT_CONTROLLER.value == 41
    assert int(ErrorCode.NOT_CONTROLLER) == 41


def test_error_carries_code_and_message() -> None:
    """An error explains itself by its code, or by what its raiser knows better."""
    plain = KafkaError(ErrorCode.NOT_CONTROLLER)
    assert (plain.code, plain.message) == (
        ErrorCode.NOT_CONTROLLER,
        "another broker is the controller",
    )
    precise = KafkaError(ErrorCode.INVALID_PARTITIONS, "a topic needs a partition")
    assert str(precise) == "INVALID_PARTITIONS: a topic needs a partition"
