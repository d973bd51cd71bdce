"""UpdateFeatures: every change is refused, by the controller."""

import pytest

from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.server.requests.handlers.update_features import HANDLER, handle
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.broker.controller.embedded import Denying
from tests.broker.controller.ensemble import Cluster
from tests.broker.server.running import Wire

WANTED = UpdateFeaturesRequest(
    feature_updates=[FeatureUpdateKey(feature=name, max_version_level=1) for name in ("any", "")]
)
LATEST = HANDLER.versions.max


@pytest.mark.parametrize("version", range(LATEST + 1))
def test_each_feature_has_its_answer(wire: Wire, version: int) -> None:
    """With a reason; a request that names none is granted."""
    answer = wire.ask(WANTED, version)
    assert answer.error_code == ErrorCode.NONE
    assert [each.error_code for each in answer.results] == [ErrorCode.INVALID_REQUEST] * 2
    assert "inter.broker.protocol.version" in answer.results[0].error_message
    answer = wire.ask(UpdateFeaturesRequest(), version)
    assert (answer.error_code, answer.results) == (ErrorCode.NONE, [])


def test_unauthorized_and_non_controller_errors() -> None:
    """As a whole."""
    cluster = Cluster(2)
    assert cluster.ask(2, handle, WANTED, LATEST).error_code == ErrorCode.NOT_CONTROLLER
    denying = Denying((AclOperation.ALTER, ResourceType.CLUSTER, None))
    answer = cluster.ask(1, handle, WANTED, LATEST, authorizer=denying)
    assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
