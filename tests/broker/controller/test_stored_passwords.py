"""Passwords that are changed at run time: encrypted in the store, and what is left of bad ones."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from barnabas_broker.controller.configs import AlterOperation, ConfigChange, ConfigResource
from barnabas_broker.controller.requests import ConfigRequest, Outcome
from barnabas_broker.security.principals import ANONYMOUS
from barnabas_broker.zk.store import SetData
from barnabas_broker.zk.znodes import ConfigZnode
from barnabas_kafka.errors import ErrorCode
from tests.broker.controller.embedded import NOW_MS, Embedded

NAME = "listener.name.inside.ssl.keystore.password"
OTHER = "listener.name.inside.ssl.key.password"
SECRET = "password.encoder.secret"


def alter(
    embedded: Embedded,
    *changes: ConfigChange,
    incremental: bool = True,
    validate_only: bool = False,
) -> Outcome:
    """Change the settings of the broker itself."""
    controller = embedded.controller
    send = controller.incremental_alter_configs
    request = ConfigRequest(ConfigResource.BROKER, "1", changes)
    return send([request], validate_only=validate_only, principal=ANONYMOUS, now_ms=NOW_MS)[0]


def stored(embedded: Embedded) -> dict[str, str]:
    """What is in the znode."""
    return dict(embedded.image.broker_configs.get("1", {}))


def test_a_password_is_stored_encrypted(tmp_path: Path) -> None:
    """It is in effect at once and after a restart; a change of something else leaves it alone."""
    embedded = Embedded(tmp_path, {SECRET: "s"})
    assert alter(embedded, ConfigChange(NAME, "pencil")).granted
    assert embedded.controller.settings.per_broker[NAME] == "pencil"
    written = stored(embedded)[NAME]
    assert "pencil" not in written
    assert "encryptedPassword:" in written
    assert alter(embedded, ConfigChange("log.cleaner.threads", "2")).granted
    assert stored(embedded)[NAME] == written
    embedded.restart()
    assert embedded.controller.settings.per_broker[NAME] == "pencil"
    assert alter(embedded, ConfigChange(NAME, "eraser")).granted
    assert stored(embedded)[NAME] != written


@pytest.mark.parametrize("validate_only", [False, True])
def test_without_a_secret_none_is_taken(tmp_path: Path, validate_only: bool) -> None:
    """Kafka refuses it too; the password is not in the answer."""
    embedded = Embedded(tmp_path, {})
    reported = alter(embedded, ConfigChange(NAME, "pencil"), validate_only=validate_only)
    assert reported.error == ErrorCode.INVALID_REQUEST
    assert SECRET in (reported.message or "")
    assert "pencil" not in (reported.message or "")
    assert stored(embedded) == {}
    assert alter(embedded, ConfigChange("log.cleaner.threads", "2")).granted


def test_a_password_with_another_secret_is_reported_and_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It is left out, told, and kept until it is set anew or removed."""
    embedded = Embedded(tmp_path, {SECRET: "before"})
    assert alter(embedded, ConfigChange(NAME, "pencil"), ConfigChange(OTHER, "key")).granted
    written = stored(embedded)
    embedded.given = {SECRET: "now"}
    with caplog.at_level(logging.ERROR):
        embedded.restart()
    assert NAME not in embedded.controller.settings.per_broker
    assert f"{NAME}: {SECRET} does not decrypt it" in caplog.text
    assert alter(embedded, ConfigChange("log.cleaner.threads", "2")).granted
    assert {name: stored(embedded)[name] for name in (NAME, OTHER)} == written
    assert alter(embedded, ConfigChange(NAME, "", AlterOperation.DELETE)).granted
    assert stored(embedded).keys() == {OTHER, "log.cleaner.threads"}
    assert alter(embedded, ConfigChange(OTHER, "key")).granted
    assert embedded.controller.settings.per_broker[OTHER] == "key"
    assert stored(embedded)[OTHER] != written[OTHER]


def test_one_that_a_tool_wrote_in_plain_text(tmp_path: Path) -> None:
    """It counts, and is encrypted with the next change."""
    embedded = Embedded(tmp_path, {SECRET: "s"})
    assert alter(embedded, ConfigChange("log.cleaner.threads", "2")).granted
    znode = ConfigZnode.for_broker("1")
    embedded.store.commit([SetData(znode.path, znode.encode({NAME: "pencil"}))], now_ms=NOW_MS)
    embedded.restart()
    assert embedded.controller.settings.per_broker[NAME] == "pencil"
    assert alter(embedded, ConfigChange("log.cleaner.threads", "2")).granted
    assert "encryptedPassword:" in stored(embedded)[NAME]
    assert embedded.controller.settings.per_broker[NAME] == "pencil"
