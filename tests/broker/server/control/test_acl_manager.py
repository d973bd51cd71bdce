"""Which authorizer the settings ask for."""

from __future__ import annotations

import pytest

from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.server.control.acl_manager import rules_from
from barnabas_broker.server.process.startup import StartupError
from barnabas_kafka.settings.broker import BrokerSettings
from barnabas_kafka.settings.definitions import SettingError
from barnabas_kafka.settings.keys.security import AUTHORIZERS

ASKED = "User:CN=a,OU=b", "10.0.0.1", AclOperation.READ, ResourceType.TOPIC, "t"


def settings(name: str, **others: str) -> BrokerSettings:
    """Settings of a broker with that class."""
    given = {key.replace("_", "."): value for key, value in others.items()}
    return BrokerSettings.from_mapping({"authorizer.class.name": name, **given})


def test_without_a_class_there_is_none() -> None:
    """Kafka's default."""
    assert rules_from(settings("")) is None
    assert rules_from(BrokerSettings.from_mapping({})) is None


@pytest.mark.parametrize("name", AUTHORIZERS)
def test_kafkas_classes(name: str) -> None:
    """Both names, and the two settings that they read."""
    plain = rules_from(settings(name))
    assert plain is not None
    assert not plain.decide(*ASKED).allowed
    allowing = rules_from(settings(name, allow_everyone_if_no_acl_found=" TRUE "))
    assert allowing is not None
    assert allowing.decide(*ASKED).allowed
    rooted = rules_from(settings(name, super_users="User:root; User:CN=a,OU=b;"))
    assert rooted is not None
    assert rooted.decide(*ASKED).allowed


@pytest.mark.parametrize(
    ("others", "said"),
    [
        ({"super_users": "root"}, "super.users"),
        ({"allow_everyone_if_no_acl_found": "yes"}, "neither true nor false"),
        ({"authorizer_zookeeper_url": "a:2181"}, "authorizer.zookeeper.url"),
    ],
)
def test_invalid_authorizer_settings_fail_the_startup(others: dict[str, str], said: str) -> None:
    """By name: a broker that lets everybody in by mistake is worse than none."""
    with pytest.raises(StartupError, match=said):
        rules_from(settings(AUTHORIZERS[0], **others))


@pytest.mark.parametrize(
    "name", ["com.example.Mine", "org.apache.kafka.metadata.authorizer.StandardAuthorizer"]
)
def test_other_classes_are_refused(name: str) -> None:
    """Java classes cannot be loaded."""
    with pytest.raises(SettingError, match=rf"authorizer.class.name={name}.*AclAuthorizer"):
        settings(name)
