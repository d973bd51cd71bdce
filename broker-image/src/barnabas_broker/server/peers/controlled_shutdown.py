"""A broker that is about to stop has its leaders moved first, so that clients need not wait.

Kafka's `KafkaServer.controlledShutdown`: it asks the controller until nothing is left that it
leads and others could, and at most `controlled.shutdown.max.retries` times. A broker that cannot
hand over stops all the same.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Final

from barnabas_broker.cluster.failures import refusal
from barnabas_broker.cluster.image import MetadataImage
from barnabas_broker.server.peers.controller_client import ControllerClient
from barnabas_broker.server.peers.peers import PeerError
from barnabas_broker.server.peers.replication.leader_end_point import error_code
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


UNREACHABLE_MAX_S: Final = 5.0
"""How long a stop waits for a ZooKeeper that is away: without it no other leader can be elected.
A new leader of the ensemble is there sooner."""

POLL_S: Final = 0.1


async def hand_over_if_reachable(
    handing_over: Coroutine[None, None, bool],
    *,
    reachable: Callable[[], bool],
) -> bool:
    """Hand over, but give up once ZooKeeper has been away for `UNREACHABLE_MAX_S`.

    Where only this broker cannot reach it, the controller's response comes sooner. Returns False
    where it was given up.
    """
    loop = asyncio.get_running_loop()
    task = loop.create_task(handing_over, name="controlled shutdown")
    reached_s = loop.time()
    while not task.done():
        await asyncio.wait({task}, timeout=POLL_S)
        now_s = loop.time()
        if reachable():
            reached_s = now_s
        elif now_s - reached_s >= UNREACHABLE_MAX_S and not task.done():
            log.warning(
                "Controlled shutdown given up: ZooKeeper has not been reachable for %.0f s, no "
                "other leader can be elected", UNREACHABLE_MAX_S,
            )  # fmt: skip
            task.cancel()
            await asyncio.wait({task})
            return False
    task.result()
    return True


async def hand_over(
    link: ControllerClient, image: MetadataImage, broker_id: int, settings: BrokerSettings
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
            log.info(
                "Controlled shutdown succeeded: no partition is led here that another broker "
                "can lead"
            )
            return True
        log.warning("Controlled shutdown incomplete: %s; %d retries left", why, left)
        if left:
            await asyncio.sleep(settings[keys.CONTROLLED_SHUTDOWN_RETRY_BACKOFF_MS] / 1000)
    return False


async def _ask(
    link: ControllerClient, request: ControlledShutdownRequest, timeout_s: float
) -> str | None:
    """Why not everything is handed over, None if it is."""
    try:
        answer = await link.ask(request, ControlledShutdownResponse, timeout_s=timeout_s)
    except (PeerError, EncodeError) as error:
        return str(error)
    except Exception as error:  # The stop goes on: the other side of it is a SIGKILL.
        return str(refusal(error, "ControlledShutdown", request.broker_id))
    if answer.error_code != ErrorCode.NONE:
        return f"the controller answers {error_code(answer.error_code).name}"
    remaining = [
        f"{each.topic_name}-{each.partition_index}" for each in answer.remaining_partitions
    ]
    if not remaining:
        return None
    return f"no other replica in sync is alive of {', '.join(remaining[:10])} ({len(remaining)})"
