"""Who may do what: Apache's AclAuthorizer and ours answer alike, whatever a rule allows or denies.

Each question is put to both brokers under each of some fifty sets of rules: nothing, everything, a
single operation, everything but one. All connections are ANONYMOUS; those of the brokers and of
who sets the rules come from one address of loopback and may do everything, the questions come from
another one, which the rules are about. The first rules are znodes that are there before the brokers
start.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import pytest
from kazoo.client import KazooClient

from barnabas_broker.zk import acl_znodes
from barnabas_broker.zk.acl_znodes import AclZnode, Entry
from tests.clients.brokers import Barnabas
from tests.oracle.apache import ApacheKafka, ZooKeeper
from tests.oracle.guarded import Guarded, sets_of_rules
from tests.oracle.questions_about_access import questions
from tests.oracle.sides import Side, accidents, differences, no_longer_different
from tests.waiting import START, seconds

pytestmark = pytest.mark.jvm

TRUSTED, ASKING = "127.0.0.1", "127.0.0.2"
ANONYMOUS: Final = "User:ANONYMOUS"
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


#: About names that begin with `t`, for connections from the other address.
SETS: Final = dict(sets_of_rules(ANONYMOUS, ASKING))


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
                asked = ((apache.bootstrap, True), (barnabas.bootstrap, False))
                both = [
                    Guarded.begin(
                        Side(bootstrap), Side(bootstrap, stumbles=stumbles, source=ASKING)
                    )
                    for bootstrap, stumbles in asked
                ]
                yield both[0], both[1]
                for side in both:
                    side.close()


@pytest.fixture(scope="module")
def table(sides: tuple[Guarded, Guarded]) -> dict[str, list[str]]:
    """The differences, by set of rules."""
    apache, ours = sides
    return {name: list(differences(_answers(apache, name), _answers(ours, name))) for name in SETS}


def _answers(side: Guarded, name: str) -> dict[str, object]:
    side.set_rules(SETS[name], host=ASKING)
    return side.answers(name, questions(*side.ids))


@pytest.mark.parametrize("name", SETS)
def test_answers_are_the_same(table: dict[str, list[str]], name: str) -> None:
    """Every answer is Apache's, but for those that differ on purpose."""
    unexpected = accidents(table[name], DELIBERATE)
    assert not unexpected, "\n".join(["", *unexpected])


def test_deliberate_differences_still_differ(table: dict[str, list[str]]) -> None:
    """Else it is no longer different."""
    lines = [line for each in table.values() for line in each]
    assert not no_longer_different(lines, DELIBERATE)


def test_the_table_is_large(sides: tuple[Guarded, Guarded]) -> None:
    """So many questions under so many rules."""
    assert len(SETS) * len(list(questions(*sides[0].ids))) >= 2_000
