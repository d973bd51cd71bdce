"""Which changes of settings need a roll, and what is set for all brokers."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas_operator.names import CONFIG_HASH, DYNAMIC_CONFIG
from barnabas_operator.plan.dynamic_config import ConfigRecord, next_record, plan_change, record_of
from barnabas_operator.resources.objects import digest

STATIC = "num.partitions=1\n"
DAY, WEEK = "log.retention.ms=86400000\n", "log.retention.ms=604800000\n"
RETENTION = frozenset({"log.retention.ms"})


def _set(config_hash: str, record: ConfigRecord | None = None) -> dict[str, Any]:
    notes = {} if record is None else {DYNAMIC_CONFIG: str(record)}
    template = {"metadata": {"annotations": {CONFIG_HASH: config_hash}}}
    return {"metadata": {"annotations": notes}, "spec": {"template": template}}


def _config_map(text: str) -> dict[str, Any]:
    return {"data": {"server.properties": text}}


@pytest.mark.parametrize(
    ("before", "after", "rolls"),
    [
        pytest.param(STATIC + DAY, STATIC + WEEK, False, id="a value"),
        pytest.param(STATIC, STATIC + WEEK, False, id="another setting"),
        pytest.param(STATIC + DAY, STATIC, True, id="a setting less"),
        pytest.param(STATIC, "num.partitions=2\n", True, id="a read-only setting"),
        pytest.param(STATIC, STATIC + "ssl.cipher.suites=a\n", True, id="a setting per broker"),
        pytest.param(
            STATIC, STATIC + "listener.name.a.max.connections=1\n", True, id="a listener's setting"
        ),
        pytest.param(STATIC, STATIC + "sasl.jaas.config=a\n", True, id="a secret"),
        pytest.param(STATIC, STATIC + "of.a.plugin=a\n", True, id="an unknown setting"),
    ],
)
def test_which_changes_roll(before: str, after: str, rolls: bool) -> None:
    """With a record, and with the objects of an operator that wrote none."""
    record, config_hash = next_record(before, None, None, None)
    assert config_hash == digest(before)
    for found in (_set(config_hash, record), _set(config_hash)):
        _, then = next_record(after, found, _config_map(before), None)
        assert (then != config_hash) is rolls
        assert next_record(before, found, _config_map(before), None)[1] == config_hash


def test_a_setting_that_pods_may_have_read_is_rolled_away_though_the_file_is_as_it_was() -> None:
    """Added without a roll, and removed: a pod that restarted in between has it."""
    record, config_hash = next_record(STATIC, None, None, None)
    record, kept = next_record(STATIC + DAY, _set(config_hash, record), None, None)
    assert kept == config_hash
    found = _set(kept, record)
    record, then = next_record(STATIC, found, None, None)
    assert then != config_hash
    assert next_record(STATIC, _set(then, record), None, None) == (record, then)


def test_a_removed_setting_is_remembered_until_it_is_deleted() -> None:
    """Its value may be deleted only when no pod has it from its file."""
    record, config_hash = next_record(STATIC + DAY, None, None, None)
    early = plan_change(record, {}, {"log.retention.ms": "1"}, is_rolled=True)
    assert early is None
    record, config_hash = next_record(STATIC, _set(config_hash, record), None, {})
    assert (record.files, record.managed) == (frozenset(), RETENTION)
    present = {"log.retention.ms": "86400000", "max.connections": "5"}
    assert plan_change(record, {}, present, is_rolled=False) is None
    change = plan_change(record, {}, present, is_rolled=True)
    assert str(change) == "remove log.retention.ms"
    found = _set(config_hash, record)
    assert next_record(STATIC, found, None, present)[0].managed == RETENTION
    assert next_record(STATIC, found, None, {"max.connections": "5"})[0].managed == frozenset()


@pytest.mark.parametrize(
    ("name", "wanted", "present", "change"),
    [
        ("log.retention.ms", "5", None, "set log.retention.ms=5"),
        ("log.retention.ms", "5", "6", "set log.retention.ms=5"),
        ("log.retention.ms", "5", "05", "None"),
        ("log.preallocate", "TRUE", "true", "None"),
        ("log.retention.ms", "5", "malformed", "set log.retention.ms=5"),
        ("num.io.threads", "64", "8", "set num.io.threads=16"),
        ("num.io.threads", "2", "8", "set num.io.threads=4"),
        ("num.io.threads", "12", "8", "set num.io.threads=12"),
        ("num.io.threads", "64", None, "set num.io.threads=64"),
    ],
)
def test_settings_that_are_set(name: str, wanted: str, present: str | None, change: str) -> None:
    """Pools of threads go by steps that brokers take."""
    record = ConfigRecord(static="", files=frozenset({name}), managed=frozenset({name}))
    values = {} if present is None else {name: present}
    assert str(plan_change(record, {name: wanted}, values, is_rolled=True)) == change


def test_nothing_is_set_before_it_is_recorded() -> None:
    """An operator that ends in between would not know whose it is."""
    record = ConfigRecord(static="", files=frozenset(), managed=frozenset())
    assert plan_change(record, {"log.retention.ms": "5"}, {}, is_rolled=True) is None


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "nothing", '{"static":"","files":1,"managed":[]}']
)
def test_an_unreadable_record_is_none(text: str) -> None:
    """As if an earlier operator had written the object."""
    assert record_of({"metadata": {"annotations": {DYNAMIC_CONFIG: text}}}) is None
    assert record_of({"metadata": {}}) is None
