"""Changes of settings: what they make of the settings there are."""

import pytest

from barnabas_broker.controller.configs import (
    AlterOperation,
    ConfigChange,
    ConfigResource,
    broker_key,
    check_changes,
    incremented,
    replaced,
    resource_of,
)
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.settings import topic

SET, DELETE, APPEND, SUBTRACT = AlterOperation


def increment(current: dict[str, str], *changes: ConfigChange) -> dict[str, str]:
    """Apply changes to settings of a topic."""
    return incremented(current, changes, topic.KEYS.get)


def test_replacing_forgets_what_is_not_sent() -> None:
    """AlterConfigs sends all settings; the others go back to their defaults."""
    assert replaced([ConfigChange("a", "1"), ConfigChange("b", "")]) == {"a": "1", "b": ""}


def test_set_and_delete_touch_one_setting() -> None:
    """Incremental changes leave the others alone, and deleting what is not set is no fault."""
    current = {"retention.ms": "1", "segment.ms": "2"}
    changes = (
        ConfigChange("retention.ms", "9", SET),
        ConfigChange("segment.ms", None, DELETE),
        ConfigChange("flush.ms", None, DELETE),
    )
    assert increment(current, *changes) == {"retention.ms": "9"}
    assert current == {"retention.ms": "1", "segment.ms": "2"}


@pytest.mark.parametrize(
    ("current", "operation", "value", "expected"),
    [
        ("compact", APPEND, "delete", "compact,delete"),
        ("compact", APPEND, "compact,delete", "compact,delete"),
        (None, APPEND, "compact", "delete,compact"),
        ("compact,delete", SUBTRACT, "compact", "delete"),
        ("compact,delete", SUBTRACT, "compact,delete", ""),
        ("compact", SUBTRACT, "delete", "compact"),
        (None, SUBTRACT, "delete", ""),
    ],
)
def test_lists_are_added_to_and_taken_from(
    current: str | None, operation: AlterOperation, value: str, expected: str
) -> None:
    """A list that is not set counts as its default."""
    before = {} if current is None else {"cleanup.policy": current}
    after = increment(before, ConfigChange("cleanup.policy", value, operation))
    assert after == {"cleanup.policy": expected}


@pytest.mark.parametrize("operation", [APPEND, SUBTRACT])
@pytest.mark.parametrize("name", ["retention.ms", "no.such.setting"])
def test_only_lists_have_members(operation: AlterOperation, name: str) -> None:
    """Adding to a number, or to nothing known, is refused."""
    with pytest.raises(KafkaError) as caught:
        increment({}, ConfigChange(name, "1", operation))
    assert caught.value.code == ErrorCode.INVALID_CONFIG
    assert name in caught.value.message


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ([ConfigChange("a", "1"), ConfigChange("a", "2")], "Error due to duplicate config keys"),
        (
            [ConfigChange("a", None), ConfigChange("b", None, APPEND)],
            "Null value not supported for : a, b",
        ),
        ([ConfigChange("a", "1", 7)], "Unknown operations type 7"),
    ],
)
def test_requests_without_sense(changes: list[ConfigChange], message: str) -> None:
    """They are refused before any value is looked at."""
    with pytest.raises(KafkaError) as caught:
        check_changes(changes)
    assert (caught.value.code, caught.value.message) == (ErrorCode.INVALID_REQUEST, message)


def test_deleting_needs_no_value() -> None:
    """The one operation that may come with null."""
    check_changes([ConfigChange("a", None, DELETE), ConfigChange("b", "1", SET)])


def test_a_broker_is_named_by_its_id_or_not_at_all() -> None:
    """The empty name means all brokers; other brokers' settings are theirs to change."""
    assert broker_key("", broker_id=4) == ""
    assert broker_key("4", broker_id=4) == "4"
    for name in ("5", "four", "4.0"):
        with pytest.raises(KafkaError) as caught:
            broker_key(name, broker_id=4)
        assert caught.value.code == ErrorCode.INVALID_REQUEST
        assert name in caught.value.message


def test_unknown_resource_types_are_refused() -> None:
    """A number that a later Kafka gave a meaning is not an error of this program."""
    assert resource_of(4) is ConfigResource.BROKER
    assert resource_of(77) is ConfigResource.UNKNOWN
