"""UpdateMetadata: from the latest controller, to this registration, or not at all."""

from __future__ import annotations

import pytest

from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.server.requests.handlers.update_metadata import HANDLER, handle
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol import codec
from barnabas_kafka.protocol.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from tests.broker.controller.embedded import Denying
from tests.broker.controller.ensemble import Cluster


def request(controller_epoch: int, broker_epoch: int = -1) -> UpdateMetadataRequest:
    """Broker 9 says that it is alone."""
    return UpdateMetadataRequest(
        controller_id=9,
        controller_epoch=controller_epoch,
        broker_epoch=broker_epoch,
        live_brokers=[UpdateMetadataBroker(id=9)],
    )


def test_a_stale_controller_changes_nothing() -> None:
    """An earlier one is told that it is over, and changes nothing."""
    cluster = Cluster(2)
    for epoch, code in ((5, ErrorCode.NONE), (4, ErrorCode.STALE_CONTROLLER_EPOCH)):
        answer = cluster.ask(2, handle, request(epoch), HANDLER.versions.max)
        assert answer.error_code == code
        image = cluster.controllers[2].image
        assert (image.controller_id, list(image.brokers)) == (9, [9])


def test_a_stale_broker_epoch_is_refused() -> None:
    """The broker has been restarted since."""
    cluster = Cluster(2)
    epoch = cluster.image.brokers[2].epoch
    answer = cluster.ask(2, handle, request(5, epoch - 1), HANDLER.versions.max)
    assert answer.error_code == ErrorCode.STALE_BROKER_EPOCH
    assert cluster.controllers[2].image.controller_id == 1


def test_it_takes_the_right_to_act_for_the_cluster() -> None:
    """CLUSTER_ACTION."""
    denying = Denying((AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER, None))
    answer = Cluster(1).ask(1, handle, request(5), HANDLER.versions.max, authorizer=denying)
    assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


@pytest.mark.parametrize("version", range(HANDLER.versions.min, HANDLER.versions.max + 1))
def test_every_version_is_answered(version: int) -> None:
    """In its own format."""
    answer = Cluster(2).ask(2, handle, request(5), version)
    assert codec.decode(UpdateMetadataResponse, codec.encode(answer, version), version) == answer
