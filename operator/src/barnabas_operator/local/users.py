"""The users of a cluster: the operator's own pass, with directories in place of Secrets.

Imported late, for few files have users: it brings the Kafka client, and what makes certificates.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from barnabas_kafka.certificates import issue, read_certificate
from barnabas_operator.api.clusters import KafkaCluster
from barnabas_operator.api.conditions import Verdict
from barnabas_operator.api.reading import Resource, read_user
from barnabas_operator.api.storage import DeletionPolicy
from barnabas_operator.api.users import GENERATED, ROTATE, UserStatus
from barnabas_operator.brokers import Brokers, BrokersError
from barnabas_operator.local import broker
from barnabas_operator.local.admin import connect, settled_by, steps_said
from barnabas_operator.local.documents import Manifest
from barnabas_operator.local.pki import Pki
from barnabas_operator.local.state import LocalError, Record, StateDirectory
from barnabas_operator.local.user_directory import BOOTSTRAP_KEY, UserDirectory
from barnabas_operator.plan.certificates import format_time
from barnabas_operator.plan.orphans import orphans, without_retained
from barnabas_operator.plan.passwords import PASSWORD_KEY, choose_password, password_problem
from barnabas_operator.plan.topics import Refusal
from barnabas_operator.plan.user_ledger import PresentUsers, User, UserLedger, with_policies
from barnabas_operator.plan.users import (
    Access,
    UserPlan,
    UserView,
    Waiting,
    access_of,
    owners,
    plan_user,
    user_name,
)
from barnabas_operator.reconcile.user_files import (
    certificate_data,
    generate_password,
    own_pair,
    reissue_reason,
)
from barnabas_operator.reconcile.users import UserPass, UserSecret, delete_users, verdict_of
from barnabas_operator.resources.user_secret import client_properties

USER: Final = "KafkaUser"
USERNAME_KEY: Final = "username"

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a user fares: its status, without conditions, and the verdict on it."""

    status: UserStatus
    verdict: Verdict


def reconcile(
    manifest: Manifest, record: Record, state: StateDirectory, *, say: Say, deadline: float
) -> Mapping[str, Outcome]:
    """Have the users as the file says; returns how each resource fares, by its name.

    Raises LocalError if the broker does not answer.
    """
    users = _with_statuses(manifest, record, state)
    store = _RecordStore(record, state)
    if not (users or record.users or state.users()):
        return {}
    managed = owners(users, record.users)
    present = PresentUsers.of([_as_present(each) for each in users], manifest.cluster.meta.name)
    policies = with_policies(record.users, managed, ())
    gone = orphans(policies, present)
    kept = {name for name in gone if policies[name].policy is DeletionPolicy.RETAIN}
    store.write(without_retained(policies, kept))
    files = _Files(manifest.cluster, state)
    cluster = with_listeners(manifest.cluster, record)
    try:
        with connect(cluster, record, state) as brokers, steps_said(say):

            def attempt() -> tuple[UserPass, Mapping[str, Outcome]]:
                work = UserPass(
                    cluster, managed, store, brokers,
                    prepare=files.prepare, trusted=lambda _: files.pki.trusted or None,
                )  # fmt: skip
                work.run()
                return work, {each.meta.name: Outcome(*work.outcome(each)) for each in users}

            work, outcomes = settled_by(
                deadline, attempt, lambda it: all(each.verdict.settled for each in it[1].values())
            )
            if not work.failed:
                delete_users(orphans(record.users, present), store, brokers)
    except BrokersError as error:
        raise LocalError(f"the broker does not answer: {error}") from error
    # As the Secret goes with its resource, whatever becomes of the user.
    for name in set(state.users()) - {each.meta.name for each in users}:
        UserDirectory(state.user(name)).remove()
    return outcomes


def look(
    manifest: Manifest, record: Record, state: StateDirectory, brokers: Brokers | None
) -> Mapping[str, Outcome]:
    """How the users fare as nothing is done about them; `brokers` is None while none answers."""
    users = _with_statuses(manifest, record, state)
    cluster, managed = with_listeners(manifest.cluster, record), owners(users, record.users)
    views: Mapping[str, UserView] | None = None
    if brokers is not None:
        try:
            views = brokers.users(managed.keys())
        except BrokersError:
            views = None
    found = {}
    for user in users:
        name = user_name(user)
        if views is None:
            text = "nothing is known of the user while the broker does not answer"
            verdict = Verdict(ready=False, reason="WaitingForCluster", message=text)
        elif managed[name] is not user:
            text = f"user {name} is managed by KafkaUser {managed[name].meta.name}"
            verdict = Verdict(ready=False, reason="Conflict", message=text, stalled=True)
        else:
            verdict = _judge(user, cluster, record, state, views.get(name, UserView()))
        found[user.meta.name] = Outcome(_status(user, state), verdict)
    return found


def with_listeners(cluster: Resource[KafkaCluster], record: Record) -> Resource[KafkaCluster]:
    """The cluster with the addresses that its listeners have here."""
    status = dataclasses.replace(cluster.body.status, listeners=broker.listeners(cluster, record))
    return Resource(cluster.meta, dataclasses.replace(cluster.body, status=status))


class _RecordStore:
    """The ledger of users in the record of the cluster."""

    def __init__(self, record: Record, state: StateDirectory) -> None:
        self._record, self._state = record, state

    @property
    def entries(self) -> UserLedger:
        return self._record.users

    def write(self, entries: UserLedger) -> None:
        if entries != self._record.users:
            self._record.users = dict(entries)
            self._state.save(self._record)


class _Files:
    """What clients of users are given, in a directory each."""

    def __init__(self, cluster: Resource[KafkaCluster], state: StateDirectory) -> None:
        self._validity = timedelta(days=cluster.body.spec.certificates.validity_days)
        self._state = state
        self.pki = Pki(state.pki)

    def prepare(self, user: User, access: Access) -> UserSecret | Refusal | Waiting:
        """Write them where they differ. Raises LocalError."""
        if access.by_certificate:
            return self._certificate(user, access)
        files, now = UserDirectory(self._state.user(user.meta.name)), datetime.now(UTC)
        own = files.read()
        if problem := password_problem(own):
            place = files.path / PASSWORD_KEY
            text = f"{place}: {problem}; write another one, or delete the file and one is generated"
            return Refusal("InvalidPassword", text)
        chosen = choose_password(
            user, given=None, own=own, generate=generate_password, now=format_time(now)
        )
        if isinstance(chosen, Refusal):
            return chosen
        before = own.text(BOOTSTRAP_KEY) if own else ""
        texts = client_properties(
            username=user_name(user),
            password=chosen.value,
            bootstrap_servers=access.servers(before),
            security_protocol=access.security_protocol,
            mechanism=access.mechanism,
            trusted=access.trusted,
            mount_path=str(files.path),
        )
        held = {own.version} if own and own.text(PASSWORD_KEY) == chosen.value else set()
        changed = files.write(
            {name: text.encode() for name, text in texts.items()},
            {ROTATE: chosen.rotation, GENERATED: chosen.generated},
        )
        return UserSecret(
            password=chosen.value,
            version=files.version,
            with_password=frozenset(held | {files.version}),
            warnings=(chosen.warning,) if chosen.warning else (),
            changed=changed,
        )

    def _certificate(self, user: User, access: Access) -> UserSecret:
        files, now = UserDirectory(self._state.user(user.meta.name)), datetime.now(UTC)
        own = files.read()
        before, notes = own_pair(own), own.annotations if own else {}
        authority = self.pki.authority
        above = read_certificate(authority.certificate)
        due = reissue_reason(user, own, before, authority=above, now=now, validity=self._validity)
        pair = before
        if due or pair is None:
            pair = issue(authority, user_name(user), now=now, validity=self._validity)
        data = certificate_data(
            user, access, pair, None if due else own, mount_path=str(files.path)
        )
        asked = user.meta.annotations.get(ROTATE, "") or notes.get(ROTATE, "")
        changed = files.write(data, {ROTATE: asked})
        return UserSecret(
            password="",
            version="",
            with_password=frozenset({""}),
            changed=changed,
            not_after=format_time(read_certificate(pair.certificate).not_after),
        )


def _with_statuses(manifest: Manifest, record: Record, state: StateDirectory) -> Sequence[User]:
    """The users with the statuses of the last time: they show which were created or adopted.

    Where the record was lost the files of clients do: only a user that is managed has them.
    """
    known = {each["metadata"]["name"]: each for each in record.documents if each["kind"] == USER}
    found = []
    for each in manifest.users:
        user = read_user(known[each.meta.name]) if each.meta.name in known else each
        own = UserDirectory(state.user(each.meta.name)).read()
        if own and user_name(user) not in record.users:
            status = dataclasses.replace(user.body.status, username=own.text(USERNAME_KEY))
            body = dataclasses.replace(user.body, status=status)
            user = Resource(user.meta, body, user.unknown_fields)
        found.append(user)
    return found


def _as_present(user: User) -> Mapping[str, object]:
    """What there is in Kafka alone, for the file is all there is: a username may change here."""
    name = user_name(user)
    spec = {"cluster": user.body.spec.cluster, "username": name}
    return {"metadata": {"name": name}, "spec": spec}


def _status(user: User, state: StateDirectory) -> UserStatus:
    pair = own_pair(UserDirectory(state.user(user.meta.name)).read())
    until = format_time(read_certificate(pair.certificate).not_after) if pair else ""
    return dataclasses.replace(user.body.status, certificate_not_after=until)


def _judge(
    user: User,
    cluster: Resource[KafkaCluster],
    record: Record,
    state: StateDirectory,
    view: UserView,
) -> Verdict:
    """The verdict on a user between two runs of `up`."""
    access, entry = access_of(user, cluster), record.users.get(user_name(user))
    if not isinstance(access, Access):
        return verdict_of(access)
    plan = plan_user(user, access, view, entry)
    if not isinstance(plan, UserPlan):
        return verdict_of(plan)
    todo = [str(each) for each in (plan.quotas, plan.acls) if each]
    mechanism, files = access.mechanism, UserDirectory(state.user(user.meta.name))
    recorded = entry.credentials.get(mechanism) if entry and mechanism else None
    if mechanism and (
        entry is None
        or recorded is None
        or view.credentials.get(mechanism) != recorded
        or entry.secret != files.version
    ):
        todo.append(f"set the {mechanism} credential")
    if not files.command_config.exists():
        todo.append("write the files of its clients")
    if todo:
        text = f"`barnabas local up` would: {'; '.join(todo)}"
        return Verdict(ready=False, reason="Drifted", message=text, settled=False)
    return Verdict(ready=True, reason="Ready", warnings=plan.warnings)
