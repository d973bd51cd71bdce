"""Which requests exist: key, name, messages, versions, and the headers they travel under.

Modules of messages are imported when their API is first asked for; the names of module and classes
follow from the key's name (`LIST_OFFSETS` is `messages.list_offsets.ListOffsetsRequest`).
"""

from dataclasses import dataclass
from enum import IntEnum, unique
from functools import cache
from importlib import import_module

from barnabas_kafka.protocol.schema import Request, Response, VersionRange

__all__ = ["Api", "ApiKey", "VersionRange", "api"]


@unique
class ApiKey(IntEnum):
    """The kinds of request, by their number on the wire."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    LEADER_AND_ISR = 4
    STOP_REPLICA = 5
    UPDATE_METADATA = 6
    CONTROLLED_SHUTDOWN = 7
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    ALTER_REPLICA_LOG_DIRS = 34
    DESCRIBE_LOG_DIRS = 35
    SASL_AUTHENTICATE = 36
    CREATE_PARTITIONS = 37
    CREATE_DELEGATION_TOKEN = 38
    RENEW_DELEGATION_TOKEN = 39
    EXPIRE_DELEGATION_TOKEN = 40
    DESCRIBE_DELEGATION_TOKEN = 41
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
    DESCRIBE_CLIENT_QUOTAS = 48
    ALTER_CLIENT_QUOTAS = 49
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50
    ALTER_USER_SCRAM_CREDENTIALS = 51
    ALTER_PARTITION = 56
    UPDATE_FEATURES = 57
    ENVELOPE = 58
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    ALLOCATE_PRODUCER_IDS = 67
    CONSUMER_GROUP_HEARTBEAT = 68
    CONSUMER_GROUP_DESCRIBE = 69
    DESCRIBE_TOPIC_PARTITIONS = 75


@dataclass(frozen=True, slots=True)
class Api:
    """One kind of request with its response. `versions` are those the codecs know."""

    key: ApiKey
    name: str
    request: type[Request]
    response: type[Response]
    versions: VersionRange
    first_flexible: int | None

    def is_flexible(self, version: int) -> bool:
        """Whether a version has the compact encoding with tagged fields."""
        return self.first_flexible is not None and version >= self.first_flexible

    def request_header_version(self, version: int) -> int:
        """0 (no client id), 1, or 2 (tagged fields)."""
        if self.key is ApiKey.CONTROLLED_SHUTDOWN and version == 0:
            return 0
        return 2 if self.is_flexible(version) else 1

    def response_header_version(self, version: int) -> int:
        """0, or 1 (tagged fields).

        ApiVersions stays at 0: its reader may not know yet what the broker speaks (KIP-511).
        """
        if self.key is ApiKey.API_VERSIONS:
            return 0
        return 1 if self.is_flexible(version) else 0


@cache
def api(key: int) -> Api:
    """The API of a key; raises ValueError for a key that does not exist."""
    known = ApiKey(key)
    name = "".join(word.title() for word in known.name.split("_"))
    module = import_module(f"barnabas_kafka.protocol.messages.{known.name.lower()}")
    request: type[Request] = getattr(module, f"{name}Request")
    response: type[Response] = getattr(module, f"{name}Response")
    flexible = request.flexible
    return Api(
        key=known,
        name=name,
        request=request,
        response=response,
        versions=request.versions,
        first_flexible=flexible.min if flexible.max >= flexible.min else None,
    )
