"""Every error of the protocol: its number, what it means, and what a client may do about it.

An error is *retriable* where the same request may succeed later, and *invalid_metadata* where the
client should first refresh its metadata; the latter implies the former. Both are properties
of the error as Kafka's clients see it, so a broker must not use one code for another's case.
"""

from enum import IntEnum, unique
from typing import Final, Self

_NEVER: Final = 0
_RETRY: Final = 1
_REFRESH: Final = 2


@unique
class ErrorCode(IntEnum):
    """The error codes of Kafka 4.x, which include those of all versions before."""

    message: str
    retriable: bool
    invalid_metadata: bool

    def __new__(cls, code: int, message: str = "", remedy: int = _NEVER) -> Self:
        """A code with its meaning and what a client may do; `ErrorCode(3)` finds a code."""
        member = int.__new__(cls, code)
        member._value_ = code
        member.message = message
        member.retriable = remedy != _NEVER
        member.invalid_metadata = remedy == _REFRESH
        return member

    UNKNOWN_SERVER_ERROR = -1, "the broker failed in a way it did not foresee"
    NONE = 0, "no error"
    OFFSET_OUT_OF_RANGE = 1, "the partition does not hold this offset"
    CORRUPT_MESSAGE = 2, "a batch is damaged: checksum, size or layout", _RETRY
    UNKNOWN_TOPIC_OR_PARTITION = 3, "This server does not host this topic-partition.", _REFRESH
    INVALID_FETCH_SIZE = 4, "the fetch size is invalid"
    LEADER_NOT_AVAILABLE = 5, "the partition has no leader at present", _REFRESH
    NOT_LEADER_OR_FOLLOWER = (
        6,
        "this broker does not have the role for the partition that the request needs",
        _REFRESH,
    )
    REQUEST_TIMED_OUT = 7, "the request was not fulfilled in time", _RETRY
    BROKER_NOT_AVAILABLE = 8, "the broker is not available"
    REPLICA_NOT_AVAILABLE = 9, "the replica is not available", _REFRESH
    MESSAGE_TOO_LARGE = 10, "a batch is larger than the topic allows"
    STALE_CONTROLLER_EPOCH = 11, "the sender is no longer the controller"
    OFFSET_METADATA_TOO_LARGE = 12, "the text stored with an offset is too long"
    NETWORK_EXCEPTION = 13, "the connection ended before the response", _REFRESH
    COORDINATOR_LOAD_IN_PROGRESS = 14, "the coordinator is still loading its state", _RETRY
    COORDINATOR_NOT_AVAILABLE = 15, "there is no coordinator at present", _RETRY
    NOT_COORDINATOR = 16, "another broker is the coordinator", _RETRY
    INVALID_TOPIC_EXCEPTION = (
        17,
        "the topic's name is not allowed, or the topic must not be used this way",
    )
    RECORD_LIST_TOO_LARGE = 18, "the batches do not fit into a segment of the log"
    NOT_ENOUGH_REPLICAS = 19, "too few replicas are in sync to accept records", _RETRY
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = (
        20,
        "records were appended, but too few replicas are in sync",
        _RETRY,
    )
    INVALID_REQUIRED_ACKS = 21, "acks must be -1, 0 or 1"
    ILLEGAL_GENERATION = 22, "the group is in another generation"
    INCONSISTENT_GROUP_PROTOCOL = 23, "the member shares no protocol with the group"
    INVALID_GROUP_ID = 24, "the group id is not allowed"
    UNKNOWN_MEMBER_ID = 25, "the group has no such member"
    INVALID_SESSION_TIMEOUT = 26, "the session timeout is outside the bounds the broker sets"
    REBALANCE_IN_PROGRESS = 27, "the group is rebalancing, members must join again"
    INVALID_COMMIT_OFFSET_SIZE = 28, "the offset record would be too large"
    TOPIC_AUTHORIZATION_FAILED = 29, "Topic authorization failed."
    GROUP_AUTHORIZATION_FAILED = 30, "Group authorization failed."
    CLUSTER_AUTHORIZATION_FAILED = 31, "Cluster authorization failed."
    INVALID_TIMESTAMP = 32, "a record's timestamp is too far from the broker's time"
    UNSUPPORTED_SASL_MECHANISM = 33, "the mechanism is not enabled"
    ILLEGAL_SASL_STATE = 34, "the request does not fit the state of authentication"
    UNSUPPORTED_VERSION = 35, "the version is not supported"
    TOPIC_ALREADY_EXISTS = 36, "there is a topic of this name"
    INVALID_PARTITIONS = 37, "the number of partitions is not possible"
    INVALID_REPLICATION_FACTOR = (
        38,
        "the replication factor is below one or above the number of brokers",
    )
    INVALID_REPLICA_ASSIGNMENT = 39, "the replicas cannot be assigned like this"
    INVALID_CONFIG = 40, "a setting is invalid"
    NOT_CONTROLLER = 41, "another broker is the controller", _RETRY
    INVALID_REQUEST = 42, "the request contradicts itself or the protocol"
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43, "the record format of the topic cannot express this"
    POLICY_VIOLATION = 44, "a policy of this cluster forbids it"
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45, "the producer's sequence number does not follow the last one"
    DUPLICATE_SEQUENCE_NUMBER = 46, "the producer sent this sequence number before"
    INVALID_PRODUCER_EPOCH = 47, "the producer's epoch is an old one"
    INVALID_TXN_STATE = 48, "the transaction's state does not permit it"
    INVALID_PRODUCER_ID_MAPPING = 49, "the transactional id has another producer id"
    INVALID_TRANSACTION_TIMEOUT = 50, "the transaction timeout is over the limit of the broker"
    CONCURRENT_TRANSACTIONS = 51, "another operation on this transaction is not finished", _RETRY
    TRANSACTION_COORDINATOR_FENCED = 52, "another broker has become the transaction's coordinator"
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53, "Transactional Id authorization failed."
    SECURITY_DISABLED = 54, "access control is not enabled"
    OPERATION_NOT_ATTEMPTED = 55, "not tried, because another part of the request failed"
    KAFKA_STORAGE_ERROR = 56, "the disk of the partition failed", _REFRESH
    LOG_DIR_NOT_FOUND = 57, "the broker has no such log directory"
    SASL_AUTHENTICATION_FAILED = 58, "authentication failed"
    UNKNOWN_PRODUCER_ID = 59, "nothing is known of this producer any more"
    REASSIGNMENT_IN_PROGRESS = 60, "the partition is being moved"
    DELEGATION_TOKEN_AUTH_DISABLED = 61, "delegation tokens are not enabled"
    DELEGATION_TOKEN_NOT_FOUND = 62, "there is no such delegation token"
    DELEGATION_TOKEN_OWNER_MISMATCH = 63, "the principal may neither own nor renew the token"
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64, "tokens are not issued over this kind of connection"
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65, "Delegation Token authorization failed."
    DELEGATION_TOKEN_EXPIRED = 66, "the delegation token has expired"
    INVALID_PRINCIPAL_TYPE = 67, "the kind of principal is not supported"
    NON_EMPTY_GROUP = 68, "the group still has members"
    GROUP_ID_NOT_FOUND = 69, "there is no such group"
    FETCH_SESSION_ID_NOT_FOUND = 70, "there is no such fetch session", _RETRY
    INVALID_FETCH_SESSION_EPOCH = 71, "the fetch session is at another epoch", _RETRY
    LISTENER_NOT_FOUND = (
        72,
        "the leader has no listener of the name this request came in on",
        _REFRESH,
    )
    TOPIC_DELETION_DISABLED = 73, "deleting topics is switched off"
    FENCED_LEADER_EPOCH = 74, "the leader epoch of the request is older than the broker's", _REFRESH
    UNKNOWN_LEADER_EPOCH = 75, "the leader epoch of the request is newer than the broker's", _RETRY
    UNSUPPORTED_COMPRESSION_TYPE = 76, "the version of the request does not know the compression"
    STALE_BROKER_EPOCH = 77, "the broker has registered again since"
    OFFSET_NOT_AVAILABLE = 78, "a new leader does not know yet which offsets are committed", _RETRY
    MEMBER_ID_REQUIRED = 79, "the member must join again with the id it was given"
    PREFERRED_LEADER_NOT_AVAILABLE = 80, "the preferred leader is not available", _REFRESH
    GROUP_MAX_SIZE_REACHED = 81, "the group is full"
    FENCED_INSTANCE_ID = 82, "another member has taken over this instance id"
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83, "no replica that may lead is available", _REFRESH
    ELECTION_NOT_NEEDED = 84, "Leader election not needed for topic partition.", _REFRESH
    NO_REASSIGNMENT_IN_PROGRESS = 85, "No partition reassignment is in progress."
    GROUP_SUBSCRIBED_TO_TOPIC = 86, "the group is subscribed to the topic"
    INVALID_RECORD = 87, "a record breaks a rule of the topic"
    UNSTABLE_OFFSET_COMMIT = 88, "a transaction has not decided the offset yet", _RETRY
    THROTTLING_QUOTA_EXCEEDED = 89, "over the quota, to be tried later", _RETRY
    PRODUCER_FENCED = 90, "a newer producer has taken over the transactional id"
    RESOURCE_NOT_FOUND = 91, "there is no such resource"
    DUPLICATE_RESOURCE = 92, "the request names a resource twice"
    UNACCEPTABLE_CREDENTIAL = 93, "the credential is not acceptable"
    INCONSISTENT_VOTER_SET = 94, "sender or receiver does not belong to the voters"
    INVALID_UPDATE_VERSION = 95, "the version to update to is invalid"
    FEATURE_UPDATE_FAILED = 96, "the features could not be updated"
    PRINCIPAL_DESERIALIZATION_FAILURE = 97, "the principal of a forwarded request could not be read"
    SNAPSHOT_NOT_FOUND = 98, "there is no such snapshot"
    POSITION_OUT_OF_RANGE = 99, "the position lies outside the snapshot"
    UNKNOWN_TOPIC_ID = 100, "this broker knows no topic of this id", _REFRESH
    DUPLICATE_BROKER_REGISTRATION = 101, "the broker id is in use"
    BROKER_ID_NOT_REGISTERED = 102, "the broker id is not registered"
    INCONSISTENT_TOPIC_ID = 103, "the partition belongs to a topic of another id", _REFRESH
    INCONSISTENT_CLUSTER_ID = 104, "this is another cluster"
    TRANSACTIONAL_ID_NOT_FOUND = 105, "there is no such transactional id"
    FETCH_SESSION_TOPIC_ID_ERROR = 106, "a fetch session mixes topic names and ids", _RETRY
    INELIGIBLE_REPLICA = 107, "a replica may not become in-sync"
    NEW_LEADER_ELECTED = 108, "the change was made, and with it the leader changed"
    OFFSET_MOVED_TO_TIERED_STORAGE = 109, "the offset is in tiered storage only"
    FENCED_MEMBER_EPOCH = 110, "the member must give up its partitions and join again"
    UNRELEASED_INSTANCE_ID = 111, "another member still has this instance id"
    UNSUPPORTED_ASSIGNOR = 112, "the group does not support the assignor"
    STALE_MEMBER_EPOCH = 113, "the member must first learn its new epoch"
    MISMATCHED_ENDPOINT_TYPE = 114, "the request is for the other kind of endpoint"
    UNSUPPORTED_ENDPOINT_TYPE = 115, "this kind of endpoint is not supported"
    UNKNOWN_CONTROLLER_ID = 116, "there is no controller of this id"
    UNKNOWN_SUBSCRIPTION_ID = 117, "the telemetry subscription is not the current one"
    TELEMETRY_TOO_LARGE = 118, "the telemetry is larger than the broker accepts"
    INVALID_REGISTRATION = 119, "the broker's registration is invalid"
    TRANSACTION_ABORTABLE = 120, "the transaction failed and must be aborted"
    INVALID_RECORD_STATE = 121, "the record cannot be acknowledged in its state"
    SHARE_SESSION_NOT_FOUND = 122, "there is no such share session", _RETRY
    INVALID_SHARE_SESSION_EPOCH = 123, "the share session is at another epoch", _RETRY
    FENCED_STATE_EPOCH = 124, "the share group's state is at another epoch"
    INVALID_VOTER_KEY = 125, "the voter's key is another one"
    DUPLICATE_VOTER = 126, "the voter is there already"
    VOTER_NOT_FOUND = 127, "there is no such voter"
    INVALID_REGULAR_EXPRESSION = 128, "the regular expression is invalid"
    REBOOTSTRAP_REQUIRED = 129, "the client must start again from its bootstrap servers"
    STREAMS_INVALID_TOPOLOGY = 130, "the topology is invalid"
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131, "the topology's epoch is invalid"
    STREAMS_TOPOLOGY_FENCED = 132, "the topology's epoch is an old one"
    SHARE_SESSION_LIMIT_REACHED = 133, "there are too many share sessions", _RETRY


class KafkaError(Exception):
    """An error with a code of the protocol, on its way to the response that will carry it."""

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        self.code = code
        self.message = code.message if message is None else message
        super().__init__(code, self.message)

    def __str__(self) -> str:
        return f"{self.code.name}: {self.message}"
