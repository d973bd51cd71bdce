"""The audit log: who was refused what, by which rule, and not too often."""

from __future__ import annotations

import logging

import pytest

from barnabas_broker.security import audit
from barnabas_broker.security.acl_rules import Rules
from barnabas_broker.security.acls import (
    ResourcePattern,
    ResourceType,
)
from barnabas_broker.security.authorizer import AclAuthorizer
from barnabas_broker.security.principals import Principal
from tests.broker.security.examples import ALICE, HOST, MAY_READ, READ, TOPIC, Clock


def test_refusals_are_logged_with_the_rule(
    authorizer: AclAuthorizer, caplog: pytest.LogCaptureFixture
) -> None:
    """INFO for what is denied, DEBUG for what is allowed, nothing for what is not audited."""
    caplog.set_level(logging.INFO, audit.logger.name)
    authorizer.authorize(ALICE, HOST, READ, TOPIC, audited=False)
    assert not caplog.records
    authorizer.authorize(ALICE, HOST, READ, TOPIC)
    (line,) = caplog.messages
    assert line == (
        "Principal = User:alice is Denied operation = Read from host = 10.0.0.1"
        " on resource = Topic:LITERAL:orders by no ACL of the resource"
    )
    caplog.clear()
    authorizer.publish(authorizer.rules.with_entries({TOPIC: frozenset({MAY_READ})}))
    authorizer.authorize(ALICE, HOST, READ, TOPIC)
    assert not caplog.records
    caplog.set_level(logging.DEBUG, audit.logger.name)
    authorizer.authorize(ALICE, HOST, READ, TOPIC)
    (line,) = caplog.messages
    assert line == (
        "Principal = User:alice is Allowed operation = Read from host = 10.0.0.1 on resource ="
        " Topic:LITERAL:orders by Allow Read to User:alice from host * on Topic:LITERAL:orders"
    )


def test_refusals_do_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """So many lines a second of each principal and address; the others are counted."""
    caplog.set_level(logging.INFO, audit.logger.name)
    clock = Clock()
    authorizer = AclAuthorizer(Rules(), monotonic_s=clock)
    for _ in range(audit.LINES_PER_WINDOW + 5):
        authorizer.authorize(ALICE, HOST, READ, TOPIC)
    assert len(caplog.records) == audit.LINES_PER_WINDOW
    authorizer.authorize(Principal("User", "bob"), HOST, READ, TOPIC)
    assert "User:bob" in caplog.messages[-1], "another principal is heard all the same"
    clock.now_s += audit.WINDOW_S
    authorizer.audit.log_left_out()
    assert caplog.messages[-1] == (
        "Principal = User:alice from host = 10.0.0.1: 5 more denials were not logged"
    )
    for number in range(2 * audit.SOURCES_MAX):
        authorizer.authorize(Principal("User", str(number)), HOST, READ, TOPIC)
    assert len(authorizer.audit._windows) <= audit.SOURCES_MAX + 1


def test_a_name_cannot_forge_a_line(
    authorizer: AclAuthorizer, caplog: pytest.LogCaptureFixture
) -> None:
    """Names are a client's to choose, line feeds and lengths included."""
    caplog.set_level(logging.INFO, audit.logger.name)
    forged = ResourcePattern(ResourceType.GROUP, "a\nPrincipal = User:root is Allowed" + "x" * 999)
    authorizer.authorize(ALICE, HOST, READ, forged)
    (line,) = caplog.messages
    assert "\n" not in line
    assert "a\\nPrincipal" in line
    assert len(line) < 500
