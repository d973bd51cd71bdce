"""What fails with one of several is its own."""

import pytest

from barnabas_broker.cluster.failures import each_isolated, refusal
from barnabas_kafka.errors import ErrorCode, KafkaError


def test_an_expected_error_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    """And is no news."""
    error = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert refusal(error, "Fetch", "t-0") is error
    assert not caplog.records


def test_an_unexpected_error_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """With its traceback."""
    assert refusal(ZeroDivisionError(), "Fetch", "t-0").code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert "Fetch of t-0 failed" in caplog.text
    assert "ZeroDivisionError" in caplog.text


def test_an_error_of_the_disk_is_a_storage_error(caplog: pytest.LogCaptureFixture) -> None:
    """As Apache answers an IOException of a log; a line in the log is enough."""
    assert refusal(OSError(5, "I/O error"), "Fetch", "t-0").code is ErrorCode.KAFKA_STORAGE_ERROR
    assert "Fetch of t-0 failed: [Errno 5] I/O error" in caplog.text
    assert "Traceback" not in caplog.text


def test_each_item_is_handled_whatever_one_raises(caplog: pytest.LogCaptureFixture) -> None:
    """Those that failed are returned with what to answer, and whether it is a defect."""
    causes = {"a": ValueError("bad"), "c": KafkaError(ErrorCode.NOT_COORDINATOR), "d": OSError(5)}
    done = []

    def do(item: str) -> None:
        if item in causes:
            raise causes[item]
        done.append(item)

    failed = each_isolated("abcde", do, "Retention", name=str.upper)
    assert done == ["b", "e"]
    assert [(it.item, it.error.code.name, it.expected) for it in failed] == [
        ("a", "UNKNOWN_SERVER_ERROR", False),
        ("c", "NOT_COORDINATOR", True),
        ("d", "KAFKA_STORAGE_ERROR", True),
    ]
    assert "Retention of A failed" in caplog.text


def test_a_cancellation_is_no_failure_of_an_item() -> None:
    """Nor is an interrupt: it ends the whole work."""

    def do(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        each_isolated([1, 2], do, "Retention")
