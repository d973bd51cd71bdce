"""FindCoordinator on a running broker."""

import pytest

from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.find_coordinator import FindCoordinatorRequest
from tests.broker.server.running import Wire


@pytest.mark.parametrize("version", range(7))
def test_every_version_is_answered(wire: Wire, version: int) -> None:
    """Each key is answered with the one error that no client hands to a reader without groups."""
    if version < 4:
        answer = wire.ask(FindCoordinatorRequest(key="team"), version)
    else:
        (answer,) = wire.ask(
            FindCoordinatorRequest(coordinator_keys=["team"]), version
        ).coordinators
    assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
