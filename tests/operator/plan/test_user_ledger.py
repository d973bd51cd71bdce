"""The ledger of users: what is written comes back, and what protects an entry."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from barnabas_operator.api.reading import read_user
from barnabas_operator.api.storage import DeletionPolicy
from barnabas_operator.plan.orphans import orphans
from barnabas_operator.plan.shards import FULL_BYTES, SHARD_BYTES, Stored, change, parse
from barnabas_operator.plan.user_acls import acls_of
from barnabas_operator.plan.user_ledger import (
    FORMAT,
    PresentUsers,
    UserEntry,
    with_policies,
)
from barnabas_operator.plan.users import owners
from tests.operator import examples

ENTRY = UserEntry(resource="r", uid="u")


def _present(**spec: Any) -> PresentUsers:
    return PresentUsers.of([examples.user("another", **spec)], "quickstart")


def test_entries_are_read_back() -> None:
    """With ACLs, credentials and policy; a line that is none is kept."""
    user = read_user(examples.user())
    entry = UserEntry(
        resource="billing",
        uid="u",
        policy=DeletionPolicy.RETAIN,
        credentials={"SCRAM-SHA-512": 5000},
        pending={"SCRAM-SHA-256": 4100},
        secret="uid/1",
        quotas=frozenset({"request_percentage"}),
        acls=acls_of(user.body.spec.authorization),
    )
    before: Stored[UserEntry] = Stored()
    stored, texts = change(before, {"billing": entry}, FORMAT, ["newer"])
    assert parse(texts, FORMAT) == stored
    assert stored.entries == {"billing": entry}
    assert stored.unparsed == {0: ("newer",)}


def test_an_entry_that_is_longer_than_a_shard_has_one_of_its_own() -> None:
    """Others are neither moved nor put beside it."""
    long = replace(ENTRY, quotas=frozenset({"q" * (SHARD_BYTES + 1)}))
    stored, texts = change(Stored(), {"a": ENTRY, "b": long, "c": ENTRY}, FORMAT)
    assert stored.shards == {"a": 0, "b": 1, "c": 0}
    assert parse(texts, FORMAT) == stored
    again, changed = change(stored, {**stored.entries, "d": ENTRY}, FORMAT)
    assert (again.shards["d"], list(changed)) == (0, [0])


def test_entries_that_have_grown_move_to_a_later_shard() -> None:
    """Of two writes that are not both made the later shard's counts, and the other one follows."""
    small = dict.fromkeys((f"user-{number:03}" for number in range(100)), ENTRY)
    stored, texts = change(Stored(), small, FORMAT)
    large = replace(ENTRY, quotas=frozenset({"q" * 10_000}))
    grown, changed = change(stored, dict.fromkeys(small, large), FORMAT)
    assert grown.shards["user-099"] == 0
    assert max(map(len, changed.values())) <= FULL_BYTES
    half = parse({**texts, **{n: text for n, text in changed.items() if n > 0}}, FORMAT)
    assert half.shards == grown.shards
    moved = [name for name, number in grown.shards.items() if number]
    assert all(half.entries[name] == large for name in moved)
    gone = moved[0]
    kept = {name: entry for name, entry in half.entries.items() if name != gone}
    _, rest = change(half, kept, FORMAT)
    assert gone not in parse({**texts, **changed, **rest}, FORMAT).entries


@pytest.mark.parametrize("line", ["{}", "[]", '{"user": "u"}', '{"user": "u", "resource": ""}'])
def test_unparsable_entries_are_kept(line: str) -> None:
    """It may be one of a newer version."""
    assert parse({0: f"{line}\n"}, FORMAT).unparsed == {0: (line,)}


def test_an_orphan_has_neither_name_nor_uid_nor_user_in_the_api() -> None:
    """One of the three is enough to protect it."""
    assert orphans({"x": ENTRY}, _present()) == ["x"]
    assert orphans({"x": replace(ENTRY, resource="another")}, _present()) == []
    assert orphans({"x": replace(ENTRY, uid="uid-of-another")}, _present()) == []
    assert orphans({"x": ENTRY}, _present(username="x")) == []
    assert orphans({"another": ENTRY}, _present()) == []
    assert orphans({"another": ENTRY}, _present(cluster="other")) == ["another"]
    assert orphans({"another": ENTRY}, _present(cluster=["newer"])) == []


def test_the_last_policy_of_a_resource_counts() -> None:
    """Also that of one which waits for a finalizer; of others nothing changes."""
    user = read_user(examples.user(deletionPolicy="Retain"))
    entry = replace(ENTRY, resource="billing", uid="uid-of-billing")
    ledger = {"billing": entry, "x": ENTRY}
    for found in (
        with_policies(ledger, owners([user]), []),
        with_policies(ledger, {}, [user]),
    ):
        assert found["billing"].policy is DeletionPolicy.RETAIN
        assert found["x"] == ENTRY
