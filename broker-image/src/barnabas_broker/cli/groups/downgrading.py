"""`barnabas groups downgrade`: back to records that any Kafka 3 can read.

A group that the consumer protocol left empty is taken over by the classic protocol: this tool asks
to join it, as a classic member would, and does not. The coordinator then ends what the group has
in records of the newer kinds, and keeps its offsets. The tool is no consumer, so that a group with
members has no place for it. What remains is counted by reading `__consumer_offsets` to its end.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Mapping

from barnabas_broker.cli.admin import AdminSession
from barnabas_broker.cli.client import Connection
from barnabas_broker.cli.errors import CommandError
from barnabas_broker.cli.groups.cluster import Groups
from barnabas_kafka.client import CoordinatorOf, CoordinatorType
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.embedded import GROUP_METADATA_KEY
from barnabas_kafka.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from barnabas_kafka.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)

GROUPS_TOPIC = "__consumer_offsets"
NEWEST_CLASSIC_KEY = GROUP_METADATA_KEY
PROTOCOL = "downgrade"
TIMEOUT_MS = 30_000
_VERSION = struct.Struct(">h")


def downgrade(cluster: Groups, group: str) -> None:
    """Make an empty group one of the classic protocol; CommandError where it has members."""
    request = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=TIMEOUT_MS,
        rebalance_timeout_ms=TIMEOUT_MS,
        protocol_type=PROTOCOL,
        protocols=[JoinGroupRequestProtocol(name=PROTOCOL)],
    )
    coordinator = CoordinatorOf(CoordinatorType.GROUP, group)
    with AdminSession(cluster.connection) as session:
        joined = session.ask(
            coordinator, request, JoinGroupResponse, error_code=lambda it: it.error_code
        )
        code = ErrorCode(joined.error_code)
        if code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL:
            raise CommandError(f"group {group} has members: stop them first", code=code)
        if code not in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
            raise CommandError(f"group {group}: {code.message} ({code.name})", code=code)
        member = MemberIdentity(member_id=joined.member_id)
        leave = LeaveGroupRequest(group_id=group, members=[member])
        session.ask(coordinator, leave, LeaveGroupResponse)


def remaining(connection: Connection, partitions: list[int]) -> Mapping[int, int]:
    """How many records there are of each key version, the last of each key and no tombstones."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        connection.config(
            {
                "group.id": "barnabas-groups-downgrade",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
            }
        )
    )
    live: set[bytes] = set()
    try:
        for partition in partitions:
            at = TopicPartition(GROUPS_TOPIC, partition)
            begin, end = consumer.get_watermark_offsets(at, timeout=connection.timeout_s)
            consumer.assign([TopicPartition(GROUPS_TOPIC, partition, begin)])
            while begin < end:
                message = consumer.poll(connection.timeout_s)
                if message is None or message.error() is not None:
                    raise CommandError(f"{GROUPS_TOPIC}-{partition} could not be read to its end")
                begin = int(message.offset() or 0) + 1
                key = message.key() or b""
                if message.value() is None:
                    live.discard(key)
                else:
                    live.add(key)
    finally:
        consumer.close()
    return Counter(_VERSION.unpack_from(key)[0] for key in live if len(key) >= _VERSION.size)
