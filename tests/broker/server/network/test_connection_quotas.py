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
    admission = ConnectionQuotas(LIMITS)
    for number in range(3):
        assert admission.has_room("CLIENT")
        admission.came("CLIENT", f"10.0.0.{number}", 0.0)
    assert not admission.has_room("CLIENT")
    admission.went("CLIENT", "10.0.0.1")
    assert admission.has_room("CLIENT")


def test_an_address_is_refused_beyond_its_number() -> None:
    """Others are not; a named address has its own number, which may be none."""
    admission = ConnectionQuotas(LIMITS)
    for _ in range(2):
        assert not admission.refuses("10.0.0.1")
        admission.came("CLIENT", "10.0.0.1", 0.0)
    assert admission.refuses("10.0.0.1")
    assert not admission.refuses("10.0.0.2")
    assert admission.refuses("10.0.0.9")


def test_addresses_that_left_are_forgotten() -> None:
    """A scan from a million addresses leaves nothing behind."""
    admission = ConnectionQuotas(LIMITS)
    for number in range(1000):
        admission.came("CLIENT", str(number), 0.0)
        admission.went("CLIENT", str(number))
    assert (admission.total, len(admission.of_address)) == (0, 0)


def test_an_ipv4_client_is_counted_alike_on_every_socket() -> None:
    """A dual-stack socket writes its address in another way."""
    assert plain_address("::ffff:10.0.0.1") == plain_address("10.0.0.1") == "10.0.0.1"


def test_a_listener_has_limits_of_its_own() -> None:
    """A full listener does not fill the broker."""
    admission = ConnectionQuotas(replace(LIMITS, of_listener={"CLIENT": 1}))
    admission.came("CLIENT", "a", 0.0)
    assert not admission.has_room("CLIENT")
    assert admission.has_room("OTHER")


def test_room_is_made_for_brokers_only() -> None:
    """The protected listener may go beyond the total, but not beyond its own limit."""
    limits = replace(LIMITS, total=1, protected=frozenset({"BROKERS"}), of_listener={"BROKERS": 1})
    admission = ConnectionQuotas(limits)
    admission.came("CLIENT", "a", 0.0)
    assert not admission.may_evict("CLIENT")
    assert admission.may_evict("BROKERS")
    admission.came("BROKERS", "b", 0.0)
    assert not admission.may_evict("BROKERS")


@pytest.mark.parametrize("rate", [1, 5, 100])
def test_newcomers_are_spread_over_time(rate: int) -> None:
    """After a burst of one second's worth, connections come in at the rate."""
    admission = ConnectionQuotas(replace(LIMITS, total=10_000, rate=rate))
    now = 100.0
    accepted: list[float] = []
    while len(accepted) < 4 * rate:
        wait = admission.wait_s("CLIENT", now)
        if wait > 0:
            now += wait
        else:
            admission.came("CLIENT", "a", now)
            accepted.append(now)
    assert accepted.count(100.0) == rate
    assert accepted[-1] - 100.0 == pytest.approx(3.0, rel=1e-3)


def test_the_rates_of_listeners_are_apart() -> None:
    """One that is slowed down does not slow down another."""
    admission = ConnectionQuotas(replace(LIMITS, rate_of_listener={"CLIENT": 1}))
    admission.came("CLIENT", "a", 0.0)
    assert admission.wait_s("CLIENT", 0.0) > 0
    assert admission.wait_s("OTHER", 0.0) == 0
