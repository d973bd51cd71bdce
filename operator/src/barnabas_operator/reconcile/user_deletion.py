"""Deletion of users whose resources are gone, each beyond doubt or not at all."""

from __future__ import annotations

from barnabas_operator.api.clusters import KafkaCluster
from barnabas_operator.api.reading import Resource
from barnabas_operator.api.storage import DeletionPolicy
from barnabas_operator.brokers import Brokers
from barnabas_operator.kube import USERS
from barnabas_operator.plan.orphans import orphans
from barnabas_operator.plan.user_ledger import PresentUsers, UserLedger
from barnabas_operator.plan.users import UserView
from barnabas_operator.reconcile.context import Context
from barnabas_operator.reconcile.ledger import UserLedgerStore
from barnabas_operator.reconcile.namespaces import exists
from barnabas_operator.reconcile.orphans import DeletionGuard, present_now
from barnabas_operator.reconcile.users import delete_users, is_gone


def retained(ledger: UserLedger, present: PresentUsers, context: Context) -> set[str]:
    """The users that outlive their resources, which are gone."""
    return {
        name
        for name in orphans(ledger, present)
        if ledger[name].policy is DeletionPolicy.RETAIN or context.retained(ledger[name].uid)
    }


def delete_orphans(
    cluster: Resource[KafkaCluster],
    store: UserLedgerStore,
    guard: DeletionGuard[PresentUsers],
    brokers: Brokers,
    context: Context,
) -> None:
    """Delete what is an orphan beyond doubt: by this pass, by a new list, by name.

    Raises KubeError, and BrokersError if no broker answers.
    """
    ledger = store.entries
    found = present_now(USERS, cluster, ledger, guard, context)
    if found is None:
        return
    doubtful, present = found
    due = [
        name
        for name in orphans(doubtful, present)
        if not exists(USERS, cluster, doubtful[name], context)
    ]
    kept = [name for name in due if ledger[name].policy is DeletionPolicy.RETAIN]
    if kept:
        # They stay their namespace's, for a resource that comes back, as long as they exist.
        views = brokers.users(kept)
        gone = {name for name in kept if is_gone(views.get(name, UserView()))}
        store.write({name: entry for name, entry in ledger.items() if name not in gone})
    delete_users([name for name in due if name not in kept], store, brokers)
