"""Deletion of users whose resources are gone, each beyond doubt or not at all."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from barnabas_operator.api.clusters import KafkaCluster
from barnabas_operator.api.reading import Resource
from barnabas_operator.api.storage import DeletionPolicy
from barnabas_operator.brokers import Brokers
from barnabas_operator.kube import USERS, KubeError
from barnabas_operator.plan.orphans import orphans
from barnabas_operator.plan.user_ledger import PresentUsers, UserLedger
from barnabas_operator.plan.users import UserView
from barnabas_operator.reconcile.context import Context
from barnabas_operator.reconcile.ledger import UserLedgerStore
from barnabas_operator.reconcile.namespaces import exists, list_again
from barnabas_operator.reconcile.users import delete_users, is_gone

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class UserGuard:
    """What keeps users from being deleted: what exists, and resources that cannot be parsed."""

    present: PresentUsers
    unparsed: tuple[str, ...] = ()


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
    guard: UserGuard,
    brokers: Brokers,
    context: Context,
) -> None:
    """Delete what is an orphan beyond doubt: by this pass, by a new list, by name.

    Raises KubeError, and BrokersError if no broker answers.
    """
    namespace, ledger = cluster.meta.namespace, store.entries
    found = orphans(ledger, guard.present)
    if not found:
        return
    if guard.unparsed:
        names, unparsed = ", ".join(found), ", ".join(guard.unparsed)
        if context.warnings.is_new(f"users {names}: {unparsed}"):
            logger.warning(
                "%s/%s: users %s are not deleted while %s cannot be parsed;"
                " upgrade the operator, or correct the resource",
                namespace, cluster.meta.name, names, unparsed,
            )  # fmt: skip
        return
    due = _due(cluster, {name: ledger[name] for name in found}, context)
    kept = [name for name in due if ledger[name].policy is DeletionPolicy.RETAIN]
    if kept:
        # They stay their namespace's, for a resource that comes back, as long as they exist.
        views = brokers.users(kept)
        gone = {name for name in kept if is_gone(views.get(name, UserView()))}
        store.write({name: entry for name, entry in ledger.items() if name not in gone})
    delete_users([name for name in due if name not in kept], store, brokers)


def _due(cluster: Resource[KafkaCluster], doubtful: UserLedger, context: Context) -> list[str]:
    """The orphans, asked for directly: what the pass began with may come from a cache."""
    try:
        present = list_again(USERS, PresentUsers, cluster, doubtful, context)
    except KubeError as error:
        if error.status != 404:
            raise
        # Their definition is gone, or not served for a while: that proves no deletion.
        names, meta = ", ".join(doubtful), cluster.meta
        if context.warnings.is_new(f"users {names}: {error}"):
            text = "%s/%s: users %s are not deleted: %s"
            logger.warning(text, meta.namespace, meta.name, names, error)
        return []
    return [
        name
        for name in orphans(doubtful, present)
        if not exists(USERS, cluster, doubtful[name], context)
    ]
