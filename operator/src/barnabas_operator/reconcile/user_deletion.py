"""Deletion of users whose resources are gone, each beyond doubt or not at all."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

from barnabas_operator.api.clusters import KafkaCluster
from barnabas_operator.api.reading import Resource
from barnabas_operator.api.storage import DeletionPolicy
from barnabas_operator.brokers import Brokers
from barnabas_operator.kube import USERS, KubeError
from barnabas_operator.plan.orphans import orphans
from barnabas_operator.plan.user_ledger import PresentUsers, UserEntry, UserLedger
from barnabas_operator.plan.users import AclChange, CredentialChange, QuotaChange, UserView
from barnabas_operator.reconcile.context import Context
from barnabas_operator.reconcile.ledger import UserLedgerStore
from barnabas_operator.reconcile.namespaces import exists, list_again

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
        logger.warning(
            "%s/%s: users %s are not deleted while %s cannot be parsed;"
            " upgrade the operator, or correct the resource",
            namespace, cluster.meta.name, ", ".join(found), ", ".join(guard.unparsed),
        )  # fmt: skip
        return
    due = _due(cluster, {name: ledger[name] for name in found}, context)
    remaining = dict(ledger)
    views = brokers.users(due)
    for name in [name for name in due if ledger[name].policy is DeletionPolicy.RETAIN]:
        # It stays its namespace's, for a resource that comes back, as long as it exists.
        due.remove(name)
        if _is_gone(views.get(name, UserView())):
            del remaining[name]
    for name in due:
        if reason := _objection(ledger[name], views.get(name, UserView())):
            logger.warning("user %s is not deleted with its KafkaUser: %s", name, reason)
            del remaining[name]
        else:
            # From now on a credential of the name may be one that another client sets.
            entry, view = ledger[name], views.get(name, UserView())
            remaining[name] = replace(
                entry, credentials={}, pending=dict(view.credentials), secret=""
            )
    store.write(remaining)
    for name in [name for name in due if name in remaining]:
        view, entry = views.get(name, UserView()), remaining[name]
        # ACLs that cannot be seen would be in force again with the authorizer.
        if _delete(name, entry, view, brokers) and not (view.acls is None and entry.acls):
            del remaining[name]
    store.write(remaining)


def _due(cluster: Resource[KafkaCluster], doubtful: UserLedger, context: Context) -> list[str]:
    """The orphans, asked for directly: what the pass began with may come from a cache."""
    try:
        present = list_again(USERS, PresentUsers, cluster, doubtful, context)
    except KubeError as error:
        if error.status != 404:
            raise
        # Their definition is gone, or not served for a while: that proves no deletion.
        names, meta = ", ".join(doubtful), cluster.meta
        text = "%s/%s: users %s are not deleted: %s"
        logger.warning(text, meta.namespace, meta.name, names, error)
        return []
    return [
        name
        for name in orphans(doubtful, present)
        if not exists(USERS, cluster, doubtful[name], context)
    ]


def _is_gone(view: UserView) -> bool:
    known = view.acls is not None and view.quotas is not None
    return known and not (view.credentials or view.acls or view.quotas)


def _objection(entry: UserEntry, view: UserView) -> str:
    """Why a user is not the one that was created or adopted; empty if it is, or is gone."""
    others = [
        mechanism
        for mechanism, iterations in view.credentials.items()
        if not entry.has_set(mechanism, iterations)
    ]
    if not others:
        return ""
    names = ", ".join(sorted(others))
    return f"another client has set its credential of {names}; delete it yourself"


def _delete(name: str, entry: UserEntry, view: UserView, brokers: Brokers) -> bool:
    """Delete credentials, then ACLs and quotas; whether all are gone."""
    credentials = CredentialChange(remove=frozenset(view.credentials))
    acls = AclChange(delete=entry.acls & (view.acls or frozenset()))
    quotas = QuotaChange(drop=entry.quotas & (view.quotas or {}).keys())
    logger.info("user %s: delete, its KafkaUser %s is gone", name, entry.resource)
    failed = brokers.alter_credentials({name: credentials}) if credentials.remove else {}
    if not failed and acls:
        failed = brokers.alter_acls({name: acls})
    if not failed and quotas:
        failed = brokers.alter_quotas({name: quotas})
    for error in failed.values():
        logger.warning("user %s cannot be deleted: %s", name, error)
    return not failed
