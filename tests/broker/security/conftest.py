"""An authorizer without rules, whose clock stands still."""

from __future__ import annotations

import pytest

from barnabas_broker.security.acl_rules import Rules
from barnabas_broker.security.authorizer import AclAuthorizer
from tests.broker.security.examples import Clock


@pytest.fixture
def authorizer() -> AclAuthorizer:
    """One without rules."""
    return AclAuthorizer(Rules(), monotonic_s=Clock())
