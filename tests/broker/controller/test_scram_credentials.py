"""AlterUserScramCredentials: what is granted, refused, and stored."""

from pathlib import Path
from typing import Any

import pytest

from barnabas_broker.controller.scram_credentials import Deletion, Upsertion, plan_credentials
from barnabas_broker.controller.user_credential_manager import USERS_AT_ONCE
from barnabas_broker.security.principals import ANONYMOUS
from barnabas_broker.security.scram import ITERATIONS_MAX, ITERATIONS_MIN, ScramCredential
from barnabas_broker.zk.embedded import EmbeddedStore
from barnabas_kafka.errors import ErrorCode
from tests.broker.controller.embedded import NOW_MS, Embedded

SHA_256, SHA_512 = 1, 2
KNOWN = {"alice": {"SCRAM-SHA-256": "stored", "producer_byte_rate": "1000"}}


def upsertion(
    user: str = "alice", mechanism: int = SHA_512, iterations: int = ITERATIONS_MIN
) -> Upsertion:
    """A credential to set."""
    return Upsertion(user, mechanism, iterations, b"salt", b"salted")


def test_other_mechanisms_and_quotas_are_kept() -> None:
    """Another mechanism, and quotas."""
    changed, refused = plan_credentials(KNOWN, [], [upsertion()])
    assert not refused
    stored = changed["alice"].pop("SCRAM-SHA-512")
    assert changed == KNOWN
    assert ScramCredential.parse(stored).iterations == ITERATIONS_MIN


def test_deleted() -> None:
    """One mechanism of one user."""
    changed, refused = plan_credentials(KNOWN, [Deletion("alice", SHA_256)], [])
    assert (changed, refused) == ({"alice": {"producer_byte_rate": "1000"}}, {})


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        (upsertion(user=""), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"),
        (upsertion(mechanism=3), ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
        (
            upsertion(iterations=ITERATIONS_MIN - 1),
            ErrorCode.UNACCEPTABLE_CREDENTIAL,
            "Too few iterations",
        ),
        (
            upsertion(iterations=ITERATIONS_MAX + 1),
            ErrorCode.UNACCEPTABLE_CREDENTIAL,
            "Too many iterations",
        ),
        (
            Deletion("alice", SHA_512),
            ErrorCode.RESOURCE_NOT_FOUND,
            "Attempt to delete a user credential that does not exist",
        ),
    ],
)
def test_refused(change: Deletion | Upsertion, code: ErrorCode, message: str) -> None:
    """In Kafka's words; another user of the same request is not concerned."""
    good = upsertion(user="bob")
    deletions = [change] if isinstance(change, Deletion) else []
    upsertions = [good, *([change] if isinstance(change, Upsertion) else [])]
    changed, refused = plan_credentials(KNOWN, deletions, upsertions)
    (error,) = refused.values()
    assert (error.code, error.message) == (code, message)
    assert list(changed) == ["bob"]


def test_all_changes_of_a_user_or_none() -> None:
    """And none that contradict each other."""
    changes = [upsertion(), upsertion(iterations=1, mechanism=SHA_256)]
    assert plan_credentials(KNOWN, [], changes)[0] == {}
    changed, refused = plan_credentials(KNOWN, [Deletion("alice", SHA_512)], [upsertion()])
    assert not changed
    assert refused["alice"].code == ErrorCode.DUPLICATE_RESOURCE


@pytest.mark.parametrize(
    ("deletions", "upsertions", "code"),
    [
        # What is malformed counts before what is not there, and an upsertion before a deletion.
        ([SHA_512], [(3, ITERATIONS_MIN)], ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        ([3], [(SHA_512, 1)], ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ([SHA_512, SHA_512], [(SHA_256, 1)], ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ([SHA_512, SHA_512], [], ErrorCode.DUPLICATE_RESOURCE),
    ],
)
def test_of_several_errors_kafkas_first_is_returned(
    deletions: list[int], upsertions: list[tuple[int, int]], code: ErrorCode
) -> None:
    """The order is the one of ZkAdminManager."""
    changed, refused = plan_credentials(
        KNOWN,
        [Deletion("alice", mechanism) for mechanism in deletions],
        [upsertion("alice", *each) for each in upsertions],
    )
    assert not changed
    assert refused["alice"].code == code


def test_many_users_are_changed_in_few_transactions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each takes a sync or a round trip, for which changes of ISRs wait."""
    embedded = Embedded(tmp_path)
    users = [f"user-{number}" for number in range(3 * USERS_AT_ONCE)]
    transactions: list[int] = []
    commit = EmbeddedStore.commit

    def counted(store: EmbeddedStore, operations: Any, *, now_ms: int) -> Any:
        transactions.append(len(operations))
        return commit(store, operations, now_ms=now_ms)

    monkeypatch.setattr(EmbeddedStore, "commit", counted)
    answers = embedded.controller.user_credentials.alter(
        [], [upsertion(user) for user in users], principal=ANONYMOUS, now_ms=NOW_MS
    )
    assert [each.name for each in answers if each.granted] == users
    assert {*embedded.image.user_configs} == {*users}
    assert len(transactions) == 3
