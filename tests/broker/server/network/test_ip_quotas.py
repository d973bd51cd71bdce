"""Connections of addresses that open too many: held up, closed, and not counted (KIP-612)."""

import asyncio
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas_broker.cluster.quota_entity import DEFAULT, QuotaEntity
from barnabas_broker.server.network import ip_quotas
from barnabas_broker.server.network.ip_quotas import IpQuotas, found_limits
from barnabas_broker.server.node.broker_server import BrokerServer
from barnabas_broker.server.transport.counters import Cause
from barnabas_kafka.protocol.messages.api_versions import ApiVersionsRequest
from barnabas_kafka.settings.broker import BrokerSettings
from tests.broker.server.requests.test_client_quotas import set_quota
from tests.broker.server.running import Wire, pass_time, port_of, running_node
from tests.waiting import ANSWER, RUN, seconds, wait_for

RATE = "connection_creation_rate"
VERSIONS = ApiVersionsRequest(client_software_name="t", client_software_version="1")


def quotas(rates: dict[QuotaEntity, float], clock: Callable[[], int]) -> IpQuotas:
    """Quotas that are in effect."""
    configs = {entity: {RATE: rate} for entity, rate in rates.items()}
    made = IpQuotas(BrokerSettings.from_mapping({}), clock_ms=clock)
    assert made.differ_from(configs)
    made.take(configs, asyncio.run(found_limits(configs)))
    assert not made.differ_from(configs)
    return made


def test_rates_of_addresses() -> None:
    """Each has its own count; an address goes before the default, and a host is its addresses."""
    made = quotas(
        {
            QuotaEntity(ip=DEFAULT): 1.0,
            QuotaEntity(ip="10.0.0.1"): 2.0,
            QuotaEntity(ip="localhost"): 1000.0,
            QuotaEntity(ip="0:0:0:0:0:0:0:2"): 1000.0,
            QuotaEntity(user="u"): 0.0,
        },
        lambda: 0,
    )
    # Ten windows of a second count, the one that has begun not.
    assert [made.opened("10.0.0.9") > 0 for _ in range(12)] == [False] * 10 + [True] * 2
    assert [made.opened("10.0.0.1") > 0 for _ in range(21)] == [False] * 20 + [True]
    assert [made.opened("::ffff:127.0.0.1") > 0 for _ in range(50)] == [False] * 50
    assert [made.opened("::2") > 0 for _ in range(50)] == [False] * 50


def test_refused_connections_do_not_count() -> None:
    """Who goes on trying gets in as soon as it may."""
    now = [0]
    made = quotas({QuotaEntity(ip=DEFAULT): 1.0}, lambda: now[0])
    while not made.opened("a"):
        pass
    for _ in range(100):
        assert 0 < made.opened("a") <= 1000
    now[0] = 11_000
    assert made.opened("a") == 0


def test_a_host_that_is_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    """Its quota is ignored, and that is told."""
    assert asyncio.run(found_limits({QuotaEntity(ip="no such host."): {RATE: 1.0}})) == {}
    assert "connection_creation_rate ignored, host name not resolved: no such host." in caplog.text


def test_hosts_that_take_long_to_look_up(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Are left out; addresses and the default are in effect."""
    given_up = threading.Event()

    def hang(*_: object, **_named: object) -> None:
        given_up.wait(seconds(RUN))
        raise OSError("no answer")

    monkeypatch.setattr(ip_quotas, "LOOK_UP_S", 0.01)
    monkeypatch.setattr(socket, "getaddrinfo", hang)
    configs = {QuotaEntity(ip=each): {RATE: 1.0} for each in (DEFAULT, "10.0.0.1", "localhost")}

    async def look_up() -> dict[QuotaEntity, float]:
        found = await found_limits(configs)
        # The threads that others need are all there.
        assert await asyncio.to_thread(int, "1") == 1
        return found

    found = asyncio.run(look_up())
    given_up.set()
    assert [entity.client_id for entity in found] == [DEFAULT, "10.0.0.1"]
    assert "host names not resolved in time: localhost" in caplog.text


def in_effect(node: BrokerServer, wire: Wire, rate: float | None) -> None:
    """Set the rate of 127.0.0.1, and wait until the listeners go by it."""
    set_quota(wire, {"ip": "127.0.0.1"}, connection_creation_rate=rate)
    pass_time(node, 2)
    wait_for(
        "the listeners' quotas",
        lambda: node.socket_server.ip_quotas.differ_from(node.broker.image.quota_configs),
        until=lambda differs: not differs,
    )


def test_a_throttled_connection(tmp_path: Path) -> None:
    """It is not served, and closed when its time is over; connections that are open go on."""
    with running_node(tmp_path) as node, Wire(port_of(node)) as first:
        in_effect(node, first, 0)
        with Wire(port_of(node)) as second:
            second.send(VERSIONS, 3)
            wait_for(
                "the connection to be throttled",
                lambda: node.socket_server.counters.totals[Cause.CONNECTION_RATE_OF_ADDRESS],
                until=lambda count: count == 1,
            )
            assert first.ask(VERSIONS, 3).error_code == 0
            second.socket.setblocking(False)
            with pytest.raises(BlockingIOError):
                second.socket.recv(1)
            second.socket.settimeout(seconds(ANSWER))
            pass_time(node, 1)
            assert second.closed_by_broker()
        in_effect(node, first, None)
        with Wire(port_of(node)) as third:
            assert third.ask(VERSIONS, 3).error_code == 0


def test_a_stop_does_not_wait_for_throttled_connections(tmp_path: Path) -> None:
    """They are closed with the listener."""
    with running_node(tmp_path) as node, Wire(port_of(node)) as first:
        in_effect(node, first, 0)
        throttled = socket.create_connection(("127.0.0.1", port_of(node)), timeout=seconds(ANSWER))
        wait_for(
            "the connection to be throttled",
            lambda: node.socket_server.counters.totals[Cause.CONNECTION_RATE_OF_ADDRESS],
            until=lambda count: count == 1,
        )
    assert throttled.recv(1) == b""
    throttled.close()
