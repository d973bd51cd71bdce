"""Which deletions are due, by one rule for topics and users. test_ledger.py has what protects."""

from __future__ import annotations

from dataclasses import replace

import pytest

from barnabas_operator.api.storage import DeletionPolicy
from barnabas_operator.plan.ledger import LedgerEntry, Present
from barnabas_operator.plan.orphans import is_due, without_retained
from barnabas_operator.plan.user_ledger import PresentUsers, UserEntry
from tests.operator import examples

TOPIC = LedgerEntry(resource="r", uid="u")
USER = UserEntry(resource="r", uid="u")
NO_TOPICS = Present.of([examples.topic("another")], "quickstart")
NO_USERS = PresentUsers.of([examples.user("another")], "quickstart")
BOTH = pytest.mark.parametrize(("entry", "present"), [(TOPIC, NO_TOPICS), (USER, NO_USERS)])


@BOTH
def test_only_orphans_with_the_delete_policy_are_due(
    entry: LedgerEntry | UserEntry, present: Present | PresentUsers
) -> None:
    """One that is retained is never due, one that the API protects is not."""
    kept = replace(entry, policy=DeletionPolicy.RETAIN)
    assert is_due({"a": entry}, present)
    assert not is_due({"a": kept}, present)
    assert not is_due({"another": entry}, present)
    assert not is_due({}, present)


@BOTH
def test_retained_entries_leave_the_ledger_or_keep_their_namespace(
    entry: LedgerEntry | UserEntry, present: Present | PresentUsers
) -> None:
    """Of another namespace it stays, and is not due; what is not named is as before."""
    foreign = replace(entry, namespace="billing")
    found = without_retained({"a": entry, "b": entry, "c": foreign}, {"a", "c"})
    assert found == {"b": entry, "c": replace(foreign, policy=DeletionPolicy.RETAIN)}
    assert not is_due({"c": found["c"]}, present)
