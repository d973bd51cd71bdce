"""ControlledShutdown: the controller moves leaders, and says which it could not move."""

from __future__ import annotations

import pytest

from barnabas_broker.controller.topics import NewTopic
from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.server.requests.handlers.controlled_shutdown import HANDLER, handle
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol import codec
from barnabas_kafka.protocol.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
)
from tests.broker.controller.embedded import Denying
from tests.broker.controller.ensemble import Cluster


@pytest.mark.parametrize("version", range(HANDLER.versions.min, HANDLER.versions.max + 1))
def test_leaders_move(version: int) -> None:
    """In every version; who is the last in sync stays."""
    cluster = Cluster(3)
    cluster.create(
        NewTopic(name="moves", assignments=[(0, (2, 3))]),
        NewTopic(name="stays", assignments=[(0, (2, 1))]),
    )
    cluster.kill(3)
    cluster.start(3)
    request = ControlledShutdownRequest(broker_id=2)
    answer = cluster.ask(1, handle, request, version)
    assert codec.decode(ControlledShutdownResponse, codec.encode(answer, version), version)
    assert answer.error_code == ErrorCode.NONE
    assert [each.topic_name for each in answer.remaining_partitions] == ["moves"]
    assert cluster.active_controller.image.topics["stays"].partitions[0].leader == 1


def test_a_non_controller_or_an_unknown_broker_is_refused() -> None:
    """Others than the controller cannot be asked, nor anybody for a broker that there is not."""
    cluster = Cluster(2)
    latest = HANDLER.versions.max
    unknown = ControlledShutdownRequest(broker_id=9)
    answer = cluster.ask(2, handle, unknown, latest)
    assert answer.error_code == ErrorCode.NOT_CONTROLLER
    answer = cluster.ask(1, handle, unknown, latest)
    assert answer.error_code == ErrorCode.BROKER_NOT_AVAILABLE
    denying = Denying((AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER, None))
    answer = cluster.ask(1, handle, unknown, latest, authorizer=denying)
    assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
