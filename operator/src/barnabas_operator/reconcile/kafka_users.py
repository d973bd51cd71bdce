"""The KafkaUsers of a cluster: their pass (`reconcile.users`) with Secrets, statuses, deletions."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from barnabas_operator.api.clusters import KafkaCluster
from barnabas_operator.api.reading import Resource
from barnabas_operator.api.users import UserStatus
from barnabas_operator.brokers import Brokers, BrokersError
from barnabas_operator.kube import KubeError
from barnabas_operator.plan.certificates import parse_time
from barnabas_operator.plan.orphans import is_due, without_retained
from barnabas_operator.plan.topics import Refusal
from barnabas_operator.plan.user_ledger import PresentUsers, User, with_policies
from barnabas_operator.plan.users import Access, Waiting, owners, user_name
from barnabas_operator.reconcile.clusters import connect
from barnabas_operator.reconcile.context import Context
from barnabas_operator.reconcile.ledger import UserLedgerStore
from barnabas_operator.reconcile.orphans import DeletionGuard
from barnabas_operator.reconcile.status import record_expiry, write_statuses, write_waiting
from barnabas_operator.reconcile.user_certificates import prepare_certificate
from barnabas_operator.reconcile.user_deletion import delete_orphans, retained
from barnabas_operator.reconcile.user_secrets import (
    prepare_password,
    prepare_secret,
    trusted_by_clients,
)
from barnabas_operator.reconcile.users import UserPass, UserSecret

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagedUsers:
    """The statuses of a cluster's KafkaUsers.

    `settled`: every user was described and has its status, none was changed, none is an orphan.
    `secrets` are the versions of the Secrets that were read, by namespace and name.
    """

    statuses: list[UserStatus]
    settled: bool = False
    secrets: Mapping[tuple[str, str], str] = field(default_factory=dict)


def reconcile_users_of(
    cluster: Resource[KafkaCluster],
    users: Sequence[User],
    guard: DeletionGuard[PresentUsers],
    context: Context,
) -> ManagedUsers:
    """One pass over all KafkaUsers of a cluster and the ledger. Raises KubeError."""
    leaving = [user for user in users if user.meta.deleting]
    users = [user for user in users if not user.meta.deleting]
    store = UserLedgerStore.read(cluster, context.kube, context.warnings.is_new)
    managed = owners(users, store.entries)
    policies = with_policies(store.entries, managed, leaving)
    store.write(without_retained(policies, retained(policies, guard.present, context)))
    if not (users or store.entries):
        return ManagedUsers(statuses=[], settled=True)
    if not cluster.body.status.serves_topics:
        text = f"KafkaCluster {cluster.meta.name} does not answer"
        return ManagedUsers(statuses=_wait(users, "WaitingForCluster", text, context))
    brokers = connect(cluster, context)
    work = _pass(cluster, managed, store, brokers, context)
    try:
        work.run()
    except BrokersError as error:
        reason = "Refused" if error.reachable else "Unreachable"
        return ManagedUsers(statuses=_wait(users, reason, str(error), context))
    except KubeError as error:
        if error.refused:
            _wait(users, "Refused", f"the ledger of users: {error.message}", context)
        raise
    verdicts = [(user, *work.outcome(user)) for user in users]
    statuses = write_statuses(verdicts, context)
    _report_expiries(cluster, users, work, context)
    if not work.failed:
        try:
            delete_orphans(cluster, store, guard, brokers, context)
        except BrokersError as error:
            logger.warning("%s: users cannot be deleted: %s", cluster.meta.name, error)
    settled = (
        not (work.changed or work.problems)
        and len(statuses) == len(users)
        and not is_due(store.entries, guard.present)
    )
    return ManagedUsers(statuses=statuses, settled=settled, secrets=work.versions)


def _report_expiries(
    cluster: Resource[KafkaCluster], users: Sequence[User], work: UserPass, context: Context
) -> None:
    """When certificates expire, as a metric; an event where one should have been renewed."""
    ends = {
        name: parse_time(secret.not_after).timestamp()
        for name, secret in work.secrets.items()
        if secret.not_after
    }
    context.user_expiries(cluster.meta.namespace, cluster.meta.name, ends)
    for user in users:
        secret = work.secrets.get(user_name(user))
        if secret is not None and secret.expires and work.manages(user):
            record_expiry(user, secret.expires, context)


def wait_for_cluster(users: Sequence[User], context: Context) -> None:
    """Write to users that their cluster does not exist; it may be created later."""
    for user in users:
        text = f"there is no KafkaCluster {user.body.spec.cluster} in this namespace"
        _wait([user], "ClusterNotFound", text, context, always=True)


def _pass(
    cluster: Resource[KafkaCluster],
    managed: Mapping[str, User],
    store: UserLedgerStore,
    brokers: Brokers,
    context: Context,
) -> UserPass:
    def prepare(user: User, access: Access) -> UserSecret | Refusal | Waiting:
        if access.by_certificate:
            return prepare_secret(user, lambda: prepare_certificate(user, access, cluster, context))
        return prepare_secret(user, lambda: prepare_password(user, access, context))

    def trusted(listener: str) -> str | Refusal | None:
        try:
            return trusted_by_clients(cluster.meta, listener, context)
        except KubeError as error:
            if not error.refused:
                raise
            return Refusal("Refused", f"the certificates of the cluster: {error.message}")

    return UserPass(cluster, managed, store, brokers, prepare=prepare, trusted=trusted)


def _wait(
    users: Sequence[User], reason: str, message: str, context: Context, *, always: bool = False
) -> list[UserStatus]:
    write_waiting(users, reason, message, context, always=always)
    return [user.body.status for user in users]
