"""Who may connect, decided on counts and times alone."""

from dataclasses import replace

import pytest

from barnabas_broker.server.network.connection_quotas import ConnectionQuotas, plain_address
from barnabas_broker.server.transport.limits import ConnectionLimits

LIMITS = ConnectionLimits(
    total=3,
    of_address=2,
    of_named_address={"10.0.0.9": 0},
    of_listener={},
    rate=2**31 - 1,
    rate_of_listener={},
    protected=frozenset(),
)


def test_a_full_broker_accepts_after_a_disconnect() -> None:
    """Every connection counts, and every end of one."""
    quotas = ConnectionQuotas(LIMITS)
    for number in range(3):
        assert quotas.has_room("CLIENT")
        quotas.opened("CLIENT", f"10.0.0.{number}", 0.0)
    assert not quotas.has_room("CLIENT")
    quotas.closed("CLIENT", "10.0.0.1")
    assert quotas.has_room("CLIENT")


def test_an_address_is_refused_beyond_its_number() -> None:
    """Others are not; a named address has its own number, which may be none."""
    quotas = ConnectionQuotas(LIMITS)
    for _ in range(2):
        assert not quotas.refuses("10.0.0.1")
        quotas.opened("CLIENT", "10.0.0.1", 0.0)
    assert quotas.refuses("10.0.0.1")
    assert not quotas.refuses("10.0.0.2")
    assert quotas.refuses("10.0.0.9")


def test_addresses_that_left_are_forgotten() -> None:
    """A scan from a million addresses leaves nothing behind."""
    quotas = ConnectionQuotas(LIMITS)
    for number in range(1000):
        quotas.opened("CLIENT", str(number), 0.0)
        quotas.closed("CLIENT", str(number))
    assert (quotas.total, len(quotas.of_address)) == (0, 0)


def test_an_ipv4_client_is_counted_alike_on_every_socket() -> None:
    """A dual-stack socket writes its address in another way."""
    assert plain_address("::ffff:10.0.0.1") == plain_address("10.0.0.1") == "10.0.0.1"


def test_a_listener_has_limits_of_its_own() -> None:
    """A full listener does not fill the broker."""
    quotas = ConnectionQuotas(replace(LIMITS, of_listener={"CLIENT": 1}))
    quotas.opened("CLIENT", "a", 0.0)
    assert not quotas.has_room("CLIENT")
    assert quotas.has_room("OTHER")


def test_room_is_made_for_brokers_only() -> None:
    """The protected listener may go beyond the total, but not beyond its own limit."""
    limits = replace(LIMITS, total=1, protected=frozenset({"BROKERS"}), of_listener={"BROKERS": 1})
    quotas = ConnectionQuotas(limits)
    quotas.opened("CLIENT", "a", 0.0)
    assert not quotas.may_evict("CLIENT")
    assert quotas.may_evict("BROKERS")
    quotas.opened("BROKERS", "b", 0.0)
    assert not quotas.may_evict("BROKERS")


@pytest.mark.parametrize("rate", [1, 5, 100])
def test_newcomers_are_spread_over_time(rate: int) -> None:
    """After a burst of one second's worth, connections come in at the rate."""
    quotas = ConnectionQuotas(replace(LIMITS, total=10_000, rate=rate))
    now = 100.0
    accepted: list[float] = []
    while len(accepted) < 4 * rate:
        wait = quotas.wait_s("CLIENT", now)
        if wait > 0:
            now += wait
        else:
            quotas.opened("CLIENT", "a", now)
            accepted.append(now)
    assert accepted.count(100.0) == rate
    assert accepted[-1] - 100.0 == pytest.approx(3.0, rel=1e-3)


def test_the_rates_of_listeners_are_apart() -> None:
    """One that is slowed down does not slow down another."""
    quotas = ConnectionQuotas(replace(LIMITS, rate_of_listener={"CLIENT": 1}))
    quotas.opened("CLIENT", "a", 0.0)
    assert quotas.wait_s("CLIENT", 0.0) > 0
    assert quotas.wait_s("OTHER", 0.0) == 0
