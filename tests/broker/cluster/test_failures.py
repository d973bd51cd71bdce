"""What fails with one of several is its own."""

import pytest

from barnabas_broker.cluster.failures import refusal
from barnabas_kafka.errors import ErrorCode, KafkaError


def test_what_was_foreseen_is_told_as_it_is(caplog: pytest.LogCaptureFixture) -> None:
    """And is no news."""
    error = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert refusal(error, "Fetch", "t-0") is error
    assert not caplog.records


def test_what_nobody_foresaw_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """With its traceback."""
    assert refusal(ZeroDivisionError(), "Fetch", "t-0").code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert "Fetch of t-0 failed" in caplog.text
    assert "ZeroDivisionError" in caplog.text
