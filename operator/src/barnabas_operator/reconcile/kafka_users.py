"""The KafkaUsers of a cluster: ledger, Secrets, quotas, ACLs, credentials, statuses.

The ledger comes before what it records, a Secret before the credential with its password. A pass
that ends in between is completed by the next one. Limits come before access. A deletion comes last,
and only in a pass in which everything else was answered.
"""

from __future__ import annotations

import dataclasses
import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from barnabas_operator.api.clusters import KafkaCluster
from barnabas_operator.api.conditions import STALLED, Verdict, is_ready
from barnabas_operator.api.reading import Resource
from barnabas_operator.api.users import UserStatus
from barnabas_operator.brokers import Brokers, BrokersError
from barnabas_operator.kube import KubeError
from barnabas_operator.plan.namespaces import label_of
from barnabas_operator.plan.orphans import is_due, without_retained
from barnabas_operator.plan.topics import Refusal
from barnabas_operator.plan.user_ledger import User, UserEntry, with_policies
from barnabas_operator.plan.users import (
    Access,
    AclChange,
    CredentialChange,
    QuotaChange,
    UserPlan,
    UserView,
    Waiting,
    access_of,
    credential_change,
    entered,
    owners,
    plan_user,
    user_name,
)
from barnabas_operator.reconcile.clusters import connect
from barnabas_operator.reconcile.context import Context
from barnabas_operator.reconcile.ledger import UserLedgerStore
from barnabas_operator.reconcile.status import write_statuses
from barnabas_operator.reconcile.topics import batches
from barnabas_operator.reconcile.user_certificates import prepare_certificate
from barnabas_operator.reconcile.user_deletion import UserGuard, delete_orphans, retained
from barnabas_operator.reconcile.user_secrets import (
    UserSecret,
    prepare_password,
    prepare_secret,
    trusted_by_clients,
)

logger = logging.getLogger(__name__)

# Kafka takes 4096 to 16384; more than twice the least would only make logins slow.
ITERATIONS: Final = 4096

Change = TypeVar("Change", QuotaChange, AclChange, CredentialChange)
Problem = Refusal | Waiting | BrokersError


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
    cluster: Resource[KafkaCluster], users: Sequence[User], guard: UserGuard, context: Context
) -> ManagedUsers:
    """One pass over all KafkaUsers of a cluster and the ledger. Raises KubeError."""
    leaving = [user for user in users if user.meta.deleting]
    users = [user for user in users if not user.meta.deleting]
    store = UserLedgerStore.read(cluster, context.kube)
    managed = owners(users, store.entries)
    policies = with_policies(store.entries, managed, leaving)
    store.write(without_retained(policies, retained(policies, guard.present, context)))
    if not (users or store.entries):
        return ManagedUsers(statuses=[], settled=True)
    if not cluster.body.status.serves_topics:
        text = f"KafkaCluster {cluster.meta.name} does not answer"
        return ManagedUsers(statuses=_wait(users, "WaitingForCluster", text, context))
    brokers = connect(cluster, context)
    work = _Pass(cluster, managed, store, brokers, context)
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


def wait_for_cluster(users: Sequence[User], context: Context) -> None:
    """Write to users that their cluster does not exist; it may be created later."""
    for user in users:
        text = f"there is no KafkaCluster {user.body.spec.cluster} in this namespace"
        _wait([user], "ClusterNotFound", text, context, always=True)


class _Pass:
    """One pass over the users that resources manage, by their names in Kafka."""

    def __init__(
        self,
        cluster: Resource[KafkaCluster],
        managed: Mapping[str, User],
        store: UserLedgerStore,
        brokers: Brokers,
        context: Context,
    ) -> None:
        self._cluster = cluster
        self._managed = managed
        self._store = store
        self._brokers = brokers
        self._context = context
        self.plans: dict[str, UserPlan] = {}
        self.problems: dict[str, Problem] = {}
        self.secrets: dict[str, UserSecret] = {}
        self.versions: dict[tuple[str, str], str] = {}
        self.changed = False
        self._trusted: str | None = None

    @property
    def failed(self) -> bool:
        """Whether a broker did not answer."""
        return self._silent() is not None

    def _silent(self) -> BrokersError | None:
        errors = (each for each in self.problems.values() if isinstance(each, BrokersError))
        return next((each for each in errors if not each.reachable), None)

    def run(self) -> None:
        """All steps. Raises KubeError, and BrokersError if the users cannot be described."""
        accesses: dict[str, Access] = {}
        for name, user in self._managed.items():
            access = access_of(user, self._cluster)
            if isinstance(access, Access) and access.by_tls:
                access = self._with_trust(access)
            if isinstance(access, Access):
                accesses[name] = access
            else:
                self.problems[name] = access
        views = self._brokers.users(accesses.keys())
        for name, access in accesses.items():
            entry, view = self._store.entries.get(name), views.get(name, UserView())
            plan = plan_user(self._managed[name], access, view, entry)
            if isinstance(plan, UserPlan):
                self.plans[name] = plan
            else:
                self.problems[name] = plan
        for name, plan in self.plans.items():
            found = self._prepare(self._managed[name], plan.access)
            if isinstance(found, UserSecret):
                self.secrets[name] = found
                where = self._managed[name].meta.namespace
                self.versions |= {(where, each): told for each, told in found.versions.items()}
                self.changed = self.changed or found.changed
            else:
                self.problems[name] = found
        # What others have set of a user that is refused is not ours to delete with its resource.
        plans = {name: self.plans[name] for name in self.secrets}
        self._store.write(entered(self._store.entries, self._managed, plans))
        self._alter_quotas()
        self._alter_acls()
        self._alter_credentials(views)

    def _prepare(self, user: User, access: Access) -> UserSecret | Refusal | Waiting:
        """The Secret of a user, with a certificate or with a password."""
        if access.by_certificate:
            return prepare_secret(
                user, lambda: prepare_certificate(user, access, self._cluster, self._context)
            )
        return prepare_secret(user, lambda: prepare_password(user, access, self._context))

    def _with_trust(self, access: Access) -> Access | Refusal | Waiting:
        """The access with the certificates that clients trust, which are read once."""
        if self._trusted is None:
            try:
                self._trusted = trusted_by_clients(self._cluster.meta, self._context)
            except KubeError as error:
                if not error.refused:
                    raise
                return Refusal("Refused", f"the certificates of the cluster: {error.message}")
        if not self._trusted:
            text = f"KafkaCluster {self._cluster.meta.name} has no certificate authority yet"
            return Waiting("WaitingForCluster", text)
        return replace(access, trusted=self._trusted)

    def _alter_quotas(self) -> None:
        changes = {name: self.plans[name].quotas for name in self.secrets}
        self._apply(
            {name: each for name, each in changes.items() if each}, self._brokers.alter_quotas
        )
        self._record(
            {
                name: replace(self._store.entries[name], quotas=self.plans[name].recorded_quotas)
                for name in self.secrets
                if name not in self.problems
            }
        )

    def _alter_acls(self) -> None:
        plans = {name: self.plans[name] for name in self.secrets if name not in self.problems}
        changes = {name: plan.acls for name, plan in plans.items() if plan.acls}
        self._apply(changes, self._brokers.alter_acls)
        self._record(
            {
                name: replace(self._store.entries[name], acls=self.plans[name].recorded)
                for name in self.secrets
                if name not in self.problems
            }
        )

    def _alter_credentials(self, views: Mapping[str, UserView]) -> None:
        changes: dict[str, CredentialChange] = {}
        due = {
            name: secret
            for name, secret in self.secrets.items()
            if name not in self.problems or self._has_access(name, views.get(name, UserView()))
        }
        for name, secret in due.items():
            change = credential_change(
                self.plans[name],
                views.get(name, UserView()),
                self._store.entries.get(name),
                secrets=secret.with_password,
                password=secret.password,
                iterations=ITERATIONS + secrets.randbelow(ITERATIONS),
            )
            if change is not None:
                changes[name] = change
        entries = self._store.entries
        self._record(
            {
                name: replace(
                    _with_seen(entries[name], views.get(name, UserView())),
                    pending={change.mechanism: change.iterations},
                )
                for name, change in changes.items()
                if change.mechanism
            }
        )
        failed = self._apply(changes, self._brokers.alter_credentials)
        self._record(
            {
                name: _with_credential(
                    self._store.entries[name], self.plans[name], changes.get(name), secret.version
                )
                for name, secret in due.items()
                if name not in failed
            }
        )

    def _has_access(self, name: str, view: UserView) -> bool:
        """Whether the user has a credential of the operator's already.

        Then it is kept the one that the Secret has, also where limits are refused: clients would
        be locked out by a password that was generated since.
        """
        mechanism, entry = self.plans[name].access.mechanism, self._store.entries[name]
        present = view.credentials.get(mechanism)
        return present is not None and entry.has_set(mechanism, present)

    def _record(self, entries: Mapping[str, UserEntry]) -> None:
        self._store.write({**self._store.entries, **entries})

    def _apply(
        self,
        changes: Mapping[str, Change],
        request: Callable[[Mapping[str, Change]], Mapping[str, BrokersError]],
    ) -> frozenset[str]:
        """Send the changes in batches; once a broker has not answered, the rest waits.

        Returns the names whose changes were not carried out.
        """
        self.changed = self.changed or bool(changes)
        missed: set[str] = set()
        for batch in batches(changes.items()):
            if (silent := self._silent()) is not None:
                self.problems.update({name: silent for name, _ in batch})
                missed.update(name for name, _ in batch)
                continue
            for name, change in batch:
                logger.info("user %s: %s", name, change)
            try:
                failed = request(dict(batch))
            except BrokersError as error:
                failed = dict.fromkeys(dict(batch), error)
            for name, each in failed.items():
                logger.warning("user %s: %s", name, each)
            self.problems.update(failed)
            missed.update(failed)
        return frozenset(missed)

    def outcome(self, user: User) -> tuple[UserStatus, Verdict]:
        """Status without conditions, and verdict, of a resource."""
        name, before = user_name(user), user.body.status
        owner = self._managed[name]
        if owner is not user:
            text = f"user {name} is managed by KafkaUser {label_of(owner)}; delete one of the two"
            verdict = Verdict(ready=False, reason="Conflict", message=text, stalled=True)
            return UserStatus(), verdict
        if name in self.secrets:
            before = dataclasses.replace(
                before,
                secret=user.meta.name,
                certificate_not_after=self.secrets[name].not_after,
            )
            if self._store.entries[name].credentials:  # Else it may yet be another client's.
                before = dataclasses.replace(before, username=name)
        if name in self.problems:
            return before, _verdict_of(self.problems[name])
        plan = self.plans[name]
        count = len(plan.wanted)
        proof = (
            "certificate" if plan.access.by_certificate else plan.access.mechanism + " credential"
        )
        text = f"the user has its {proof} and {count} ACLs"
        warnings = (*plan.warnings, *self.secrets[name].warnings)
        return before, Verdict(ready=True, reason="Ready", message=text, warnings=warnings)


def _with_seen(entry: UserEntry, view: UserView) -> UserEntry:
    """The entry with what was pending and is there: its answer was lost, and it is ours."""
    seen = {name: n for name, n in view.credentials.items() if entry.has_set(name, n)}
    return replace(entry, credentials={**entry.credentials, **seen})


def _with_credential(
    entry: UserEntry, plan: UserPlan, change: CredentialChange | None, secret: str
) -> UserEntry:
    """The entry after the change: the credential that was set, and none that was removed."""
    credentials = {
        name: count for name, count in entry.credentials.items() if name == plan.access.mechanism
    }
    if change is None or not change.mechanism:
        return replace(entry, credentials=credentials, secret=secret)
    credentials = {change.mechanism: change.iterations}
    return replace(entry, credentials=credentials, pending={}, secret=secret)


def _verdict_of(problem: Problem) -> Verdict:
    if isinstance(problem, BrokersError):
        reason = "Refused" if problem.reachable else "Unreachable"
        return Verdict(
            ready=False,
            reason=reason,
            message=str(problem),
            settled=problem.reachable,
            stalled=problem.reachable,
        )
    waits = isinstance(problem, Waiting)
    return Verdict(
        ready=False,
        reason=problem.reason,
        message=problem.message,
        settled=not waits,
        stalled=not waits,
    )


def _wait(
    users: Sequence[User], reason: str, message: str, context: Context, *, always: bool = False
) -> list[UserStatus]:
    """Write to users what they wait for; one that is settled and has not changed keeps its own."""
    verdict = Verdict(ready=False, reason=reason, message=message, settled=False)
    waiting = [user for user in users if always or not _is_settled(user)]
    write_statuses([(user, user.body.status, verdict) for user in waiting], context)
    return [user.body.status for user in users]


def _is_settled(user: User) -> bool:
    status = user.body.status
    stalled = any(each.type == STALLED for each in status.conditions)
    current = status.observed_generation == user.meta.generation
    return current and (stalled or is_ready(status.conditions))
