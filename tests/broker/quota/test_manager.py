"""Sensors of clients: which are shared, how limits change, and how many there are."""

from barnabas_broker.cluster.quota_entity import DEFAULT, QuotaEntity
from barnabas_broker.quota.manager import EXPIRY_MS, KNOWN_MAX, SENSORS_MAX, QuotaManager
from barnabas_broker.quota.rates import RateSensor


def new(limit: float, _now_ms: int) -> RateSensor:
    """A sensor with Kafka's windows."""
    return RateSensor(limit, windows=11, window_ms=1000)


def test_without_quotas_nothing_is_counted() -> None:
    """And it says so, at the cost of one attribute."""
    manager = QuotaManager(new)
    assert not manager.enabled
    assert manager.sensor("u", "c", 0) is None
    assert len(manager) == 0


def test_clients_of_one_user_share_its_quota() -> None:
    """Those of a default of client ids do not share."""
    manager = QuotaManager.of({QuotaEntity("u"): 5.0, QuotaEntity(DEFAULT, DEFAULT): 7.0}, new)
    assert manager.sensor("u", "c", 0) is manager.sensor("u", "d", 0)
    assert manager.sensor("v", "c", 0) is not manager.sensor("v", "d", 0)
    assert len(manager) == 3


def test_a_changed_limit_finds_what_was_counted() -> None:
    """One that is gone forgets it."""
    manager = QuotaManager.of({QuotaEntity("u"): 1e9}, new)
    sensor = manager.sensor("u", "c", 0)
    assert sensor is not None
    assert sensor.record(20_000, 0) == 0
    manager.set_limits({QuotaEntity("u"): 1000.0})
    assert manager.sensor("u", "c", 0) is sensor
    assert sensor.record(0, 0) == 10_000
    manager.set_limits({})
    assert manager.sensor("u", "c", 0) is None
    assert not manager.enabled


def test_a_more_specific_quota_takes_over() -> None:
    """Also from a sensor that is known already."""
    manager = QuotaManager.of({QuotaEntity("u"): 5.0}, new)
    before = manager.sensor("u", "c", 0)
    manager.set_limits({QuotaEntity("u"): 5.0, QuotaEntity("u", "c"): 3.0})
    after = manager.sensor("u", "c", 0)
    assert after is not None
    assert (after is before, after.limit) == (False, 3.0)


def test_unused_sensors_expire() -> None:
    """After an hour; one that is used stays."""
    manager = QuotaManager.of({QuotaEntity(None, DEFAULT): 5.0}, new)
    manager.sensor("u", "idle", 0)
    busy = manager.sensor("u", "busy", 0)
    assert busy is not None
    busy.record(1, EXPIRY_MS)
    manager.expire(EXPIRY_MS + 1)
    assert [tags for tags, _ in manager.in_use(9)] == [(None, "busy")]
    assert manager.sensor("u", "busy", EXPIRY_MS + 1) is busy


def test_client_ids_without_end() -> None:
    """The ones used longest ago make room; the busy one keeps what was counted."""
    manager = QuotaManager.of({QuotaEntity(None, DEFAULT): 1000.0}, new)
    busy = manager.sensor("u", "busy", 0)
    assert busy is not None
    for number in range(2 * KNOWN_MAX):
        busy.record(20_000, number)
        assert manager.sensor("u", f"client-{number}", number) is not None
        assert len(manager) <= SENSORS_MAX
    assert manager.sensor("u", "busy", 2 * KNOWN_MAX) is busy
    assert manager.sensor("u", "client-0", 2 * KNOWN_MAX) is not None


def test_long_client_ids_are_not_kept() -> None:
    """Ten thousand of 32 KiB would be too much: what begins alike is counted together."""
    manager = QuotaManager.of({QuotaEntity(None, DEFAULT): 1.0}, new)
    found = manager.sensor("u", "c" * 30_000, 0)
    assert found is manager.sensor("u", "c" * 32_000, 0)
    assert max(len(client_id) for (_, client_id), _ in manager.in_use(9)) < 1000
