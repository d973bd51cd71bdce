"""How many connections each address may open in a second (KIP-612, `ConnectionQuotas`).

A connection beyond that is accepted, left alone for the throttle time, one window at most, and then
closed; it does not count. Names of hosts are looked up when quotas change.
"""

import asyncio
import logging
import socket
from collections.abc import Callable
from ipaddress import ip_address
from typing import Final

from barnabas_broker.cluster.quota_entity import (
    CONNECTION_CREATION_RATE,
    Default,
    QuotaConfigs,
    QuotaEntity,
    is_address,
    limits_of,
)
from barnabas_broker.quota.manager import QuotaManager
from barnabas_broker.quota.rates import RateSensor
from barnabas_broker.server.network.connection_quotas import plain_address
from barnabas_kafka.settings import broker as keys
from barnabas_kafka.settings.broker import BrokerSettings

log = logging.getLogger(__name__)

LOOK_UP_S: Final = 5.0
"""How long hosts are looked up: clients are not watched meanwhile."""

_EVERY_USER: Final = ""


class IpQuotas:
    """The rates of addresses, and what they open. On the event loop."""

    def __init__(self, settings: BrokerSettings, *, clock_ms: Callable[[], int]) -> None:
        """`clock_ms` is one that never goes back."""
        self._clock_ms = clock_ms
        windows = settings[keys.QUOTA_WINDOW_NUM]
        window_ms = settings[keys.QUOTA_WINDOW_SIZE_SECONDS] * 1000

        def rate(limit: float, _now_ms: int) -> RateSensor:
            return RateSensor(
                limit, windows=windows, window_ms=window_ms, max_throttle_ms=window_ms
            )

        # An address is to its default what a client id is to that of client ids.
        self._rates = QuotaManager(rate)
        self._configs: QuotaConfigs = {}

    def differ_from(self, configs: QuotaConfigs) -> bool:
        """Whether these are other quotas than those in effect."""
        return configs is not self._configs

    def take(self, configs: QuotaConfigs, limits: dict[QuotaEntity, float]) -> None:
        """Go by the limits that `address_limits` has found in quotas."""
        self._configs = configs
        self._rates.set_limits(limits)

    def opened(self, host: str) -> int:
        """An address opens a connection; for how long to delay its end where it may not, else 0."""
        if not self._rates.enabled:
            return 0
        now_ms = self._clock_ms()
        sensor = self._rates.sensor(_EVERY_USER, plain_address(host), now_ms)
        if sensor is None:
            return 0
        throttle_ms = sensor.record(1.0, now_ms)
        if throttle_ms:
            sensor.unrecord(1.0, now_ms)
        return throttle_ms

    def expire(self) -> None:
        """Forget addresses that were not there for an hour."""
        self._rates.expire(self._clock_ms())


async def found_limits(configs: QuotaConfigs) -> dict[QuotaEntity, float]:
    """The rates by address, as client ids; without those of names that take long to look up."""
    looking = asyncio.to_thread(address_limits, configs)
    try:
        return await asyncio.wait_for(looking, LOOK_UP_S)
    except TimeoutError:
        log.error("connection_creation_rate of hosts is ignored: looking them up takes long")
        known = {
            entity: quotas
            for entity, quotas in configs.items()
            if not isinstance(entity.ip, str) or is_address(entity.ip)
        }
        return address_limits(known)


def address_limits(configs: QuotaConfigs) -> dict[QuotaEntity, float]:
    """The rates by address, as client ids; looks names up, which may block."""
    limits = {}
    for entity, rate in limits_of(configs, CONNECTION_CREATION_RATE).items():
        if isinstance(entity.ip, Default):
            limits[QuotaEntity(client_id=entity.ip)] = rate
        elif entity.ip is not None:
            for address in _addresses(entity.ip):
                limits[QuotaEntity(client_id=address)] = rate
    return limits


def _addresses(host: str) -> set[str]:
    if is_address(host):
        return {plain_address(str(ip_address(host)))}
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        log.error("connection_creation_rate of %s is ignored: %s", host, error)
        return set()
    return {plain_address(str(address[0])) for *_, address in found}
