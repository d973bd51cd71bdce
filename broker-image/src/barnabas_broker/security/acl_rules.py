"""The rules of a cluster, and what follows from them: `AclAuthorizer` without its storage.

A rule about a pattern applies to a resource that has the pattern's name, to any for the literal
`*`, and to one whose name begins with it for a prefixed pattern. A rule that denies wins over all
that allow. Describe is implied by Read, Write, Delete and Alter, DescribeConfigs by AlterConfigs;
nothing is implied by what is denied. Without any rule that applies to a resource, for any
principal, `allow.everyone.if.no.acl.found` decides. Super users may do everything.

A `Rules` never changes. An operation is decided from a few look-ups, however many rules there
are: one for each length that a prefix of the resource's type has.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from ipaddress import IPv6Address, ip_address
from typing import Final, NamedTuple

from barnabas_broker.security.acls import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AccessControlEntry,
    AclBinding,
    AclOperation,
    Entries,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
)

_LITERAL: Final = PatternType.LITERAL
_PREFIXED: Final = PatternType.PREFIXED
_IMPLIED_BY: Final[Mapping[AclOperation, tuple[AclOperation, ...]]] = {
    AclOperation.DESCRIBE: (
        AclOperation.DESCRIBE,
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.DELETE,
        AclOperation.ALTER,
    ),
    AclOperation.DESCRIBE_CONFIGS: (AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS),
}
"""Allowing any of these allows the operation."""


class Decision(NamedTuple):
    """Whether something is allowed, and by which rule or for which other reason."""

    allowed: bool
    reason: AclBinding | str


SUPER_USER: Final = Decision(True, "super.users")
NO_ACL_ALLOWED: Final = Decision(True, "allow.everyone.if.no.acl.found")
NO_ACL_DENIED: Final = Decision(False, "no ACL of the resource")
NO_MATCH: Final = Decision(False, "no ACL that allows it")


def sufficient_for(operation: AclOperation) -> tuple[AclOperation, ...]:
    """The operations that allow this one where at least one is allowed."""
    return _IMPLIED_BY.get(operation, (operation,))


def java_address(host: str) -> str:
    """An address as Java's `InetAddress.getHostAddress` writes it, which rules name hosts by.

    IPv4 addresses within IPv6 are written as IPv4, others in full: `0:0:0:0:0:0:0:1`. What is no
    address stays as it is.
    """
    if ":" not in host:
        return host
    plain, percent, scope = host.partition("%")
    try:
        address = ip_address(plain)
    except ValueError:
        return host
    if not isinstance(address, IPv6Address):
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    groups = address.packed
    text = ":".join(f"{groups[i] << 8 | groups[i + 1]:x}" for i in range(0, 16, 2))
    return f"{text}{percent}{scope}"


class Rules:
    """All rules of a cluster. `entries` holds no pattern without an entry."""

    __slots__ = ("_allow_without", "_lengths", "_super_users", "entries")

    def __init__(
        self,
        entries: Mapping[ResourcePattern, Entries] | None = None,
        *,
        super_users: Collection[str] = (),
        allow_without: bool = False,
    ) -> None:
        """`super_users` are principals; `allow_without`: whether all is allowed without a rule."""
        self.entries: Final = {at: each for at, each in (entries or {}).items() if each}
        self._super_users: Final = frozenset(super_users)
        self._allow_without: Final = allow_without
        lengths: dict[ResourceType, set[int]] = {}
        for at in self.entries:
            if at.pattern is _PREFIXED:
                lengths.setdefault(at.type, set()).add(len(at.name))
        self._lengths: Final = {kind: tuple(sorted(each)) for kind, each in lengths.items()}

    def with_entries(self, changed: Mapping[ResourcePattern, Entries]) -> "Rules":
        """The same rules but for those of the patterns in `changed`."""
        return Rules(
            {**self.entries, **changed},
            super_users=self._super_users,
            allow_without=self._allow_without,
        )

    def decide(
        self, principal: str, host: str, operation: AclOperation, kind: ResourceType, name: str
    ) -> Decision:
        """Whether `principal`, at `host` as Java writes it, may do this to the resource."""
        if principal in self._super_users:
            return SUPER_USER
        found = False
        allowing: AclBinding | None = None
        sufficient = sufficient_for(operation)
        for pattern in self.patterns_of(kind, name):
            for entry in self.entries[pattern]:
                found = True
                if not _is_about(entry, principal, host):
                    continue
                if entry.permission is Permission.DENY:
                    if entry.operation in (operation, AclOperation.ALL):
                        return Decision(False, AclBinding(pattern, entry))
                elif (
                    allowing is None
                    and entry.permission is Permission.ALLOW
                    and (entry.operation is AclOperation.ALL or entry.operation in sufficient)
                ):
                    allowing = AclBinding(pattern, entry)
        if not found:
            return NO_ACL_ALLOWED if self._allow_without else NO_ACL_DENIED
        return NO_MATCH if allowing is None else Decision(True, allowing)

    def patterns_of(self, kind: ResourceType, name: str) -> Iterator[ResourcePattern]:
        """The patterns with rules that apply to a resource, each once."""
        entries = self.entries
        for literal in (WILDCARD, name) if name != WILDCARD else (WILDCARD,):
            pattern = ResourcePattern(kind, literal, _LITERAL)
            if pattern in entries:
                yield pattern
        for length in self._lengths.get(kind, ()):
            if length > len(name):
                break
            pattern = ResourcePattern(kind, name[:length], _PREFIXED)
            if pattern in entries:
                yield pattern

    def decide_by_type(
        self, principal: str, host: str, operation: AclOperation, kind: ResourceType
    ) -> Decision:
        """Whether this is allowed on any resource of a type, be there one or not (KIP-679).

        A pattern counts unless something is denied of all that it covers. Other operations imply
        nothing here.
        """
        if principal in self._super_users:
            return SUPER_USER
        patterns: dict[tuple[Permission, PatternType], dict[str, AclBinding]] = {}
        for pattern, entry in self._about(principal, host, operation, kind):
            named = patterns.setdefault((entry.permission, pattern.pattern), {})
            named[pattern.name] = AclBinding(pattern, entry)
        denied = patterns.get((Permission.DENY, _LITERAL), {})
        if WILDCARD in denied:
            return Decision(False, denied[WILDCARD])
        if self._allow_without:
            return NO_ACL_ALLOWED
        prefixes = patterns.get((Permission.DENY, _PREFIXED), {})
        for name, binding in patterns.get((Permission.ALLOW, _PREFIXED), {}).items():
            if not _begins(name, prefixes):
                return Decision(True, binding)
        for name, binding in patterns.get((Permission.ALLOW, _LITERAL), {}).items():
            if name == WILDCARD or not (name in denied or _begins(name, prefixes)):
                return Decision(True, binding)
        return NO_MATCH

    def _about(
        self, principal: str, host: str, operation: AclOperation, kind: ResourceType
    ) -> Iterator[AclBinding]:
        for pattern, entries in self.entries.items():
            if pattern.type is kind:
                for entry in entries:
                    if entry.operation in (operation, AclOperation.ALL) and _is_about(
                        entry, principal, host
                    ):
                        yield AclBinding(pattern, entry)


def _is_about(entry: AccessControlEntry, principal: str, host: str) -> bool:
    return entry.principal in (principal, WILDCARD_PRINCIPAL) and entry.host in (host, WILDCARD)


def _begins(name: str, prefixes: Iterable[str]) -> bool:
    return name.startswith(tuple(prefixes))
