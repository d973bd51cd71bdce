"""An admin call as data: which keys it asks about, where each goes, and how to read the answers.

The modules of operations (`topics`, `configs`, ...) build `Operation` values; the client carries
them out. An operation does no I/O, so what a call sends and how it reads a response is tested with
messages alone.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from barnabas_kafka.client.cluster import Target
from barnabas_kafka.client.errors import BrokerError, ClientError
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.schema import Request, Response

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
T = TypeVar("T")

BATCH_MAX: Final = 1000
"""Keys of one request. A request of ten thousand topics would occupy a broker for seconds."""


@dataclass(frozen=True, slots=True)
class Results(Generic[K, V]):
    """What became of each key: a value or an error. No key is in both."""

    values: Mapping[K, V]
    errors: Mapping[K, ClientError] = field(default_factory=dict)

    def all(self) -> Mapping[K, V]:
        """The values of all keys; raises the first error if there is one."""
        for error in self.errors.values():
            raise error
        return self.values

    def one(self, key: K) -> V:
        """The value of one key; raises its error."""
        if key in self.errors:
            raise self.errors[key]
        return self.values[key]


Outcomes = Mapping[K, V | ClientError]
"""A value or an error for each key of one response."""


@dataclass(frozen=True, slots=True)
class Ask(Generic[K]):
    """One request to be built: its keys, in which version, to which broker, and in which time."""

    keys: Sequence[K]
    version: int
    broker: int
    timeout_ms: int
    """The timeout field of a request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation(Generic[T]):
    """One admin call, whose result is a T."""

    name: str
    keys: Sequence[Any] | None
    """None: one key for each broker of the cluster, its id."""
    target: Callable[[Any], Target]
    request: Callable[[Ask[Any]], Request]
    api_key: int
    read: Callable[[Ask[Any], Any], Mapping[Any, Any]]
    """Outcomes by key, of a response. Raises BrokerError for an error of the whole response."""
    finish: Callable[[Results[Any, Any]], T]
    newest: int | None = None
    """The newest version that `request` and `read` know; None is the newest of the protocol."""
    final: frozenset[ErrorCode] = frozenset()
    """Errors to report at once, beside those that cannot be retried anyway."""
    batch_max: int = BATCH_MAX


ONLY: Final = "the call"
"""The key of an operation with a single request."""


def outcome(code: int, message: str | None, value: V) -> V | BrokerError:
    """The value, or the error where the code is one."""
    return value if code == ErrorCode.NONE else BrokerError(code, message)


def every(results: Results[Any, Any]) -> Results[Any, Any]:
    """`finish` of operations that report key by key."""
    return results


def single(results: Results[Any, T]) -> T:
    """`finish` of operations with a single key."""
    return next(iter(results.all().values()))


def unique(keys: Iterable[K]) -> list[K]:
    """The keys in their order, each once."""
    return list(dict.fromkeys(keys))


def read_single(read: Callable[[Any], V]) -> Callable[[Ask[Any], Any], Mapping[Any, V]]:
    """`read` of an operation with a single key, from a function of the response."""

    def outcomes(ask: Ask[Any], response: Response) -> Mapping[Any, V]:
        return {ask.keys[0]: read(response)}

    return outcomes
