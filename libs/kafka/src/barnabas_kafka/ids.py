"""Names and sentinels that every part of Kafka shares: partitions, offsets, epochs, topic ids.

The numbers are those of the wire protocol. A topic id is a plain `uuid.UUID`; people see it in
Kafka's own 22-character form (URL-safe base64 without padding), never in the dashed one.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Final, NamedTuple
from uuid import UUID

NO_OFFSET: Final = -1
NO_EPOCH: Final = -1
NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_TIMESTAMP: Final = -1
NO_NODE: Final = -1
"""The broker id of a partition without leader, and of an unknown coordinator or controller."""

CONSUMER_REPLICA_ID: Final = -1
"""`replica_id` of a Fetch or ListOffsets request that a consumer sends."""
DEBUGGING_REPLICA_ID: Final = -2
"""`replica_id` of a tool that may read beyond the high watermark."""

# What ListOffsets accepts in place of a timestamp.
LATEST_TIMESTAMP: Final = -1
EARLIEST_TIMESTAMP: Final = -2
MAX_TIMESTAMP: Final = -3
"""KIP-734: the offset of the record with the greatest timestamp."""
EARLIEST_LOCAL_TIMESTAMP: Final = -4
"""KIP-405: the first offset that is not only in tiered storage."""
LATEST_TIERED_TIMESTAMP: Final = -5
"""KIP-1005: the last offset in tiered storage."""
EARLIEST_PENDING_UPLOAD_TIMESTAMP: Final = -6
"""KIP-1023: the first offset that tiered storage does not hold yet."""

ZERO_UUID: Final = UUID(int=0)
"""The topic id of a topic that has none."""


class TopicPartition(NamedTuple):
    """One partition of one topic, by name."""

    topic: str
    partition: int

    def __str__(self) -> str:
        """The name of the partition's directory: `orders-3`."""
        return f"{self.topic}-{self.partition}"


def uuid_to_base64(value: UUID) -> str:
    """Kafka's text form of an id: 22 characters of URL-safe base64."""
    return urlsafe_b64encode(value.bytes).rstrip(b"=").decode("ascii")


def id_as_shown(plain: str) -> str:
    """An id in the plain base64 of client libraries, as Kafka's own tools show it."""
    return plain.replace("+", "-").replace("/", "_")


def uuid_from_base64(text: str) -> UUID:
    """The id behind Kafka's text form; raises ValueError where the text is not one."""
    try:
        raw = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError as error:
        raise ValueError(f"{text!r} is not an id in base64") from error
    if len(raw) != 16:
        raise ValueError(f"{text!r} holds {len(raw)} bytes, an id has 16")
    return UUID(bytes=raw)
