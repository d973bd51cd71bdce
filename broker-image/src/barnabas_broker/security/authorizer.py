"""The question every handler asks before it acts: may this principal do this here?"""

from collections.abc import Callable
from typing import Final, Protocol

from barnabas_broker.security.acl_rules import Decision, Rules, java_address
from barnabas_broker.security.acls import AclOperation, PatternType, ResourcePattern, ResourceType
from barnabas_broker.security.audit import AuditLog
from barnabas_broker.security.principals import Principal

DECISIONS_MAX: Final = 20_000
"""Decisions that are kept. A client can ask about any number of names; when there are so many, all
are dropped, as deciding again takes some microseconds."""

NAME_MAX: Final = 255
"""Decisions about longer names, of groups and the like, are not kept: names may have 32 KiB."""

ANY_NAME: Final = "(any)"
"""What the audit log calls the resource of a decision about a type."""


class Authorizer(Protocol):
    """Decides from rules it already holds: an answer never waits."""

    def authorize(
        self,
        principal: Principal,
        host: str,
        operation: AclOperation,
        resource: ResourcePattern,
        *,
        audited: bool = True,
    ) -> bool:
        """Whether `principal`, connected from `host`, may perform `operation` on `resource`.

        A refusal is `audited` unless it only leaves something out that was not asked for by name.
        """
        ...

    def authorize_by_type(
        self, principal: Principal, host: str, operation: AclOperation, kind: ResourceType
    ) -> bool:
        """Whether the operation is allowed on at least one resource of a type (KIP-679)."""
        ...


class AllowAll:
    """The authorizer of a broker whose `authorizer.class.name` is empty."""

    def authorize(
        self,
        principal: Principal,
        host: str,
        operation: AclOperation,
        resource: ResourcePattern,
        *,
        audited: bool = True,
    ) -> bool:
        """Yes to everything."""
        return True

    def authorize_by_type(
        self, principal: Principal, host: str, operation: AclOperation, kind: ResourceType
    ) -> bool:
        """Yes to everything."""
        return True


_Key = tuple[Principal, str, AclOperation, ResourcePattern]


class _Current:
    """Rules, and what was decided by them: replaced together, so that no decision outlives them."""

    __slots__ = ("decisions", "rules")

    def __init__(self, rules: Rules) -> None:
        self.rules: Final = rules
        self.decisions: dict[_Key, Decision] = {}

    def keep(self, key: _Key, decision: Decision) -> None:
        """Remember a decision."""
        if len(key[3].name) > NAME_MAX:
            return
        if len(self.decisions) >= DECISIONS_MAX:
            self.decisions.clear()
        self.decisions[key] = decision


class AclAuthorizer:
    """Decides by the rules that `publish` was given last, from any thread.

    A request that is being served when rules change is decided by the old or the new ones, each
    question for itself, as in Kafka.
    """

    def __init__(self, rules: Rules, *, monotonic_s: Callable[[], float]) -> None:
        self._current = _Current(rules)
        self.audit: Final = AuditLog(monotonic_s)

    @property
    def rules(self) -> Rules:
        """Those that are in effect."""
        return self._current.rules

    def publish(self, rules: Rules) -> None:
        """Decide by these rules from now on; may be called from any thread."""
        self._current = _Current(rules)

    def authorize(
        self,
        principal: Principal,
        host: str,
        operation: AclOperation,
        resource: ResourcePattern,
        *,
        audited: bool = True,
    ) -> bool:
        """As `Authorizer.authorize`, from what was decided before where that is known."""
        current = self._current
        key = principal, host, operation, resource
        decision = current.decisions.get(key)
        if decision is None:
            decision = current.rules.decide(
                str(principal), java_address(host), operation, resource.type, resource.name
            )
            current.keep(key, decision)
        if audited and (not decision.allowed or self.audit.logs_allowed):
            self.audit.note(principal, host, operation, resource, decision)
        return decision.allowed

    def authorize_by_type(
        self, principal: Principal, host: str, operation: AclOperation, kind: ResourceType
    ) -> bool:
        """As `Authorizer.authorize_by_type`. Reads every rule of the type once."""
        current = self._current
        resource = ResourcePattern(kind, ANY_NAME, PatternType.ANY)
        key = principal, host, operation, resource
        decision = current.decisions.get(key)
        if decision is None:
            decision = current.rules.decide_by_type(
                str(principal), java_address(host), operation, kind
            )
            current.keep(key, decision)
        if not decision.allowed or self.audit.logs_allowed:
            self.audit.note(principal, host, operation, resource, decision)
        return decision.allowed
