"""Users of a cluster: describe all at once, then bring each to what its resource says.

The ledger comes before what it records, the files of clients before the credential with their
password. A pass that ends in between is completed by the next one. Limits come before access. A
deletion comes last, and only in a pass in which everything else was answered.

Nothing here needs Kubernetes: `barnabas local` calls it with the resources of a file.
"""

from __future__ import annotations

import dataclasses
import logging
import secrets
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Protocol, TypeVar

from barnabas_operator.api.clusters import KafkaCluster
from barnabas_operator.api.conditions import Verdict
from barnabas_operator.api.reading import Resource
from barnabas_operator.api.users import UserStatus
from barnabas_operator.brokers import Brokers, BrokersError
from barnabas_operator.plan.findings import Reason
from barnabas_operator.plan.namespaces import label_of
from barnabas_operator.plan.topics import Refusal
from barnabas_operator.plan.user_ledger import User, UserEntry, UserLedger
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
    plan_user,
    user_name,
)
from barnabas_operator.reconcile.topics import batches

logger = logging.getLogger(__name__)

# Kafka takes 4096 to 16384; more than twice the least would only make logins slow.
ITERATIONS: Final = 4096

Change = TypeVar("Change", QuotaChange, AclChange, CredentialChange)
Problem = Refusal | Waiting | BrokersError


@dataclass(frozen=True, slots=True, kw_only=True)
class UserSecret:
    """The password of a user, and the Secret, or directory, that has it.

    `with_password` are the versions of the Secret that have it, `versions` those of all Secrets
    that were read, by their names.
    """

    password: str = field(repr=False)
    version: str
    with_password: frozenset[str]
    versions: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    changed: bool = False
    # When the certificate expires, of a user that has one; and that it should have been renewed.
    not_after: str = ""
    expires: str = ""


class UserStore(Protocol):
    """The ledger, where it is kept."""

    @property
    def entries(self) -> UserLedger:
        """The entries, by their names in Kafka."""
        ...

    def write(self, entries: UserLedger) -> None:
        """Store these entries."""
        ...


Prepare = Callable[[User, Access], UserSecret | Refusal | Waiting]


class UserPass:
    """One pass over the users that resources manage, by their names in Kafka."""

    def __init__(
        self,
        cluster: Resource[KafkaCluster],
        managed: Mapping[str, User],
        store: UserStore,
        brokers: Brokers,
        *,
        prepare: Prepare,
        trusted: Callable[[str], str | Refusal | None],
    ) -> None:
        """`prepare` gives clients of a user what they need.

        `trusted` are the authorities of a listener, PEM: None while there are none yet, empty where
        clients have them already.
        """
        self._cluster = cluster
        self._managed = managed
        self._store = store
        self._brokers = brokers
        self._prepare = prepare
        self._read_trusted = trusted
        self.plans: dict[str, UserPlan] = {}
        self.problems: dict[str, Problem] = {}
        self.secrets: dict[str, UserSecret] = {}
        self.versions: dict[tuple[str, str], str] = {}
        self.changed = False
        self._trusted: dict[str, str | Refusal | None] = {}

    @property
    def failed(self) -> bool:
        """Whether a broker did not answer."""
        return self._silent() is not None

    def _silent(self) -> BrokersError | None:
        errors = (each for each in self.problems.values() if isinstance(each, BrokersError))
        return next((each for each in errors if not each.reachable), None)

    def run(self) -> None:
        """All steps. Raises what `prepare` does, and BrokersError if nothing can be described."""
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
                self.versions |= {
                    (where, each): version for each, version in found.versions.items()
                }
                self.changed = self.changed or found.changed
            else:
                self.problems[name] = found
        # What others have set of a user that is refused is not ours to delete with its resource.
        plans = {name: self.plans[name] for name in self.secrets}
        self._store.write(entered(self._store.entries, self._managed, plans))
        self._alter_quotas()
        self._alter_acls()
        self._alter_credentials(views)

    def _with_trust(self, access: Access) -> Access | Refusal | Waiting:
        """The access with the certificates that clients trust, which are read once a listener."""
        if access.listener not in self._trusted:
            self._trusted[access.listener] = self._read_trusted(access.listener)
        found = self._trusted[access.listener]
        if isinstance(found, Refusal):
            return found
        if found is None:
            text = f"KafkaCluster {self._cluster.meta.name} has no certificate authority yet"
            return Waiting("WaitingForCluster", text)
        return replace(access, trusted=found)

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

    def manages(self, user: User) -> bool:
        """Whether the user in Kafka is that of this resource, and of no older one."""
        return self._managed[user_name(user)] is user

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
            return before, verdict_of(self.problems[name])
        plan = self.plans[name]
        count = len(plan.wanted)
        proof = (
            "certificate" if plan.access.by_certificate else plan.access.mechanism + " credential"
        )
        text = f"the user has its {proof} and {count} ACLs"
        expires = self.secrets[name].expires
        warnings = (*plan.warnings, *self.secrets[name].warnings, *filter(None, (expires,)))
        reason = str(Reason.CERTIFICATE_EXPIRES) if expires else "Warning"
        return before, Verdict(
            ready=True, reason="Ready", message=text, warnings=warnings, warning_reason=reason
        )


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


def verdict_of(problem: Problem) -> Verdict:
    """The verdict that reports what blocks a resource."""
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


def delete_users(due: Collection[str], store: UserStore, brokers: Brokers) -> None:
    """Delete users whose resources are gone, as far as they are those that the ledger is about.

    Raises BrokersError if no broker answers.
    """
    ledger = store.entries
    remaining = dict(ledger)
    views = brokers.users(due)
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


def is_gone(view: UserView) -> bool:
    """Whether nothing is left of a user."""
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
