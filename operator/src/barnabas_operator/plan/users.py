"""The plan for the users of a cluster: their managing resources, and their changes.

A user that no resource names is never touched, and of one that a resource names only what the
ledger (`plan.user_ledger`) says that the operator has created: credentials and ACLs of others stay,
and a warning names them. A user that has credentials already is taken over only by an annotation,
since that replaces its password. Of two resources for one user the older one has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from barnabas_operator.api.authentication import AuthenticationType
from barnabas_operator.api.clusters import ANONYMOUS, KafkaCluster
from barnabas_operator.api.listeners import ListenerType
from barnabas_operator.api.reading import Resource
from barnabas_operator.api.topics import ADOPT, Adopt
from barnabas_operator.api.users import UserQuotas
from barnabas_operator.plan.namespaces import objection_to, origin_of, precedence
from barnabas_operator.plan.topics import NOTHING, Refusal
from barnabas_operator.plan.user_acls import Acl, acls_of
from barnabas_operator.plan.user_ledger import User, UserEntry, UserLedger, are_too_long

# Of a certificate (RFC 5280, ub-common-name).
LONGEST_COMMON_NAME: Final = 64
NO_ZNODES: Final = (".", "..")
SUPER_USERS: Final = "super.users"
# How many ACLs a message names.
NAMED: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class UserView:
    """What the cluster says of a user."""

    # The iterations of each SCRAM mechanism's credential.
    credentials: Mapping[str, int] = field(default_factory=dict)
    # None where the brokers check no ACLs.
    acls: frozenset[Acl] | None = None
    # The user's own quotas; None where the brokers have none.
    quotas: Mapping[str, float] | None = None


@dataclass(frozen=True, slots=True)
class Waiting:
    """Why nothing can be done yet: one word, and what is waited for."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Where and how the user reaches the cluster."""

    bootstrap_servers: str
    mechanism: str
    security_protocol: str
    listener: str
    # The certificates with which clients verify brokers, PEM. Empty without TLS, and where their
    # systems have them.
    trusted: str = ""
    # False where addresses of brokers are missing, as of a pod that is being replaced.
    complete: bool = True

    def servers(self, before: str) -> str:
        """The addresses to give to clients, that were given others before.

        An address that is missing for a while is no change: Secrets of all users would be written
        twice for each broker that is replaced.
        """
        now = set(self.bootstrap_servers.split(","))
        kept = not self.complete and now < set(before.split(","))
        return before if kept else self.bootstrap_servers

    @property
    def by_certificate(self) -> bool:
        """Whether the user shows a certificate, and has no credential among the brokers."""
        return not self.mechanism

    @property
    def by_tls(self) -> bool:
        """Whether connections are encrypted."""
        return self.security_protocol.endswith("SSL")


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialChange:
    """Set a credential, and remove others of the same user."""

    mechanism: str = ""
    iterations: int = 0
    password: str = field(default="", repr=False)
    remove: frozenset[str] = frozenset()

    def __str__(self) -> str:
        parts = [f"set the {self.mechanism} credential"] if self.mechanism else []
        parts += [f"remove the {each} credential" for each in sorted(self.remove)]
        return ", ".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class AclChange:
    """Create and delete ACLs of one user."""

    create: frozenset[Acl] = frozenset()
    delete: frozenset[Acl] = frozenset()

    def __str__(self) -> str:
        parts = [f"create ACL {each}" for each in sorted(self.create)]
        return ", ".join(parts + [f"delete ACL {each}" for each in sorted(self.delete)])

    def __bool__(self) -> bool:
        return bool(self.create or self.delete)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaChange:
    """Set and remove quotas of one user, by their names in Kafka."""

    put: Mapping[str, float] = field(default_factory=dict)
    drop: frozenset[str] = frozenset()

    def __str__(self) -> str:
        changes = [f"set quota {name}={value:g}" for name, value in sorted(self.put.items())]
        return ", ".join(changes + [f"remove quota {name}" for name in sorted(self.drop)])

    def __bool__(self) -> bool:
        return bool(self.put or self.drop)


@dataclass(frozen=True, slots=True, kw_only=True)
class UserPlan:
    """What is to be so in the end, and what is to be done for it, but for the password."""

    access: Access
    # The recorded credentials that are no longer wanted, by mechanism.
    obsolete: frozenset[str] = frozenset()
    wanted: frozenset[Acl] = frozenset()
    acls: AclChange = AclChange()
    quotas: QuotaChange = QuotaChange()
    # What is to be recorded once `acls` and `quotas` were carried out.
    recorded: frozenset[Acl] = frozenset()
    recorded_quotas: frozenset[str] = frozenset()
    warnings: tuple[str, ...] = ()


def user_name(user: User) -> str:
    """The user's name in Kafka."""
    return user.body.spec.username or user.meta.name


def owners(users: Iterable[User], ledger: UserLedger = NOTHING) -> dict[str, User]:
    """Which resource manages which user: the oldest; of equally old ones the first by name.

    Between namespaces `plan.namespaces` decides.
    """
    found: dict[str, User] = {}
    for user in sorted(users, key=lambda each: precedence(each, ledger.get(user_name(each)))):
        found.setdefault(user_name(user), user)
    return found


def access_of(user: User, cluster: Resource[KafkaCluster]) -> Access | Refusal | Waiting:
    """How the user reaches the cluster, or why it cannot."""
    spec, name = user.body.spec, cluster.meta.name
    wanted = spec.authentication.type
    fitting = [
        each
        for each in cluster.body.spec.listeners
        if each.authentication is not None
        and each.authentication.type is wanted
        and spec.listener in (None, each.name)
    ]
    if not fitting:
        which = f"listener {spec.listener}" if spec.listener else "listener"
        text = f"KafkaCluster {name} has no {which} with authentication of type {wanted}"
        return Refusal("NoListener", f"{text}; add one to its spec.listeners")
    if spec.authorization is not None and not cluster.body.spec.authorizes:
        text = f"KafkaCluster {name} checks no ACLs; set its spec.authorization"
        return Refusal("AuthorizationDisabled", text)
    if origin_of(user) and f"User:{user_name(user)}" in super_users(cluster.body):
        text = f"{user_name(user)} is a super user of KafkaCluster {name}"
        return Refusal("InvalidUsername", f"{text}; only its own namespace may have it")
    listener = fitting[0]
    if user_name(user) in NO_ZNODES:
        text = f"{user_name(user)} can be no name of a znode, which is where users are"
        return Refusal("InvalidUsername", f"{text}; choose another username")
    if wanted is AuthenticationType.TLS and len(user_name(user)) > LONGEST_COMMON_NAME:
        text = f"the common name of a certificate has at most {LONGEST_COMMON_NAME} characters"
        return Refusal("InvalidUsername", f"{text}; choose a shorter username")
    known = {each.name: each.bootstrap_servers for each in cluster.body.status.listeners}
    if not known.get(listener.name):
        text = f"KafkaCluster {name} does not know the addresses of listener {listener.name} yet"
        return Waiting("WaitingForCluster", text)
    servers = known[listener.name]
    inside = listener.type is ListenerType.INTERNAL
    return Access(
        bootstrap_servers=servers,
        mechanism=wanted.mechanism,
        security_protocol=listener.security_protocol,
        listener=listener.name,
        complete=inside or len(servers.split(",")) == cluster.body.spec.brokers.replicas,
    )


def super_users(cluster: KafkaCluster) -> frozenset[str]:
    """The principals of users who may do everything, as either field has them."""
    authorization = cluster.spec.authorization
    names = authorization.super_users if authorization else ()
    given = cluster.spec.config.get(SUPER_USERS, "").split(";")
    return frozenset({f"User:{name}" for name in names} | {each.strip() for each in given})


def is_managed(user: User, view: UserView, entry: UserEntry | None) -> bool:
    """Whether the operator has created or adopted the user, for this resource or the one before."""
    if user.body.status.username == user_name(user):
        return True
    if entry is None:
        return False
    # Entered, and not known to have been created: another client may have done so meanwhile.
    return bool(entry.credentials) or all(
        entry.has_set(mechanism, count) for mechanism, count in view.credentials.items()
    )


def plan_user(
    user: User, access: Access, view: UserView, entry: UserEntry | None
) -> UserPlan | Refusal | Waiting:
    """What to do for a user, or why nothing is changed."""
    name = user_name(user)
    if name == ANONYMOUS:
        text = f"{ANONYMOUS} is the principal of clients without authentication"
        return Refusal("InvalidUsername", f"{text}; choose another username")
    try:
        wanted = acls_of(user.body.spec.authorization)
    except ValueError as error:
        return Refusal("InvalidAuthorization", str(error))
    if are_too_long(wanted):
        text = f"spec.authorization: {len(wanted)} ACLs with names of that length are too many"
        remedy = "use patternType prefixed, or the operation All"
        return Refusal("InvalidAuthorization", f"{text}; {remedy}")
    if objection := objection_to(user, entry):
        return Refusal("Conflict", f"user {name} is left as it is: {objection}")
    exists = view.credentials or view.acls or view.quotas
    if origin_of(user) and exists and (entry is None or not is_managed(user, view, entry)):
        text = (
            f"user {name} exists and was not created for this namespace; it is left as it is."
            " Only a KafkaUser in the namespace of the cluster may adopt it"
        )
        return Refusal("AlreadyExists", text)
    if view.credentials and not is_managed(user, view, entry):
        answer = user.meta.annotations.get(ADOPT)
        if answer != Adopt.RESOURCE:
            return _not_adopted(name, view, answer)
    if wanted and view.acls is None:
        text = "the brokers check no ACLs yet: they are replaced after spec.authorization was set"
        return Waiting("WaitingForAuthorizer", text)
    present = view.acls or frozenset()
    # Of a user that was adopted, or whose entry was lost, what is wanted is taken over.
    adopted = wanted & present if view.credentials else frozenset[Acl]()
    recorded = entry.acls if entry else adopted
    others = {each for each in view.credentials if each != access.mechanism}
    obsolete = {each for each in others if entry and entry.has_set(each, view.credentials[each])}
    # An older version prunes nothing: a field that it does not know may ask for it. Without
    # an authorizer it is not known which ACLs exist.
    keeps = bool(user.unknown_fields) or view.acls is None
    unwanted = frozenset[Acl]() if keeps else recorded - wanted
    plan = UserPlan(
        access=access,
        obsolete=frozenset(obsolete),
        wanted=wanted,
        acls=AclChange(create=wanted - present, delete=unwanted & present),
        recorded=(wanted - present) | (recorded - unwanted),
        warnings=_warnings(others - obsolete, present - wanted - recorded),
    )
    return _with_quotas(plan, user, view, entry)


def quotas_of(quotas: UserQuotas | None) -> dict[str, float]:
    """The quotas of a resource by their names in Kafka."""
    wanted = {
        "producer_byte_rate": quotas.producer_byte_rate if quotas else None,
        "consumer_byte_rate": quotas.consumer_byte_rate if quotas else None,
        "request_percentage": quotas.request_percentage if quotas else None,
        "controller_mutation_rate": quotas.controller_mutation_rate if quotas else None,
    }
    return {name: float(value) for name, value in wanted.items() if value is not None}


def _with_quotas(
    plan: UserPlan, user: User, view: UserView, entry: UserEntry | None
) -> UserPlan | Refusal:
    """The plan with what is to be done about quotas."""
    wanted, present = quotas_of(user.body.spec.quotas), view.quotas
    # As with ACLs: what another client has set stays its own, whether it is wanted or not.
    equal = {name for name, value in wanted.items() if (present or {}).get(name) == value}
    adopted = frozenset(equal) if view.credentials else frozenset[str]()
    recorded = entry.quotas if entry else adopted
    if present is None:
        if wanted:
            text = "the brokers have no client quotas; update them, or remove spec.quotas"
            return Refusal("QuotasUnsupported", text)
        return replace(plan, recorded_quotas=recorded)
    unwanted = frozenset() if user.unknown_fields else recorded - wanted.keys()
    warnings = plan.warnings
    if others := sorted(present.keys() - wanted.keys() - recorded):
        text = f"the user has quotas that another client has set: {', '.join(others)}"
        warnings = (*warnings, text)
    put = {name: value for name, value in wanted.items() if name not in equal}
    return replace(
        plan,
        quotas=QuotaChange(put=put, drop=unwanted & present.keys()),
        recorded_quotas=recorded - unwanted | put.keys(),
        warnings=warnings,
    )


def _warnings(credentials: set[str], acls: frozenset[Acl]) -> tuple[str, ...]:
    found = []
    if credentials:
        names = ", ".join(sorted(credentials))
        found.append(f"the user has a credential of {names} that another client has set")
    if acls:
        named = "; ".join(str(each) for each in sorted(acls)[:NAMED])
        more = f" and {len(acls) - NAMED} more" if len(acls) > NAMED else ""
        found.append(f"the user has ACLs that another client has created: {named}{more}")
    return tuple(found)


def _not_adopted(name: str, view: UserView, answer: str | None) -> Refusal:
    if answer is not None:
        return Refusal("InvalidAnnotation", f"annotation {ADOPT} is {answer}, must be resource")
    mechanisms = ", ".join(sorted(view.credentials))
    return Refusal(
        "AlreadyExists",
        f"user {name} exists with credentials of {mechanisms} that this resource has not set; they"
        f" are left as they are. Annotate the resource with {ADOPT}=resource to take the user over,"
        " which replaces its password",
    )


def credential_change(
    plan: UserPlan,
    view: UserView,
    entry: UserEntry | None,
    *,
    secrets: frozenset[str],
    password: str,
    iterations: int,
) -> CredentialChange | None:
    """What to do about credentials, given the password and the versions of the Secret that have it.

    `iterations` is a random number for a credential that is set.
    """
    mechanism = plan.access.mechanism
    if not mechanism:
        return CredentialChange(remove=plan.obsolete) if plan.obsolete else None
    recorded = entry.credentials.get(mechanism) if entry else None
    current = recorded is not None and view.credentials.get(mechanism) == recorded
    if current and entry is not None and entry.secret in secrets:
        return CredentialChange(remove=plan.obsolete) if plan.obsolete else None
    return CredentialChange(
        mechanism=mechanism, iterations=iterations, password=password, remove=plan.obsolete
    )


def entered(
    ledger: UserLedger, users: Mapping[str, User], plans: Mapping[str, UserPlan]
) -> dict[str, UserEntry]:
    """The ledger before the plans are carried out: what may be created is recorded already."""
    kept = dict(ledger)
    for name, plan in plans.items():
        user, before = users[name], ledger.get(name)
        entry = before or UserEntry(resource=user.meta.name, uid=user.meta.uid)
        kept[name] = replace(
            entry,
            resource=user.meta.name,
            uid=user.meta.uid,
            namespace=origin_of(user),
            policy=user.body.spec.deletion_policy,
            acls=entry.acls | plan.recorded,
            quotas=entry.quotas | plan.quotas.put.keys(),
        )
    return kept
