"""Brokers with an authorizer, sets of ACLs about a client, and that client's questions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from barnabas_broker.security.acls import (
    OPERATIONS_OF,
    AclOperation,
    PatternType,
    Permission,
    ResourceType,
)
from barnabas_kafka.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from barnabas_kafka.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from barnabas_kafka.protocol.messages.describe_acls import DescribeAclsRequest
from barnabas_kafka.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas_kafka.protocol.messages.init_producer_id import InitProducerIdRequest
from tests.oracle.questions_about_access import GROUP, MINE, OTHERS, TXN, Question
from tests.oracle.sides import Side

ALL, ANY = AclOperation.ALL, 1
TYPES = (
    ResourceType.TOPIC,
    ResourceType.GROUP,
    ResourceType.CLUSTER,
    ResourceType.TRANSACTIONAL_ID,
)


def rule(
    kind: ResourceType,
    operation: AclOperation,
    permission: Permission = Permission.ALLOW,
    *,
    principal: str,
    host: str = "*",
) -> AclCreation:
    """A rule about the cluster, or about names that begin with `t`."""
    cluster = kind is ResourceType.CLUSTER
    return AclCreation(
        resource_type=kind,
        resource_name="kafka-cluster" if cluster else "t",
        resource_pattern_type=PatternType.LITERAL if cluster else PatternType.PREFIXED,
        principal=principal,
        host=host,
        operation=operation,
        permission_type=permission,
    )


def sets_of_rules(principal: str, host: str = "*") -> Iterator[tuple[str, list[AclCreation]]]:
    """By name."""

    def one(
        kind: ResourceType, operation: AclOperation, permission: Permission = Permission.ALLOW
    ) -> AclCreation:
        return rule(kind, operation, permission, principal=principal, host=host)

    everything = [one(kind, ALL) for kind in TYPES]
    yield "nothing", []
    yield "everything", everything
    for kind in TYPES:
        for operation in (*OPERATIONS_OF[kind], ALL):
            name = f"{operation.name} {kind.name}"
            yield f"only {name}", [one(kind, operation)]
            yield f"all but {name}", [*everything, one(kind, operation, Permission.DENY)]


@dataclass
class Guarded:
    """A broker with an authorizer: a client that sets the rules, and others that ask."""

    admin: Side
    asking: tuple[Side, ...]
    ids: tuple[UUID, UUID]

    @classmethod
    def begin(cls, admin: Side, *asking: Side) -> Guarded:
        """Make what the questions are about."""
        for name in (MINE, OTHERS):
            admin.topic(name)
        guarded = cls(admin, asking, (admin.id_of(MINE), admin.id_of(OTHERS)))
        for topic_id, name in zip(guarded.ids, (MINE, OTHERS), strict=True):
            for side in asking:
                side.name_topic(topic_id, name)
        for kind, key in ((0, GROUP), (1, TXN)):  # The topics of the coordinators.
            admin.wait(
                FindCoordinatorRequest(key=key, key_type=kind),
                3,
                settled=lambda it: not it.error_code,
            )
        # Apache's first block of producer ids is claimed while the first client waits.
        first = InitProducerIdRequest(
            transactional_id=None, transaction_timeout_ms=1, producer_id=-1, producer_epoch=-1
        )
        admin.wait(first, 4, settled=lambda it: not it.error_code)
        return guarded

    def set_rules(self, rules: list[AclCreation], *, host: str | None = None) -> None:
        """In place of those before, of that host where one is given; until they are in effect."""
        anything: dict[str, Any] = {
            "resource_type_filter": ANY, "resource_name_filter": None, "pattern_type_filter": ANY,
            "principal_filter": None, "host_filter": host, "operation": ANY,
            "permission_type": ANY,
        }  # fmt: skip
        deleting = DeleteAclsRequest(filters=[DeleteAclsFilter(**anything)])
        deleted = self.admin.wait(deleting, 3, settled=lambda _: True)
        assert not deleted.filter_results[0].error_code, deleted
        creating = CreateAclsRequest(creations=rules)
        created = self.admin.wait(creating, 3, settled=lambda _: True)
        assert not any(each.error_code for each in created.results), created
        # With KRaft the broker learns of what the controller has answered a little later.
        self.admin.wait(
            DescribeAclsRequest(**anything), 3,
            settled=lambda reported: sum(len(it.acls) for it in reported.resources) == len(rules),
        )  # fmt: skip

    def answers(
        self, name: str, questions: Iterable[Question], *, asking: int = 0
    ) -> dict[str, object]:
        """To all questions of one that asks, under the rules of that name."""
        side = self.asking[asking]
        for label, request, version in questions:
            side.ask(f"{name}: {label}", request, version)
        reported, side.reported = side.reported, {}
        return reported

    def close(self) -> None:
        """Let go of all connections."""
        for side in (self.admin, *self.asking):
            side.close()
