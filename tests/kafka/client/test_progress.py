"""What is left of a call, and what is done about each error."""

from __future__ import annotations

import pytest

from barnabas_kafka.client.cluster import (
    CONTROLLER,
    CoordinatorOf,
    CoordinatorType,
    LeaderOf,
    OneBroker,
    Target,
)
from barnabas_kafka.client.errors import (
    AuthenticationError,
    BrokerError,
    ClientError,
    DeadlineExceededError,
    DisconnectError,
    UnsupportedVersionError,
)
from barnabas_kafka.client.progress import BACKOFF_MAX_S, Decision, Progress, backoff_s, decide
from barnabas_kafka.client.topics import delete_topics
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import TopicPartition

LEADER = LeaderOf(TopicPartition("t", 0))
COORDINATOR = CoordinatorOf(CoordinatorType.GROUP, "g")
NOWHERE = DisconnectError("closed")


@pytest.mark.parametrize(
    ("error", "target", "decision"),
    [
        (NOWHERE, CONTROLLER, Decision.LOOK_UP),
        (AuthenticationError("no"), CONTROLLER, Decision.GIVE_UP),
        (UnsupportedVersionError("no"), CONTROLLER, Decision.GIVE_UP),
        (BrokerError(ErrorCode.NOT_CONTROLLER), CONTROLLER, Decision.LOOK_UP),
        (BrokerError(ErrorCode.THROTTLING_QUOTA_EXCEEDED), CONTROLLER, Decision.RETRY),
        (BrokerError(ErrorCode.REQUEST_TIMED_OUT), CONTROLLER, Decision.GIVE_UP),
        (BrokerError(ErrorCode.TOPIC_ALREADY_EXISTS), CONTROLLER, Decision.GIVE_UP),
        (BrokerError(ErrorCode.ELECTION_NOT_NEEDED), CONTROLLER, Decision.GIVE_UP),
        (BrokerError(ErrorCode.NOT_COORDINATOR), COORDINATOR, Decision.LOOK_UP),
        (BrokerError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS), COORDINATOR, Decision.RETRY),
        (BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER), LEADER, Decision.LOOK_UP),
        (BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), LEADER, Decision.GIVE_UP),
        (BrokerError(ErrorCode.KAFKA_STORAGE_ERROR), OneBroker(1), Decision.RETRY),
        (BrokerError(12345), CONTROLLER, Decision.GIVE_UP),
    ],
)
def test_decisions_by_error(error: ClientError, target: Target, decision: Decision) -> None:
    """A change is not sent again where the broker may have made it; a wrong address is."""
    assert decide(error, target, frozenset()) is decision


def test_an_operation_may_name_errors_of_its_own() -> None:
    """Which are results at once."""
    code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert decide(BrokerError(code), COORDINATOR, frozenset({code})) is Decision.GIVE_UP


def test_only_what_failed_is_asked_again() -> None:
    """Keys with a result are not sent a second time."""
    progress = Progress(delete_topics(["a", "b", "c"]), ["a", "b", "c"])
    (group,) = progress.groups(dict.fromkeys("abc", 1))
    assert (group.node, list(group.keys)) == (1, ["a", "b", "c"])
    again, gone = BrokerError(ErrorCode.NOT_CONTROLLER), BrokerError(ErrorCode.INVALID_CONFIG)
    progress.take(group.keys, {"a": None, "b": again, "c": gone})
    assert progress.pending == ["b"]
    assert progress.outdated == {CONTROLLER}
    progress.take(["b"], {"b": None})
    results = progress.results()
    assert (set(results.values), results.errors) == ({"a", "b"}, {"c": gone})


def test_items_missing_from_a_response_have_failed() -> None:
    """A broker that answers half of a request has not said that the rest succeeded."""
    progress = Progress(delete_topics(["a", "b"]), ["a", "b"])
    progress.take(["a", "b"], {"a": None})
    assert progress.results().errors["b"].code is ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_late_response_does_not_undo_a_result() -> None:
    """An attempt that was given up may still be answered."""
    progress = Progress(delete_topics(["a"]), ["a"])
    progress.take(["a"], {"a": None})
    progress.fail(["a"], BrokerError(ErrorCode.INVALID_CONFIG))
    assert progress.results().errors == {}


def test_the_deadline_keeps_the_results_there_are() -> None:
    """And names the last error of what is left."""
    progress = Progress(delete_topics(["a", "b", "c"]), ["a", "b", "c"])
    progress.take(["a"], {"a": None})
    progress.fail(["b"], NOWHERE)
    progress.expire(3.0, AuthenticationError("first"))
    results = progress.results()
    assert set(results.values) == {"a"}
    assert {key: str(error) for key, error in results.errors.items()} == {
        "b": "delete topics did not complete in 3 s: closed",
        "c": "delete topics did not complete in 3 s: first",
    }
    assert all(isinstance(error, DeadlineExceededError) for error in results.errors.values())


def test_requests_are_of_a_bounded_size() -> None:
    """Ten thousand topics are ten requests."""
    names = [str(number) for number in range(10_000)]
    groups = Progress(delete_topics(names), names).groups(dict.fromkeys(names, 0))
    assert [len(group.keys) for group in groups] == [1000] * 10


def test_pauses_double_up_to_a_limit_and_respect_throttles() -> None:
    """The broker's throttle time counts once."""
    pauses = [backoff_s(attempt, 0.5) for attempt in (1, 2, 3, 4, 100)]
    assert pauses == pytest.approx([0.1, 0.2, 0.4, 0.8, BACKOFF_MAX_S])
    progress = Progress(delete_topics(["a"]), ["a"])
    throttled = BrokerError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
    progress.take(["a"], {"a": throttled}, throttle_ms=5000)
    assert progress.pause_s(0.5) == 5.0
    assert progress.pause_s(0.5) == pytest.approx(0.2)
