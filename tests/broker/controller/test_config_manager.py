"""Changes of settings at run time, on a real store: who accepts what, and what stays."""

import logging
from pathlib import Path

import pytest

from barnabas_broker.controller.configs import AlterOperation, ConfigChange, ConfigResource
from barnabas_broker.controller.requests import ConfigRequest, Outcome
from barnabas_broker.controller.topics import NewTopic
from barnabas_broker.security.principals import ANONYMOUS
from barnabas_broker.zk.store import SetData
from barnabas_broker.zk.znodes import ConfigChangeZnode, ConfigZnode
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.settings import broker as keys
from tests.broker.controller.embedded import NOW_MS, Embedded

TOPIC, BROKER = ConfigResource.TOPIC, ConfigResource.BROKER


@pytest.fixture
def embedded(tmp_path: Path) -> Embedded:
    """A broker's controller with one topic that has a setting of its own."""
    embedded = Embedded(tmp_path, {"log.retention.hours": "2"})
    embedded.create(NewTopic(name="a", configs=[("retention.ms", "5")]))
    return embedded


def alter(
    embedded: Embedded,
    resource: ConfigResource,
    name: str,
    *changes: ConfigChange,
    incremental: bool = True,
    validate_only: bool = False,
    now_ms: int = NOW_MS,
) -> Outcome:
    """One request about one resource."""
    controller = embedded.controller
    send = controller.incremental_alter_configs if incremental else controller.alter_configs
    request = ConfigRequest(resource, name, changes)
    return send([request], validate_only=validate_only, principal=ANONYMOUS, now_ms=now_ms)[0]


def test_a_topics_setting_changes_and_stays(embedded: Embedded) -> None:
    """The image shows it at once, and a restart finds it."""
    outcome = alter(embedded, TOPIC, "a", ConfigChange("segment.bytes", "1048576"))
    assert outcome.granted
    expected = {"retention.ms": "5", "segment.bytes": "1048576"}
    assert embedded.image.topics["a"].config == expected
    embedded.restart()
    assert embedded.image.topics["a"].config == expected


def test_replacing_a_topics_settings_forgets_the_others(embedded: Embedded) -> None:
    """That is what AlterConfigs does, and why it is deprecated."""
    change = ConfigChange("segment.bytes", "1048576")
    assert alter(embedded, TOPIC, "a", change, incremental=False).granted
    assert embedded.image.topics["a"].config == {"segment.bytes": "1048576"}
    assert alter(embedded, TOPIC, "a", incremental=False).granted
    assert embedded.image.topics["a"].config == {}


def test_validating_a_change_makes_none(embedded: Embedded) -> None:
    """The answer is the same, the settings are not."""
    before = embedded.image
    change = ConfigChange("retention.ms", "9")
    assert alter(embedded, TOPIC, "a", change, validate_only=True).granted
    broker = ConfigChange("log.retention.ms", "9")
    assert alter(embedded, BROKER, "", broker, validate_only=True).granted
    assert embedded.image is before
    assert embedded.controller.settings.cluster_wide == {}


@pytest.mark.parametrize(
    ("resource", "name", "change", "code"),
    [
        (TOPIC, "a", ConfigChange("no.such", "1"), ErrorCode.INVALID_CONFIG),
        (TOPIC, "a", ConfigChange("retention.ms", "x"), ErrorCode.INVALID_CONFIG),
        (TOPIC, "b", ConfigChange("retention.ms", "1"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "", ConfigChange("retention.ms", "1"), ErrorCode.INVALID_REQUEST),
        (TOPIC, "a b", ConfigChange("retention.ms", "1"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (TOPIC, "a", ConfigChange("retention.ms", None), ErrorCode.INVALID_REQUEST),
        (BROKER, "1", ConfigChange("num.partitions", "2"), ErrorCode.INVALID_REQUEST),
        (BROKER, "1", ConfigChange("log.retention.ms", "x"), ErrorCode.INVALID_REQUEST),
        (BROKER, "2", ConfigChange("log.retention.ms", "1"), ErrorCode.INVALID_REQUEST),
        (ConfigResource.CLIENT_METRICS, "m", ConfigChange("x", "1"), ErrorCode.INVALID_REQUEST),
    ],
)
def test_changes_that_cannot_be(
    embedded: Embedded, resource: ConfigResource, name: str, change: ConfigChange, code: ErrorCode
) -> None:
    """Each has its code, a message, and no effect."""
    before = embedded.image
    outcome = alter(embedded, resource, name, change)
    assert outcome.error == code
    assert outcome.message
    assert embedded.image is before


def test_a_brokers_setting_takes_effect_and_can_be_taken_back(embedded: Embedded) -> None:
    """One broker's own value is stronger than the one for all, which is stronger than the file."""
    key = keys.LOG_RETENTION_MS
    assert embedded.controller.settings[key] == 7_200_000
    alter(embedded, BROKER, "", ConfigChange(key.name, "1000"))
    assert embedded.controller.settings[key] == 1000
    alter(embedded, BROKER, "1", ConfigChange(key.name, "2000"))
    assert embedded.controller.settings[key] == 2000
    embedded.restart()
    assert embedded.controller.settings[key] == 2000
    for name in ("1", ""):
        alter(embedded, BROKER, name, ConfigChange(key.name, None, AlterOperation.DELETE))
    assert embedded.controller.settings[key] == 7_200_000


def test_listeners_find_the_new_settings_when_they_are_called(embedded: Embedded) -> None:
    """Whoever acts on a change of the image must not read the settings of before."""
    seen: list[int] = []
    controller = embedded.controller
    controller.add_listener(
        lambda _old, _new: seen.append(controller.settings[keys.MESSAGE_MAX_BYTES])
    )
    alter(embedded, BROKER, "", ConfigChange("message.max.bytes", "4096"))
    assert seen == [4096]


def test_a_stored_setting_that_makes_no_sense_does_not_keep_a_broker_down(
    embedded: Embedded, caplog: pytest.LogCaptureFixture
) -> None:
    """It is ignored and logged; the others apply."""
    alter(embedded, BROKER, "", ConfigChange("message.max.bytes", "4096"))
    znode = ConfigZnode.for_broker("")
    data = znode.encode({"message.max.bytes": "4096", "log.retention.ms": "soon"})
    embedded.store.commit([SetData(znode.path, data)], now_ms=NOW_MS)
    with caplog.at_level(logging.ERROR):
        embedded.restart()
    assert embedded.controller.settings[keys.MESSAGE_MAX_BYTES] == 4096
    assert embedded.controller.settings[keys.LOG_RETENTION_MS] == 7_200_000
    assert "log.retention.ms" in caplog.text


def test_brokers_are_notified_and_old_notifications_go(embedded: Embedded) -> None:
    """Apache's brokers follow /config/changes; nothing there is kept for ever."""
    alter(embedded, TOPIC, "a", ConfigChange("retention.ms", "6"))
    alter(embedded, BROKER, "", ConfigChange("log.retention.ms", "6"))
    names = embedded.store.children(ConfigChangeZnode.ROOT)
    assert names == ["config_change_0000000000", "config_change_0000000001"]
    data, _ = embedded.store.get(f"{ConfigChangeZnode.ROOT}/{names[1]}")
    assert data == b'{"version":2,"entity_path":"brokers/<default>"}'
    later = NOW_MS + 15 * 60 * 1000 + 1
    alter(embedded, TOPIC, "a", ConfigChange("retention.ms", "7"), now_ms=later)
    assert embedded.store.children(ConfigChangeZnode.ROOT) == ["config_change_0000000002"]
