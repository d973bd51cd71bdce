"""How much throttled replication goes through a broker, and what is withheld when it is too much.

Decides whether a rate is exceeded, and whether a partition is left out of an answer or a request
because of it. Pure; times come in as milliseconds of a clock that never goes back. The rules are
those of Apache Kafka 3.9 (KIP-73; `ReplicationQuotaManager`, whose rate is a `SimpleRate`,
`ReplicaManager.shouldLeaderThrottle` and `AbstractFetcherThread.shouldFollowerThrottle`).

All bytes of throttled partitions are counted. Withheld are only those of replicas that are not in
sync: the others would leave the in-sync replicas for it. So a rate below what producers write is
exceeded for good, and followers that are behind wait.
"""

from collections import deque
from dataclasses import dataclass
from typing import Final

from barnabas_kafka.settings.declare import LONG_MAX

EVERY_REPLICA: Final = ("*",)


class ReplicationQuota:
    """Bytes in the last `windows` windows of `window_ms` each, against `limit` bytes per second."""

    __slots__ = ("_spans", "_window_ms", "_windows", "limit")

    def __init__(self, *, windows: int, window_ms: int) -> None:
        self._windows = windows
        self._window_ms = window_ms
        # [beginning, bytes] of each, the oldest first; never more than `windows`.
        self._spans: deque[list[int]] = deque(maxlen=windows)
        self.limit = LONG_MAX

    def record(self, size: int, now_ms: int) -> None:
        """So many bytes of throttled partitions went through."""
        self._forget(now_ms)
        spans = self._spans
        if not spans or now_ms - spans[-1][0] >= self._window_ms:
            spans.append([now_ms, 0])
        spans[-1][1] += size

    def rate(self, now_ms: int) -> float:
        """Bytes per second since the oldest window that counts began; over one window at least."""
        self._forget(now_ms)
        spans = self._spans
        if not spans:
            return 0.0
        passed_ms = max(now_ms - spans[0][0], self._window_ms)
        return sum(size for _, size in spans) * 1000 / passed_ms

    def is_exceeded(self, now_ms: int) -> bool:
        """Whether more goes through than may."""
        return self.limit < LONG_MAX and self.rate(now_ms) > self.limit

    def _forget(self, now_ms: int) -> None:
        spans = self._spans
        while spans and now_ms - spans[0][0] >= self._windows * self._window_ms:
            spans.popleft()


@dataclass(frozen=True, slots=True)
class ReplicationQuotas:
    """Those of one broker: what it sends to followers, fetches from leaders, and moves itself."""

    leader: ReplicationQuota
    follower: ReplicationQuota
    moves: ReplicationQuota


def is_throttled(replicas: tuple[str, ...], partition: int, broker: int) -> bool:
    """Whether a list of partition:broker pairs, or `*`, names that replica.

    The value of leader.replication.throttled.replicas or follower.replication.throttled.replicas.
    """
    if replicas == EVERY_REPLICA:
        return True
    pairs = (pair.split(":") for pair in replicas)
    return any((int(each), int(of)) == (partition, broker) for each, of in pairs)


def leader_withholds(
    quota: ReplicationQuota, *, throttled: bool, in_sync: bool, now_ms: int
) -> bool:
    """Whether a leader answers a follower's fetch of a partition without its records."""
    return throttled and not in_sync and quota.is_exceeded(now_ms)


def follower_holds_back(
    quota: ReplicationQuota, *, throttled: bool, lag: int | None, now_ms: int
) -> bool:
    """Whether a follower leaves a partition out of its fetch.

    `lag` is how far it was behind the leader's high watermark at the last answer, in offsets; None
    before the first, when it does not count as caught up either.
    """
    return throttled and not (lag is not None and lag <= 0) and quota.is_exceeded(now_ms)
