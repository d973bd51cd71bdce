"""What tests of stores share."""

import pytest

from tests.broker.controller.ensemble import Ensemble


@pytest.fixture
def ensemble() -> Ensemble:
    """A new one."""
    return Ensemble()
