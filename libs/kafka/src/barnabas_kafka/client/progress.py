"""What is left of a call, and what to do about each error: retry, look up again, or give up.

`Progress` is the core of the client's retry loop: it holds the keys without a result, takes the
outcomes of attempts, and says how long to pause. Decisions by error follow Kafka's AdminClient:

* The controller answers NOT_CONTROLLER: refresh the metadata, retry. THROTTLING_QUOTA_EXCEEDED:
  retry after the throttle time. Its other errors are results; REQUEST_TIMED_OUT is one, because the
  change may have been made.
* A coordinator or leader answers a retriable error: look it up again, retry.
* A connection is lost: drop what was known of the broker, retry. The request may have been carried
  out, so a retry can be answered with TOPIC_ALREADY_EXISTS or UNKNOWN_TOPIC_OR_PARTITION.
* Authentication, version and decoding errors are final.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final

from barnabas_kafka.client.cluster import Controller, OneBroker, Target
from barnabas_kafka.client.errors import BrokerError, ClientError, DeadlineExceededError
from barnabas_kafka.client.operation import Operation, Results
from barnabas_kafka.errors import ErrorCode

BACKOFF_S: Final = 0.1
BACKOFF_MAX_S: Final = 1.0
"""Kafka's retry.backoff.ms and retry.backoff.max.ms; doubled from the one to the other."""

RETRIED_AT_CONTROLLER: Final = frozenset(
    {ErrorCode.NOT_CONTROLLER, ErrorCode.THROTTLING_QUOTA_EXCEEDED}
)
RESULTS: Final = frozenset(
    {
        # Retriable for a consumer, but what an administrator asks to know.
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.ELECTION_NOT_NEEDED,
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
    }
)


class Decision(Enum):
    """What to do about an error of one key."""

    GIVE_UP = auto()
    RETRY = auto()
    LOOK_UP = auto()
    """Retry, at the broker that new metadata or a new look-up names."""


def decide(error: ClientError, target: Target, final: frozenset[ErrorCode]) -> Decision:
    """The decision for an error of a key that was sent to this target."""
    if not error.retriable or isinstance(error, DeadlineExceededError):
        return Decision.GIVE_UP
    code = error.code
    if code is None:
        return Decision.LOOK_UP
    if code in final or code in RESULTS:
        return Decision.GIVE_UP
    if isinstance(target, Controller) and code not in RETRIED_AT_CONTROLLER:
        return Decision.GIVE_UP
    if code in (ErrorCode.THROTTLING_QUOTA_EXCEEDED, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS):
        return Decision.RETRY
    return Decision.RETRY if isinstance(target, OneBroker) else Decision.LOOK_UP


def backoff_s(attempt: int, chance: float) -> float:
    """The pause after so many attempts; `chance`, from 0 to 1, spreads it by a fifth."""
    pause: float = min(BACKOFF_S * 2 ** min(attempt - 1, 16), BACKOFF_MAX_S)
    return pause * (0.8 + 0.4 * chance)


@dataclass(frozen=True, slots=True)
class Group:
    """The keys that go to one broker together."""

    node: int
    keys: Sequence[Any]


class Progress:
    """One call on its way. Keys move from `pending` to values or errors, and never back."""

    def __init__(self, operation: Operation[Any], keys: Iterable[Any]) -> None:
        self._operation = operation
        self._values: dict[Any, Any] = {}
        self._errors: dict[Any, ClientError] = {}
        self._last: dict[Any, ClientError] = {}
        self._pending = dict.fromkeys(keys)
        self._throttle_s = 0.0
        self.rounds = 0
        self.outdated: set[Target] = set()
        """Targets whose broker has to be looked up again."""

    @property
    def pending(self) -> Sequence[Any]:
        """The keys without a result, in the order of the call."""
        return list(self._pending)

    def groups(self, nodes: Mapping[Any, int]) -> list[Group]:
        """The pending keys that have a node, by node, in batches."""
        by_node: dict[int, list[Any]] = {}
        for key in self._pending:
            if key in nodes:
                by_node.setdefault(nodes[key], []).append(key)
        size = self._operation.batch_max
        return [
            Group(node, keys[start : start + size])
            for node, keys in by_node.items()
            for start in range(0, len(keys), size)
        ]

    def take(self, keys: Sequence[Any], outcomes: Mapping[Any, Any], throttle_ms: int = 0) -> None:
        """The outcomes of one response for these keys.

        A key that the response leaves out failed: a broker that answers less than it was asked has
        not said that the rest succeeded.
        """
        self._throttle_s = max(self._throttle_s, throttle_ms / 1000)
        missing = BrokerError(
            ErrorCode.UNKNOWN_SERVER_ERROR, "the response does not contain this part"
        )
        for key in keys:
            value = outcomes.get(key, missing)
            if isinstance(value, ClientError):
                self.fail([key], value)
            elif key in self._pending:
                del self._pending[key]
                self._values[key] = value

    def fail(self, keys: Iterable[Any], error: ClientError) -> None:
        """An attempt for these keys failed; retriable ones stay pending."""
        for key in list(keys):
            if key not in self._pending:
                continue
            target = self._operation.target(key)
            decision = decide(error, target, self._operation.final)
            self._last[key] = error
            if decision is Decision.LOOK_UP:
                self.outdated.add(target)
            elif decision is Decision.GIVE_UP:
                del self._pending[key]
                self._errors[key] = error

    def expire(self, timeout_s: float, reason: ClientError | None = None) -> None:
        """The deadline has passed: what is pending has failed."""
        for key in self._pending:
            last = self._last.get(key) or reason
            text = f"{self._operation.name} did not complete in {timeout_s:g} s"
            self._errors[key] = DeadlineExceededError(f"{text}: {last}" if last else text)
        self._pending.clear()

    def pause_s(self, chance: float) -> float:
        """How long to wait before the next round; counts the round."""
        self.rounds += 1
        throttle_s, self._throttle_s = self._throttle_s, 0.0
        return max(backoff_s(self.rounds, chance), throttle_s)

    def results(self) -> Results[Any, Any]:
        """What became of the keys, once none is pending."""
        return Results(dict(self._values), dict(self._errors))
