"""A broker that is about to stop has its leaders moved first, so that clients need not wait.

Kafka's `KafkaServer.controlledShutdown`: it asks the controller until nothing is left that it
leads and others could, and at most `controlled.shutdown.max.retries` times. A broker that cannot
hand over stops all the same.
"""

import asyncio
import logging

from barnabas_broker.cluster.image import MetadataImage
from barnabas_broker.server.controller_link import ControllerLink
from barnabas_broker.server.peers import PeerError
from barnabas_broker.server.replication.leader_link import error_code
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.codec import EncodeError
from barnabas_kafka.protocol.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
)
from barnabas_kafka.settings import broker as keys
from barnabas_kafka.settings.broker import BrokerSettings

log = logging.getLogger(__name__)

SHOWN_MAX = 10
"""How many partitions a line in the log names."""


async def hand_over(
    link: ControllerLink, image: MetadataImage, broker_id: int, settings: BrokerSettings
) -> bool:
    """Ask the controller to move what this broker leads; False where something is left."""
    registered = image.brokers.get(broker_id)
    if registered is None or not settings[keys.CONTROLLED_SHUTDOWN_ENABLE]:
        return False
    request = ControlledShutdownRequest(broker_id=broker_id, broker_epoch=registered.epoch)
    retries = settings[keys.CONTROLLED_SHUTDOWN_MAX_RETRIES]
    for left in range(retries - 1, -1, -1):
        why = await _ask(link, request, settings[keys.CONTROLLER_SOCKET_TIMEOUT_MS] / 1000)
        if why is None:
            log.info("all that others can lead is handed over")
            return True
        log.warning("not everything is handed over: %s; %d retries are left", why, left)
        if left:
            await asyncio.sleep(settings[keys.CONTROLLED_SHUTDOWN_RETRY_BACKOFF_MS] / 1000)
    return False


async def _ask(
    link: ControllerLink, request: ControlledShutdownRequest, timeout_s: float
) -> str | None:
    """Why not everything is handed over, None if it is."""
    try:
        answer = await link.ask(request, ControlledShutdownResponse, timeout_s=timeout_s)
    except (PeerError, EncodeError) as error:
        return str(error)
    if answer.error_code != ErrorCode.NONE:
        return f"the controller answers {error_code(answer.error_code).name}"
    remaining = [
        f"{each.topic_name}-{each.partition_index}" for each in answer.remaining_partitions
    ]
    if not remaining:
        return None
    return f"no other replica in sync is alive of {', '.join(remaining[:10])} ({len(remaining)})"
