"""New ids for topics and clusters, from a source of randomness that the caller passes in."""

from random import Random
from uuid import UUID

from barnabas_kafka.ids import uuid_to_base64


def new_id(random: Random) -> UUID:
    """A random (version 4) id that Kafka, too, would give away.

    Kafka reserves the lowest ids, and avoids a text form with a leading dash, which command lines
    would take for an option (`Uuid.randomUuid`).
    """
    while True:
        candidate = UUID(bytes=random.randbytes(16), version=4)
        if not uuid_to_base64(candidate).startswith("-"):
            return candidate


def new_cluster_id(random: Random) -> str:
    """A cluster id: 22 characters of URL-safe base64."""
    return uuid_to_base64(new_id(random))
