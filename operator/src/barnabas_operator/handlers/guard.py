"""A check before every call of a pass: its deadline, the operator's end, and the leadership.

A thread cannot be stopped from outside. Every network call has a deadline of its own, so a pass
that checks before each call ends soon after its deadline, or after the operator was asked to stop.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol, TypeVar, cast

from barnabas_operator.kube import Kind

PORT = TypeVar("PORT")

PASS_DEADLINE_S: Final = 120.0
# Harmless without leadership: of the API server, and of brokers.
READS: Final = frozenset({
    "get", "list", "metadata",
    "describe", "advertised", "dynamic_config", "topic_names", "topics", "users",
})  # fmt: skip


class PassAbortedError(Exception):
    """A pass was ended before its next call; what it has done so far stays."""


class Stop(Protocol):
    """Whether the operator was asked to stop."""

    asked: bool


class Deadline:
    """The deadline of one pass, by the monotonic clock."""

    def __init__(
        self, at: float, stop: Stop, may_write: Callable[[str], bool] = lambda _: True
    ) -> None:
        """`may_write` is asked for a namespace before each write there."""
        self._at = at
        self._stop = stop
        self._may_write = may_write

    def check(self, call: str, namespace: str) -> None:
        """Before a call that is about a namespace. Raises PassAbortedError."""
        if self._stop.asked:
            raise PassAbortedError(f"the operator stops; {call} was not called")
        if time.monotonic() >= self._at:
            text = f"reconciliation exceeded its deadline of {PASS_DEADLINE_S:.0f} s before {call}"
            raise PassAbortedError(text)
        if call not in READS and not self._may_write(namespace):
            text = f"this operator is not the leader of {namespace}; {call} was not called"
            raise PassAbortedError(text)


def namespace_of_call(arguments: Sequence[Any]) -> str:
    """The namespace of a call of Kube: of a document, after a kind, or the first argument."""
    first = arguments[0]
    if isinstance(first, Mapping):
        return str(first["metadata"]["namespace"])
    return str(arguments[1] if isinstance(first, Kind) else first)


class _Guarded:
    """Any port with a check before each of its methods."""

    def __init__(
        self,
        port: object,
        check: Callable[[str, str], None],
        namespace_of: Callable[[Sequence[Any]], str],
    ) -> None:
        self._port = port
        self._check = check
        self._namespace_of = namespace_of

    def __getattr__(self, name: str) -> Any:
        """The port's method with the check before it."""
        method = getattr(self._port, name)

        @functools.wraps(method)
        def checked(*arguments: Any, **named: Any) -> Any:
            self._check(name, self._namespace_of(arguments))
            return method(*arguments, **named)

        return checked


def guarded(
    port: PORT,
    check: Callable[[str, str], None],
    namespace_of: Callable[[Sequence[Any]], str] = namespace_of_call,
) -> PORT:
    """The port with a check, given the method's name and its namespace, before every call."""
    return cast(PORT, _Guarded(port, check, namespace_of))
