"""How many connections each address may open in a second (KIP-612, `ConnectionQuotas`).

A connection beyond that is accepted, left alone for the throttle time, one window at most, and then
closed; it does not count. Names of hosts are looked up when quotas change.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
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
from barnabas_kafka.host_resolver import HostResolver
from barnabas_kafka.settings import broker as keys
from barnabas_kafka.settings.broker import BrokerSettings

log = logging.getLogger(__name__)

LOOK_UP_S: Final = 5.0
"""How long hosts are looked up: clients are not watched meanwhile."""

LOOKUPS_MAX: Final = 64
"""At once; less than a resolver has room for."""

NAMED_MAX: Final = 10
"""So many hosts are named in an error."""

_EVERY_USER: Final = ""
_RESOLVER: Final = HostResolver()
"""A look-up that hangs takes no thread from others, and the next change shares it."""


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
        """Go by the limits that `found_limits` has found in quotas."""
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
    """The rates by address, as client ids; without those of names that are not found in time."""
    rates = limits_of(configs, CONNECTION_CREATION_RATE)
    hosts = {it.ip for it in rates if isinstance(it.ip, str) and not is_address(it.ip)}
    known = await _addresses(sorted(hosts))
    limits: dict[QuotaEntity, float] = {}
    for entity, rate in rates.items():
        if isinstance(entity.ip, Default):
            limits[QuotaEntity(client_id=entity.ip)] = rate
        elif entity.ip is not None and is_address(entity.ip):
            limits[QuotaEntity(client_id=plain_address(str(ip_address(entity.ip))))] = rate
        elif entity.ip is not None:
            for address in known.get(entity.ip, ()):
                limits[QuotaEntity(client_id=address)] = rate
    return limits


async def _addresses(hosts: Sequence[str]) -> dict[str, set[str]]:
    """The addresses of names, `LOOK_UP_S` at most for all; what is not found is logged."""
    known: dict[str, set[str]] = {}
    places = asyncio.Semaphore(LOOKUPS_MAX)

    async def look_up(host: str) -> None:
        try:
            async with places:
                known[host] = {plain_address(it) for it in await _RESOLVER.resolve(host)}
        except (OSError, UnicodeError) as error:
            known[host] = set()
            log.error(
                "connection_creation_rate ignored, host name not resolved: %s: %s", host, error
            )

    try:
        async with asyncio.timeout(LOOK_UP_S):
            await asyncio.gather(*map(look_up, hosts))
    except TimeoutError:
        log.error(
            "connection_creation_rate ignored, host names not resolved in time: %s",
            ", ".join(host for host in hosts[:NAMED_MAX] if host not in known),
        )
    return known
