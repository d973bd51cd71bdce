"""The quotas of one kind: their entities, and the recorded usage.

Sensors are kept for clients that have a quota only. Client ids are the clients' to invent, so that
sensors are bounded: those unused for an hour go, as in Kafka, and beyond `SENSORS_MAX` those unused
longest. A client whose sensor is dropped starts with a new one.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Final, Generic, Protocol, Self, TypeVar

from barnabas_broker.cluster.quota_entity import QuotaEntity
from barnabas_broker.quota.precedence import Tags, limit_of, quota_of

SENSORS_MAX: Final = 10_000
"""Some 2 KiB each."""

DROPPED_SHARE: Final = 10
"""A tenth goes when there is no room: to look for the one unused longest each time costs."""

KNOWN_MAX: Final = 20_000
"""Users with client ids whose sensor, or want of one, is remembered."""

LONGEST_ID: Final = 255
"""Longer client ids are counted with all that begin in the same way."""

EXPIRY_CHECK_MS: Final = 60_000

EXPIRY_MS: Final = 3_600_000
"""Kafka's `InactiveSensorExpirationTimeSeconds`."""


class Sensor(Protocol):
    """What counts, and holds back."""

    limit: float
    last_ms: int
    throttle_ms: int

    def record(self, amount: float, now_ms: int) -> int:
        """Count an amount; returns for how many milliseconds the client must be held back."""
        ...

    def measured(self, now_ms: int) -> float:
        """What counts at the moment."""
        ...


S = TypeVar("S", bound=Sensor)


class QuotaManager(Generic[S]):
    """The sensors of one kind of quota, on one event loop."""

    __slots__ = ("_expires_ms", "_known", "_limits", "_new", "_sensors", "enabled")

    def __init__(self, new: Callable[[float, int], S]) -> None:
        """`new` makes a sensor of a limit and the time."""
        self._new = new
        self._limits: Mapping[QuotaEntity, float] = {}
        self._sensors: dict[Tags, S] = {}
        self._known: dict[tuple[str, str | None], S | None] = {}
        #: whether any user or client id has such a quota
        self.enabled = False
        self._expires_ms = 0

    @classmethod
    def of(cls, limits: Mapping[QuotaEntity, float], new: Callable[[float, int], S]) -> Self:
        """Quotas that are set from the beginning."""
        manager = cls(new)
        manager.set_limits(limits)
        return manager

    def set_limits(self, limits: Mapping[QuotaEntity, float]) -> None:
        """Apply other limits; entities that keep a quota keep their recorded usage."""
        self._limits = limits
        self.enabled = bool(limits)
        self._known.clear()
        for tags, sensor in list(self._sensors.items()):
            limit = limit_of(limits, tags)
            if limit is None:
                del self._sensors[tags]
            else:
                sensor.limit = limit

    def sensor(self, user: str, client_id: str | None, now_ms: int) -> S | None:
        """What counts for this client, None where it has no quota."""
        try:
            return self._known[user, client_id]
        except KeyError:
            return self._find(user, client_id, now_ms)

    def _find(self, user: str, client_id: str | None, now_ms: int) -> S | None:
        found = quota_of(self._limits, user, client_id)
        sensor = None
        if found is not None:
            (tagged_user, tagged_id), limit = found
            tags = tagged_user, tagged_id[:LONGEST_ID]
            sensor = self._sensors.get(tags)
            if sensor is None:
                if len(self._sensors) >= SENSORS_MAX:
                    self._make_room(now_ms)
                sensor = self._sensors[tags] = self._new(limit, now_ms)
                sensor.last_ms = now_ms
        if len(self._known) >= KNOWN_MAX:
            self._known.clear()
        if client_id is None or len(client_id) <= LONGEST_ID:
            self._known[user, client_id] = sensor
        return sensor

    def expire(self, now_ms: int) -> None:
        """Drop what was unused for an hour; called once a minute."""
        if now_ms >= self._expires_ms:
            self._expires_ms = now_ms + EXPIRY_CHECK_MS
            self._expire(now_ms)

    def _expire(self, now_ms: int) -> None:
        oldest = now_ms - EXPIRY_MS
        unused = [tags for tags, sensor in self._sensors.items() if sensor.last_ms < oldest]
        if unused:
            self._drop(unused)

    def _make_room(self, now_ms: int) -> None:
        self._expire(now_ms)
        if len(self._sensors) >= SENSORS_MAX:
            by_age = sorted(self._sensors, key=lambda tags: self._sensors[tags].last_ms)
            self._drop(by_age[: SENSORS_MAX // DROPPED_SHARE])

    def _drop(self, some: list[Tags]) -> None:
        for tags in some:
            del self._sensors[tags]
        self._known.clear()

    def in_use(self, most: int) -> Iterator[tuple[Tags, S]]:
        """Some of the sensors, with their tags."""
        return islice(self._sensors.items(), most)

    def __len__(self) -> int:
        return len(self._sensors)
