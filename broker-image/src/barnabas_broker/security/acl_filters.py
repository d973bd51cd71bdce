"""Filters of rules, as DescribeAcls and DeleteAcls carry them (KIP-290's `AclBindingFilter`)."""

from typing import NamedTuple

from barnabas_broker.security.acls import (
    WILDCARD,
    AccessControlEntry,
    AclOperation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
)


class AclFilter(NamedTuple):
    """Which rules; None and ANY match everything.

    A pattern type of MATCH finds the patterns that apply to the resource called `name`; ANY finds
    the patterns that have this very name.
    """

    type: ResourceType
    name: str | None
    pattern: PatternType
    principal: str | None
    host: str | None
    operation: AclOperation
    permission: Permission

    def covers(self, pattern: ResourcePattern) -> bool:
        """Whether rules about `pattern` are meant (`ResourcePatternFilter.matches`)."""
        if self.type not in (ResourceType.ANY, pattern.type):
            return False
        if self.pattern is not PatternType.MATCH:
            return self.pattern in (PatternType.ANY, pattern.pattern) and self.name in (
                None,
                pattern.name,
            )
        if self.name is None:
            return True
        if pattern.pattern is PatternType.LITERAL:
            return pattern.name in (self.name, WILDCARD)
        return pattern.pattern is PatternType.PREFIXED and self.name.startswith(pattern.name)

    def matches(self, entry: AccessControlEntry) -> bool:
        """Whether an entry is meant (`AccessControlEntryFilter.matches`)."""
        return (
            self.principal in (None, entry.principal)
            and self.host in (None, entry.host)
            and self.operation in (AclOperation.ANY, entry.operation)
            and self.permission in (Permission.ANY, entry.permission)
        )

    def named_patterns(self) -> tuple[ResourcePattern, ...]:
        """The patterns that the filter gives by name: they are found also when not known yet."""
        if self.name is None or self.type in (ResourceType.ANY, ResourceType.UNKNOWN):
            return ()
        kinds = {
            PatternType.LITERAL: (PatternType.LITERAL,),
            PatternType.PREFIXED: (PatternType.PREFIXED,),
            PatternType.ANY: (PatternType.LITERAL, PatternType.PREFIXED),
        }.get(self.pattern, ())
        return tuple(ResourcePattern(self.type, self.name, kind) for kind in kinds)
