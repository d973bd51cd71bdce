"""Who may do what: Apache's AclAuthorizer and ours answer alike, whatever a rule allows or denies.

Each question is put to both brokers under each of some fifty sets of rules: nothing, everything, a
single operation, everything but one. All connections are ANONYMOUS; those of the brokers and of
who sets the rules come from one address of loopback and may do everything, the questions come from
another one, which the rules are about. The first rules are znodes that are there before the brokers
start.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final
from uuid import UUID

import pytest
from kazoo.client import KazooClient

from barnabas_broker.security.acls import (
    OPERATIONS_OF,
    AclOperation,
    PatternType,
    Permission,
    ResourceType,
)
from barnabas_broker.zk import acl_znodes
from barnabas_broker.zk.acl_znodes import AclZnode, Entry
from barnabas_kafka.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from barnabas_kafka.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from barnabas_kafka.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas_kafka.protocol.messages.init_producer_id import InitProducerIdRequest
from tests.clients.brokers import Barnabas
from tests.oracle.apache import ApacheKafka, ZooKeeper
from tests.oracle.questions_about_access import GROUP, MINE, OTHERS, questions
from tests.oracle.sides import Side, differences
from tests.waiting import START, seconds

pytestmark = pytest.mark.jvm

TRUSTED, ASKING = "127.0.0.1", "127.0.0.2"
ANONYMOUS: Final = "User:ANONYMOUS"
ALL, ANY = AclOperation.ALL, 1
TYPES: Final = (
    ResourceType.TOPIC,
    ResourceType.GROUP,
    ResourceType.CLUSTER,
    ResourceType.TRANSACTIONAL_ID,
)
SETTINGS: Final = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "inter.broker.protocol.version": "3.9",
    "zookeeper.session.timeout.ms": "40000",
}
OWN_SETTINGS: Final = ("listeners", "log.dirs", "zookeeper.connect")

#: Answers that differ on purpose: what the difference looks like and why it is.
DELIBERATE: Final[Mapping[str, str]] = {
    ".*: offsets of a group 1.topics": (
        "a client of that version would take an empty answer for a group without offsets;"
        " Apache since 4.0 answers as we do (`OffsetFetchResponse.groupError`)"
    ),
}


def rule(
    kind: ResourceType, operation: AclOperation, permission: Permission = Permission.ALLOW
) -> AclCreation:
    """A rule about whoever asks from the other address, and names that begin with `t`."""
    cluster = kind is ResourceType.CLUSTER
    return AclCreation(
        resource_type=kind,
        resource_name="kafka-cluster" if cluster else "t",
        resource_pattern_type=PatternType.LITERAL if cluster else PatternType.PREFIXED,
        principal=ANONYMOUS,
        host=ASKING,
        operation=operation,
        permission_type=permission,
    )


def sets_of_rules() -> Iterator[tuple[str, list[AclCreation]]]:
    """By name."""
    everything = [rule(kind, ALL) for kind in TYPES]
    yield "nothing", []
    yield "everything", everything
    for kind in TYPES:
        for operation in (*OPERATIONS_OF[kind], ALL):
            name = f"{operation.name} {kind.name}"
            yield f"only {name}", [rule(kind, operation)]
            yield f"all but {name}", [*everything, rule(kind, operation, Permission.DENY)]


SETS: Final = dict(sets_of_rules())


@dataclass
class Guarded:
    """A broker with an authorizer: who sets the rules, and who is ruled."""

    admin: Side
    asking: Side
    ids: tuple[UUID, UUID]

    @classmethod
    def begin(cls, bootstrap: str, *, stumbles: bool) -> Guarded:
        """Make what the questions are about."""
        admin = Side(bootstrap)
        names = [admin.topic(name) for name in (MINE, OTHERS)]
        asking = Side(bootstrap, stumbles=stumbles, source=ASKING)
        guarded = cls(admin, asking, (admin.id_of(names[0]), admin.id_of(names[1])))
        for topic_id, name in zip(guarded.ids, names, strict=True):
            asking._ids[topic_id] = name
        for kind, key in ((0, GROUP), (1, "t-tx")):  # The topics of the coordinators.
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

    def set_rules(self, rules: list[AclCreation]) -> None:
        """In place of those before."""
        asked = DeleteAclsFilter(
            resource_type_filter=ANY, resource_name_filter=None, pattern_type_filter=ANY,
            principal_filter=None, host_filter=ASKING, operation=ANY, permission_type=ANY,
        )  # fmt: skip
        deleted = self.admin._answer(DeleteAclsRequest(filters=[asked]), 3)
        assert not deleted.filter_results[0].error_code, deleted
        created = self.admin._answer(CreateAclsRequest(creations=rules), 3)
        assert not any(each.error_code for each in created.results), created

    def answers(self, name: str) -> dict[str, object]:
        """To all questions under a set of rules."""
        self.set_rules(SETS[name])
        for label, request, version in questions(*self.ids):
            self.asking.ask(f"{name}: {label}", request, version)
        told, self.asking.told = self.asking.told, {}
        return told


def seed(connect: str, chroot: str) -> None:
    """Have the trusted address allowed everything, before there is a broker."""
    client = KazooClient(connect, timeout=seconds(START))
    client.start(seconds(START))
    try:
        for kind in acl_znodes.TYPES:
            name = "kafka-cluster" if kind == "Cluster" else "*"
            znode = AclZnode(acl_znodes.LITERAL, kind, name)
            data = znode.encode([Entry(ANONYMOUS, "Allow", "All", TRUSTED)])
            client.create(f"{chroot}{znode.path}", data, makepath=True)
    finally:
        client.stop()
        client.close()


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Guarded, Guarded]]:
    """Apache's broker and ours, each on a chroot of one ensemble."""
    directory = tmp_path_factory.mktemp("authorization")
    with ZooKeeper(directory=directory / "zookeeper") as zookeeper:
        for chroot in ("/apache", "/ours"):
            seed(zookeeper.connect, chroot)
        with ApacheKafka(
            directory=directory / "apache",
            zookeeper=f"{zookeeper.connect}/apache",
            heap="512M",
            overrides=SETTINGS,
        ) as apache:
            same = {name: v for name, v in apache.settings.items() if name not in OWN_SETTINGS}
            same["zookeeper.connect"] = f"{zookeeper.connect}/ours"
            with Barnabas(directory / "ours", same) as barnabas:
                both = (
                    Guarded.begin(apache.bootstrap, stumbles=True),
                    Guarded.begin(barnabas.bootstrap, stumbles=False),
                )
                yield both
                for side in both:
                    side.admin.close()
                    side.asking.close()


@pytest.fixture(scope="module")
def table(sides: tuple[Guarded, Guarded]) -> dict[str, list[str]]:
    """The differences, by set of rules."""
    apache, ours = sides
    return {name: list(differences(apache.answers(name), ours.answers(name))) for name in SETS}


@pytest.mark.parametrize("name", SETS)
def test_answers_are_the_same(table: dict[str, list[str]], name: str) -> None:
    """Every answer is Apache's, but for those that differ on purpose."""
    accidents = [line for line in table[name] if not any(re.match(p, line) for p in DELIBERATE)]
    assert not accidents, "\n".join(["", *accidents])


def test_what_differs_on_purpose_does(table: dict[str, list[str]]) -> None:
    """Else it is no longer different."""
    lines = [line for each in table.values() for line in each]
    assert not [p for p in DELIBERATE if not any(re.match(p, line) for line in lines)]


def test_the_table_is_large(sides: tuple[Guarded, Guarded]) -> None:
    """So many questions under so many rules."""
    assert len(SETS) * len(list(questions(*sides[0].ids))) >= 2_000
