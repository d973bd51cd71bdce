"""Every key declares what Apache Kafka declares, and takes and refuses the same texts."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas_kafka.settings import broker, topic
from barnabas_kafka.settings.definitions import Key, Served, SettingError

from .apache_facts import FACTS, Fact

KEYS: dict[str, dict[str, Key[Any]]] = {"broker": dict(broker.KEYS), "topic": dict(topic.KEYS)}


# The addresses of a KRaft quorum, which this engine does not read.
NOT_READ = {"controller.quorum.voters", "controller.quorum.bootstrap.servers"}


# What Apache Kafka does not have; none of its names begins like that.
OWN_PREFIX = "barnabas."


def key_of(fact: Fact) -> Key[Any]:
    """Our declaration of a setting of Kafka's."""
    return KEYS[fact.scope][fact.name]


def takes(key: Key[Any], text: str) -> bool:
    """Whether a key accepts a text."""
    try:
        key.parse(text)
    except SettingError:
        return False
    return True


@pytest.mark.parametrize("scope", ["broker", "topic"])
def test_the_names_are_kafkas(scope: str) -> None:
    """No setting of Kafka 3.9 is missing, and none is invented but under a prefix of our own."""
    kafkas = {name for name in KEYS[scope] if not name.startswith(OWN_PREFIX)}
    assert kafkas == {fact.name for fact in FACTS if fact.scope == scope}


def test_declarations_are_kafkas() -> None:
    """Type, default, importance, update mode and being internal agree for every setting."""
    ours = [
        (
            fact.scope,
            key.name,
            key.kind.name,
            key.default_text,
            key.importance.value,
            key.update.value,
            key.internal,
        )
        for fact in FACTS
        for key in [key_of(fact)]
    ]
    theirs = [
        (
            fact.scope,
            fact.name,
            fact.kind,
            fact.default,
            fact.importance,
            fact.update,
            fact.internal,
        )
        for fact in FACTS
    ]
    assert ours == theirs


def test_texts_are_taken_and_refused_as_by_kafka() -> None:
    """Each of Kafka's verdicts on some forty texts per setting is ours."""
    differences = [
        (fact.scope, fact.name, text, verdict)
        for fact in FACTS
        for text, verdict in fact.accepted.items()
        if takes(key_of(fact), text) != verdict and fact.name not in NOT_READ
    ]
    assert differences == []


def test_defaults_are_within_range() -> None:
    """A default can be written down and read again, and is allowed."""
    for keys in KEYS.values():
        for key in keys.values():
            if key.default_text is not None:
                assert key.parse(key.default_text) == key.default, key.name


def test_every_setting_is_explained() -> None:
    """Each key says what it does, and says why where the engine does not act on it."""
    for keys in KEYS.values():
        for key in keys.values():
            assert key.doc.endswith("."), key.name
            assert bool(key.note) == (key.served in (Served.OTHERWISE, Served.NEVER)) or (
                key.served is Served.LATER
            ), key.name


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("log.segment.bytes", "5", "log.segment.bytes=5: must be at least 14"),
        (
            "num.partitions",
            "ten",
            "num.partitions=ten: must be a whole number; allowed: at least 1",
        ),
        (
            "log.cleaner.min.cleanable.ratio",
            "2",
            "log.cleaner.min.cleanable.ratio=2: must be between 0 and 1",
        ),
        (
            "delete.topic.enable",
            "yes",
            "delete.topic.enable=yes: must be true or false",
        ),
        (
            "message.max.bytes",
            "9999999999",
            "message.max.bytes=9999999999: must fit 32 bits (to 2147483647); allowed: at least 0",
        ),
    ],
)
def test_a_refusal_is_one_line(name: str, text: str, line: str) -> None:
    """The user sees key, value and what is allowed."""
    with pytest.raises(SettingError) as refused:
        broker.KEYS[name].parse(text)
    assert str(refused.value) == line


def test_a_secret_is_never_shown() -> None:
    """A refusal of a password does not print it, in the message or beside it."""
    error = SettingError("ssl.key.password", None, "must not be empty")
    assert broker.SSL_KEY_PASSWORD.sensitive
    assert str(error) == "ssl.key.password: must not be empty"
