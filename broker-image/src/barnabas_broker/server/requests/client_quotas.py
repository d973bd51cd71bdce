"""The quotas of a broker's clients, and what one request uses of them.

Bytes produced are those of requests, bytes fetched those of responses, requests count by the time
they take, and changes of topics by their partitions (Kafka's `ClientQuotaManager`,
`ClientRequestQuotaManager`, `ControllerMutationQuotaManager`). A client beyond a quota is answered
at once with the throttle time, and then its connection is not read from for as long (KIP-219). A
fetch beyond it is answered without records, and they are not counted.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter_ns
from typing import Final

from barnabas_broker.cluster.image import MetadataImage
from barnabas_broker.cluster.quota_entity import (
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    QuotaConfigs,
    limits_of,
)
from barnabas_broker.quota.manager import QuotaManager
from barnabas_broker.quota.rates import INT_MAX, BucketSensor, RateSensor
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.settings import broker as keys
from barnabas_kafka.settings.broker import BrokerSettings

NS_PER_PERCENT: Final = 10_000_000
"""A request that takes a hundredth of a second takes one percent of a thread for that second."""


class ClientQuotas:
    """What is set, and what is used of it. On the event loop."""

    __slots__ = (
        "_clock_ms", "_window_s", "_windows", "active", "fetch", "mutations",
        "produce", "request",
    )  # fmt: skip

    def __init__(
        self, settings: BrokerSettings, configs: QuotaConfigs, *, clock_ms: Callable[[], int]
    ) -> None:
        """`clock_ms` is one that never goes back."""
        self._clock_ms = clock_ms
        self._windows = windows = settings[keys.QUOTA_WINDOW_NUM]
        self._window_s = settings[keys.QUOTA_WINDOW_SIZE_SECONDS]
        window_ms = self._window_s * 1000

        def rate(limit: float, _now_ms: int) -> RateSensor:
            return RateSensor(limit, windows=windows, window_ms=window_ms)

        def share(limit: float, _now_ms: int) -> RateSensor:
            return RateSensor(
                limit, windows=windows, window_ms=window_ms, max_throttle_ms=window_ms
            )

        mutation_windows = settings[keys.CONTROLLER_QUOTA_WINDOW_NUM]
        mutation_window_ms = settings[keys.CONTROLLER_QUOTA_WINDOW_SIZE_SECONDS] * 1000

        def bucket(limit: float, now_ms: int) -> BucketSensor:
            return BucketSensor(
                limit, windows=mutation_windows, window_ms=mutation_window_ms, now_ms=now_ms
            )

        self.produce = QuotaManager(rate)
        self.fetch = QuotaManager(rate)
        self.request = QuotaManager(share)
        self.mutations = QuotaManager(bucket)
        #: whether any quota exists; a request without one costs no more than this check
        self.active = False
        self.take(configs)

    def take(self, configs: QuotaConfigs) -> None:
        """Go by these quotas from now on."""
        self.produce.set_limits(limits_of(configs, PRODUCER_BYTE_RATE))
        self.fetch.set_limits(limits_of(configs, CONSUMER_BYTE_RATE))
        self.request.set_limits(limits_of(configs, REQUEST_PERCENTAGE))
        self.mutations.set_limits(limits_of(configs, CONTROLLER_MUTATION_RATE))
        self.active = any(each.enabled for each in self.managers())

    def on_image(self, old: MetadataImage, new: MetadataImage) -> None:
        """Go by the quotas of a new image."""
        if old.quota_configs is not new.quota_configs:
            self.take(new.quota_configs)

    def managers(self) -> Iterator["QuotaManager[RateSensor] | QuotaManager[BucketSensor]"]:
        """All kinds."""
        yield from (self.produce, self.fetch, self.request)
        yield self.mutations

    def expire(self) -> None:
        """Forget clients that were not there for an hour."""
        now_ms = self._clock_ms()
        for each in self.managers():
            each.expire(now_ms)

    def now_ms(self) -> int:
        """The time by which sensors go."""
        return self._clock_ms()

    def produced(self, user: str, client_id: str | None, size: int, spent_ns: int) -> int:
        """Count a request that produced; returns the throttle time. `spent_ns` 0: exempt."""
        now_ms = self._clock_ms()
        sensor = self.produce.sensor(user, client_id, now_ms)
        throttle_ms = 0 if sensor is None else sensor.record(size, now_ms)
        if spent_ns and self.request.enabled:
            throttle_ms = max(throttle_ms, self.requested(user, client_id, spent_ns))
        return throttle_ms

    def fetched(self, user: str, client_id: str | None, size: int, spent_ns: int) -> int:
        """Count a fetch. One that is throttled is not counted: nothing is sent then."""
        now_ms = self._clock_ms()
        throttle_ms = self.requested(user, client_id, spent_ns) if self.request.enabled else 0
        sensor = self.fetch.sensor(user, client_id, now_ms)
        if sensor is not None:
            throttle_ms = max(throttle_ms, sensor.record(size, now_ms))
            if throttle_ms:
                sensor.unrecord(size, now_ms)
        return throttle_ms

    def fetch_max_bytes(self, user: str, client_id: str | None) -> int:
        """The largest fetch that is not throttled for sure, if nothing was fetched lately."""
        sensor = self.fetch.sensor(user, client_id, self._clock_ms())
        if sensor is None:
            return INT_MAX
        return int(min(max(sensor.limit * (self._windows - 1) * self._window_s, 0), INT_MAX))

    def requested(self, user: str, client_id: str | None, spent_ns: int) -> int:
        """Count the time that a request took; returns the throttle time."""
        now_ms = self._clock_ms()
        sensor = self.request.sensor(user, client_id, now_ms)
        return 0 if sensor is None else sensor.record(spent_ns / NS_PER_PERCENT, now_ms)


class MutationQuota:
    """What one request may change of topics.

    Used in the controller's thread, or on the event loop of a broker that has asked the controller.
    """

    __slots__ = ("_clock_ms", "_sensor", "_strict", "_throttled_until_ms")

    def __init__(self, sensor: BucketSensor, *, strict: bool, clock_ms: Callable[[], int]) -> None:
        """Not `strict`: for versions that do not know the error and are throttled afterwards."""
        self._sensor = sensor
        self._strict = strict
        self._clock_ms = clock_ms
        self._throttled_until_ms = 0

    def take(self, partitions: int) -> None:
        """Count partitions that are to be created or deleted.

        Raises KafkaError THROTTLING_QUOTA_EXCEEDED where none may be.
        """
        now_ms = self._clock_ms()
        sensor = self._sensor
        throttled_ms = sensor.wait_ms(now_ms) if self._strict else sensor.record(partitions, now_ms)
        if throttled_ms:
            self._throttled_until_ms = now_ms + throttled_ms
        if self._strict:
            if throttled_ms:
                raise KafkaError(
                    ErrorCode.THROTTLING_QUOTA_EXCEEDED,
                    "The throttling quota has been exceeded.",
                )
            sensor.record(partitions, now_ms)

    @property
    def throttle_ms(self) -> int:
        """How long the client has to wait from now on."""
        return max(self._throttled_until_ms - self._clock_ms(), 0)


class Usage:
    """What one request uses, from its arrival to its response; where there are quotas only."""

    __slots__ = ("_began_ns", "_quotas", "_size", "_spent_ns", "_user", "client_id", "mutations",
                 "settled", "throttle_ms")  # fmt: skip

    def __init__(
        self, quotas: ClientQuotas, user: str, client_id: str | None, *, size: int, began_ns: int
    ) -> None:
        """`size` is the bytes of the request, `began_ns` of the performance counter."""
        self._quotas = quotas
        self._user = user
        self.client_id = client_id
        self._size = size
        self._began_ns = began_ns
        self._spent_ns = 0
        #: what the handler of a change of topics was given
        self.mutations: MutationQuota | None = None
        #: whether everything is counted
        self.settled = False
        self.throttle_ms = 0

    @property
    def is_paused(self) -> bool:
        """Whether nothing is done for it at the moment."""
        return not self._began_ns

    def pause(self) -> None:
        """The request waits: this time does not count."""
        self._spent_ns = self._spent
        self._began_ns = 0

    def go_on(self) -> None:
        """There is something to do for it again."""
        self._began_ns = perf_counter_ns()

    @contextmanager
    def working(self) -> Iterator[None]:
        """Count the time within the block, in which something is done for a request that waits."""
        if not self.is_paused:  # It counts already.
            yield
            return
        self.go_on()
        try:
            yield
        finally:
            self.pause()

    @property
    def _spent(self) -> int:
        began_ns = self._began_ns
        return self._spent_ns + (perf_counter_ns() - began_ns if began_ns else 0)

    def exempt(self) -> None:
        """What brokers ask each other is not counted."""
        self.settled = True

    def produced(self, *, answered: bool) -> None:
        """The request was a Produce; without an answer only its bytes count."""
        spent_ns = self._spent if answered else 0
        self._settle(self._quotas.produced(self._user, self.client_id, self._size, spent_ns))

    @property
    def fetch_max_bytes(self) -> int:
        """How much to read at most."""
        return self._quotas.fetch_max_bytes(self._user, self.client_id)

    def fetched(self, size: int) -> bool:
        """The request was a Fetch, the response has that size; returns whether it may be sent."""
        self._settle(self._quotas.fetched(self._user, self.client_id, size, self._spent))
        return not self.throttle_ms

    def requested(self) -> None:
        """The request was any other one."""
        throttle_ms = self._quotas.requested(self._user, self.client_id, self._spent)
        if self.mutations is not None:
            throttle_ms = max(throttle_ms, self.mutations.throttle_ms)
        self._settle(throttle_ms)

    def mutation_quota(self, *, strict: bool) -> MutationQuota | None:
        """What this request may change of topics, None for as much as it wants."""
        quotas = self._quotas
        sensor = quotas.mutations.sensor(self._user, self.client_id, quotas.now_ms())
        if sensor is not None:
            sensor.last_ms = quotas.now_ms()
            self.mutations = MutationQuota(sensor, strict=strict, clock_ms=quotas.now_ms)
        return self.mutations

    def _settle(self, throttle_ms: int) -> None:
        self.settled = True
        self.throttle_ms = throttle_ms
