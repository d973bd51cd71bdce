"""AllocateProducerIds: each block of ids is given to one broker only."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

from barnabas_broker.controller.transitions.producer_ids import BLOCK_SIZE
from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.server.control.producer_ids import ProducerIds
from barnabas_broker.server.requests.handlers.allocate_producer_ids import HANDLER, handle
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest
from tests.broker.controller.embedded import Denying
from tests.broker.controller.ensemble import Cluster

LATEST = HANDLER.versions.max


def ask(cluster: Cluster, broker: int, request: AllocateProducerIdsRequest, **more: Any) -> Any:
    """What a broker answers."""
    thread: Any = SimpleNamespace()
    ids = ProducerIds(broker, controller=thread)
    return cluster.ask(broker, handle, request, LATEST, producer_ids=ids, **more)


def test_blocks_follow_each_other() -> None:
    """On record under the broker that asked."""
    cluster = Cluster(2)
    epoch = cluster.image.brokers[2].epoch
    request = AllocateProducerIdsRequest(broker_id=2, broker_epoch=epoch)
    starts = [ask(cluster, 1, request).producer_id_start for _ in range(2)]
    assert starts == [0, BLOCK_SIZE]
    block = json.loads(cluster.stores[1].get("/latest_producer_id_block")[0] or b"")
    assert (block["broker"], block["block_end"]) == (2, str(2 * BLOCK_SIZE - 1))


def test_unauthorized_stale_and_non_controller_errors() -> None:
    """Members, brokers that were restarted since, and others."""
    cluster = Cluster(2)
    epoch = cluster.image.brokers[2].epoch
    request = AllocateProducerIdsRequest(broker_id=2, broker_epoch=epoch)
    assert ask(cluster, 2, request).error_code == ErrorCode.NOT_CONTROLLER
    stale = AllocateProducerIdsRequest(broker_id=2, broker_epoch=epoch - 1)
    assert ask(cluster, 1, stale).error_code == ErrorCode.STALE_BROKER_EPOCH
    unknown = AllocateProducerIdsRequest(broker_id=99, broker_epoch=epoch)
    assert ask(cluster, 1, unknown).error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
    denying = Denying((AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER, None))
    answer = ask(cluster, 1, request, authorizer=denying)
    assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
