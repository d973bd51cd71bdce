"""Who may do what in APIs and versions that Apache Kafka 3.9 lacks with ZooKeeper, beside 4.1.

Each question is put to an Apache broker with KRaft and to ours under each of some fifty sets of
rules about alice. Bob asks the same where she may do everything, and no rule names him.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import pytest

from barnabas_broker.security.sasl_settings import PLAIN_MODULE
from tests.clients.brokers import Barnabas
from tests.oracle import questions_about_later_access as later
from tests.oracle.apache import ApacheKRaft, free_port
from tests.oracle.guarded import Guarded, sets_of_rules
from tests.oracle.sides import Side, accidents, differences, no_longer_different

pytestmark = pytest.mark.jvm

USERS: Final = ("alice", "bob")
SETTINGS: Final = {
    "super.users": "User:ANONYMOUS",
    "listener.security.protocol.map": (
        "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_PLAINTEXT"
    ),
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl.plain.sasl.jaas.config": f"{PLAIN_MODULE} required "
    + " ".join(f'user_{name}="{name}"' for name in USERS)
    + ";",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    # Members of groups stay, however long the table takes.
    "group.consumer.max.session.timeout.ms": "3600000",
    "group.consumer.session.timeout.ms": "3600000",
}
KRAFT: Final = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}
OURS: Final = {
    "broker.id": "0", "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
}  # fmt: skip

#: Answers that differ on purpose: what the difference looks like and why it is.
DELIBERATE: Final[Mapping[str, str]] = {
    ".*: reassigned, .*_message: Apache 'Request Request": "Apache shows objects of its controller",
    ".*: reassigned, .*_message: Apache 'Unable to find": "these are Apache's words with ZooKeeper",
    ".*: groups described.*authorized_operations: Apache 3[34]": "groups have no settings in 3.9",
    ".*: joined with a pattern that is none.error_message": "each has its library's words",
}

SETS: Final = dict(sets_of_rules("User:alice"))


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Guarded, Guarded]]:
    """Apache's broker and ours, with one listener in plain text and one for users."""
    sasl, own, own_sasl = (free_port() for _ in range(3))
    apache = ApacheKRaft(overrides=SETTINGS | KRAFT)
    apache.settings["listeners"] += f",SASL://127.0.0.1:{sasl}"
    ours = SETTINGS | OURS
    ours["listeners"] = f"PLAINTEXT://127.0.0.1:{own},SASL://127.0.0.1:{own_sasl}"
    with apache, Barnabas(tmp_path_factory.mktemp("ours"), ours) as barnabas:
        both = [
            Guarded.begin(
                Side(plaintext),
                *(Side(f"127.0.0.1:{port}", user=user, words=True) for user in USERS),
            )
            for plaintext, port in ((apache.bootstrap, sasl), (barnabas.bootstrap, own_sasl))
        ]
        for side in both:
            later.begin(side.admin)
        yield both[0], both[1]
        for side in both:
            side.close()


@pytest.fixture(scope="module")
def table(sides: tuple[Guarded, Guarded]) -> dict[str, list[str]]:
    """The differences, by set of rules."""
    apache, ours = sides
    return {name: list(differences(_answers(apache, name), _answers(ours, name))) for name in SETS}


def _answers(side: Guarded, name: str, *, asking: int = 0) -> dict[str, object]:
    side.set_rules(SETS[name])
    return side.answers(name, later.questions(*side.ids), asking=asking)


@pytest.mark.parametrize("name", SETS)
def test_answers_are_the_same(table: dict[str, list[str]], name: str) -> None:
    """Every answer is Apache's, but for those that differ on purpose."""
    unexpected = accidents(table[name], DELIBERATE)
    assert not unexpected, "\n".join(["", *unexpected])


def test_acls_apply_to_their_principal(sides: tuple[Guarded, Guarded]) -> None:
    """Bob may do nothing where alice may do everything."""
    apache, ours = (_answers(side, "everything", asking=1) for side in sides)
    unexpected = accidents(differences(apache, ours), DELIBERATE)
    assert not unexpected, "\n".join(["", *unexpected])


def test_deliberate_differences_still_differ(table: dict[str, list[str]]) -> None:
    """Else it is no longer different."""
    lines = [line for each in table.values() for line in each]
    assert not no_longer_different(lines, DELIBERATE)
