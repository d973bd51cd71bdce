"""KafkaUser: SCRAM credentials, ACLs and quotas of a user, and a Secret for its clients."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, ClassVar, Final

from barnabas_operator.api import GROUP
from barnabas_operator.api.authentication import AuthenticationType
from barnabas_operator.api.clusters import ANONYMOUS
from barnabas_operator.api.conditions import Condition
from barnabas_operator.api.facts import Between, Doc, Fewest, Keyed, Longest, Pattern, Rule
from barnabas_operator.api.references import (
    SAME_CLUSTER,
    ClusterName,
    ClusterNamespace,
    unchangeable,
)
from barnabas_operator.api.storage import DeletionPolicy

# On a KafkaUser: another value generates another password.
ROTATE: Final = f"{GROUP}/rotate"
# On its Secret: when the password was generated, or was first seen with spec.rotationDays.
GENERATED: Final = f"{GROUP}/generated"
# The one resource of type cluster (org.apache.kafka.common.resource.Resource.CLUSTER_NAME).
CLUSTER_NAME: Final = "kafka-cluster"
# Of topics, groups and transactional ids; a topic's are the shortest.
LONGEST_NAME: Final = 249


@dataclass(frozen=True, slots=True, kw_only=True)
class PasswordSecretRef:
    """Where a given password is."""

    name: Annotated[
        str,
        Doc("Name of a Secret in the namespace of the KafkaUser."),
        Pattern("^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", "a name of lower-case letters and digits"),
        Longest(253),
    ]
    key: Annotated[
        str,
        Doc("Key of the password in the Secret."),
        Pattern("^[-._a-zA-Z0-9]+$", "letters, digits, dots, dashes and underscores"),
        Longest(253),
    ] = "password"


@dataclass(frozen=True, slots=True, kw_only=True)
class UserAuthentication:
    """How the user proves who it is."""

    RULES: ClassVar = (
        Rule(
            "!has(self.passwordSecretRef) || self.type != 'tls'",
            "passwordSecretRef is for types with a password",
        ),
        Rule(
            "!has(self.rotationDays) || (!has(self.passwordSecretRef) && self.type != 'tls')",
            "rotationDays is for passwords that the operator generates",
        ),
    )

    type: Annotated[
        AuthenticationType,
        Doc(
            "scram-sha-512 or scram-sha-256: a password; tls: a client certificate."
            " The cluster needs a listener of this type."
        ),
    ] = AuthenticationType.SHA_512
    password_secret_ref: Annotated[
        PasswordSecretRef | None,
        Doc("A password of your own, followed when it changes. If absent one is generated."),
    ] = None
    rotation_days: Annotated[
        int | None,
        Doc(
            "Generate another password after so many days. Kafka keeps one for each type, so that"
            " clients have to take the new one from the Secret for their next connection."
        ),
        Between(1, 3650),
    ] = None


class AclResourceType(StrEnum):
    """What an ACL protects."""

    TOPIC = "topic"
    GROUP = "group"
    CLUSTER = "cluster"
    TRANSACTIONAL_ID = "transactionalId"
    DELEGATION_TOKEN = "delegationToken"  # noqa: S105 - a type of resource
    USER = "user"


class PatternType(StrEnum):
    """How the name of a resource is compared."""

    LITERAL = "literal"
    PREFIXED = "prefixed"


class AclOperation(StrEnum):
    """What an ACL allows or denies."""

    ALL = "All"
    READ = "Read"
    WRITE = "Write"
    CREATE = "Create"
    DELETE = "Delete"
    ALTER = "Alter"
    DESCRIBE = "Describe"
    CLUSTER_ACTION = "ClusterAction"
    DESCRIBE_CONFIGS = "DescribeConfigs"
    ALTER_CONFIGS = "AlterConfigs"
    IDEMPOTENT_WRITE = "IdempotentWrite"
    CREATE_TOKENS = "CreateTokens"
    DESCRIBE_TOKENS = "DescribeTokens"


class AclPermission(StrEnum):
    """Which of both."""

    ALLOW = "allow"
    DENY = "deny"


@dataclass(frozen=True, slots=True, kw_only=True)
class AclResource:
    """What an ACL protects."""

    RULES: ClassVar = (
        Rule(
            "self.type == 'cluster' ? !has(self.name) && self.patternType == 'literal'"
            " : has(self.name)",
            "name is for all types but cluster, of which there is one",
        ),
        Rule(
            "self.type != 'user' || !has(self.name) || self.name == '*'"
            " || self.name.startsWith('User:')",
            "the name of a user is its principal, such as User:billing",
        ),
    )

    type: Annotated[
        AclResourceType,
        Doc(
            "topic, group, transactionalId, cluster, delegationToken (its id: Describe) or user (a"
            " principal such as User:billing: CreateTokens and DescribeTokens)."
        ),
    ]
    name: Annotated[
        str | None,
        Doc("Name, or its beginning with patternType prefixed; * is every one."),
        Fewest(1),
        Longest(LONGEST_NAME),
    ] = None
    pattern_type: Annotated[
        PatternType, Doc("literal: that name; prefixed: all that begin so.")
    ] = PatternType.LITERAL


@dataclass(frozen=True, slots=True, kw_only=True)
class AclRule:
    """What the user may do, or may not, with a resource."""

    resource: Annotated[AclResource, Doc("The resource.")]
    operations: Annotated[
        tuple[AclOperation, ...], Doc("Kafka's operations."), Fewest(1), Longest(13)
    ]
    host: Annotated[str, Doc("Address of the client; * is every one."), Fewest(1), Longest(64)] = (
        "*"
    )
    permission: Annotated[AclPermission, Doc("allow or deny; what is denied once is denied.")] = (
        AclPermission.ALLOW
    )


class RoleType(StrEnum):
    """A set of ACLs that clients of a sort need."""

    PRODUCER = "producer"
    CONSUMER = "consumer"
    STREAMS = "streams"


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """The ACLs that a producer, a consumer or a Kafka Streams application needs."""

    RULES: ClassVar = (
        Rule(
            "self.type == 'streams' || (has(self.topic) && !has(self.applicationId))",
            "producer and consumer need a topic and have no applicationId",
        ),
        Rule("!has(self.group) || self.type == 'consumer'", "group is for consumers"),
        Rule(
            "!has(self.transactionalId) || self.type == 'producer'",
            "transactionalId is for producers",
        ),
        Rule(
            "self.type != 'streams'"
            " || (has(self.applicationId) && !has(self.topic) && !has(self.patternType))",
            "streams needs an applicationId, and neither topic nor patternType",
        ),
    )

    type: Annotated[
        RoleType,
        Doc(
            "producer: Write, Describe and Create on the topic; consumer: Read and Describe on the"
            " topic, Read on the group; streams: the internal topics, groups and transactional ids"
            " of an application. Its input and output topics need the other two."
        ),
    ]
    topic: Annotated[
        str | None, Doc("Topic of a producer or consumer."), Fewest(1), Longest(LONGEST_NAME)
    ] = None
    group: Annotated[
        str | None,
        Doc("Group of a consumer. One that assigns its partitions itself needs none."),
        Fewest(1),
        Longest(LONGEST_NAME),
    ] = None
    transactional_id: Annotated[
        str | None,
        Doc("Transactional id of a producer: Write and Describe on it."),
        Fewest(1),
        Longest(LONGEST_NAME),
    ] = None
    pattern_type: Annotated[
        PatternType | None,
        Doc("prefixed: topic, group and transactionalId are beginnings of names."),
    ] = None
    application_id: Annotated[
        str | None, Doc("application.id of Kafka Streams."), Fewest(1), Longest(LONGEST_NAME)
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UserAuthorization:
    """What the user may do; the cluster needs spec.authorization."""

    roles: Annotated[tuple[Role, ...], Doc("ACLs by purpose."), Longest(64)] = ()
    acls: Annotated[tuple[AclRule, ...], Doc("ACLs one by one."), Longest(256)] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UserQuotas:
    """Kafka's quotas of the user, on each broker."""

    producer_byte_rate: Annotated[
        int | None, Doc("Bytes a second of Produce requests."), Between(1, 2**53)
    ] = None
    consumer_byte_rate: Annotated[
        int | None, Doc("Bytes a second of Fetch responses."), Between(1, 2**53)
    ] = None
    request_percentage: Annotated[
        float | None, Doc("Time of requests, in percent of one thread."), Between(0, 1_000_000)
    ] = None
    controller_mutation_rate: Annotated[
        float | None, Doc("Partitions created and deleted a second."), Between(0, 1_000_000)
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UserSpec:
    """The user that is wanted."""

    RULES: ClassVar = (SAME_CLUSTER, unchangeable("clusterNamespace"), unchangeable("username"))

    cluster: ClusterName
    cluster_namespace: ClusterNamespace = None
    username: Annotated[
        str | None,
        Doc("Name in Kafka, if it is not the name of the resource."),
        Pattern(r"^[a-zA-Z0-9._@-]+$", "letters, digits, dots, dashes, underscores and @"),
        Fewest(1),
        Longest(253),
        Rule(f"self != '{ANONYMOUS}'", f"{ANONYMOUS} is the principal of brokers and operator"),
    ] = None
    authentication: Annotated[UserAuthentication, Doc("How the user proves who it is.")] = (
        UserAuthentication()
    )
    authorization: Annotated[
        UserAuthorization | None,
        Doc("What the user may do. Without it the user has no ACLs of this resource."),
    ] = None
    quotas: Annotated[
        UserQuotas | None, Doc("What the user may use of a broker; without a limit if absent.")
    ] = None
    listener: Annotated[
        str | None,
        Doc(
            "Listener whose address is in the Secret; if absent the first one of the cluster with"
            " this type of authentication."
        ),
        Longest(11),
    ] = None
    deletion_policy: Annotated[
        DeletionPolicy,
        Doc("Whether credentials and ACLs go with the resource (Delete) or outlive it (Retain)."),
    ] = DeletionPolicy.DELETE


@dataclass(frozen=True, slots=True, kw_only=True)
class UserStatus:
    """The user as it was last seen."""

    observed_generation: Annotated[int, Doc("The generation that this status is about.")] = 0
    conditions: Annotated[
        tuple[Condition, ...], Doc("Ready, Reconciling, Stalled, Warning."), Keyed(("type",))
    ] = ()
    username: Annotated[
        str, Doc("Name in Kafka, once the user was created or adopted for this resource.")
    ] = ""
    certificate_not_after: Annotated[
        str, Doc("When the certificate in the Secret expires; it is renewed before.")
    ] = ""
    secret: Annotated[str, Doc("Name of the Secret with the client properties.")] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaUser:
    """A user of a Kafka cluster."""

    spec: Annotated[UserSpec, Doc("The user that is wanted.")]
    status: Annotated[UserStatus, Doc("The user as it was last seen.")] = UserStatus()
