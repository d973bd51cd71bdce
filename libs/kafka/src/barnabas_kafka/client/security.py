"""Operations on access: ACLs, SCRAM credentials and client quotas."""

import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from barnabas_kafka.acls import AclOperation, AclPermission, AclResourceType, PatternType
from barnabas_kafka.client.cluster import ANY_BROKER, CONTROLLER
from barnabas_kafka.client.errors import BrokerError, check
from barnabas_kafka.client.operation import (
    ONLY,
    Ask,
    Operation,
    Outcomes,
    Results,
    every,
    outcome,
    read_single,
    single,
    unique,
)
from barnabas_kafka.client.sasl import ITERATIONS_MIN, ScramMechanism, salted_password
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages import alter_client_quotas as altered_quotas
from barnabas_kafka.protocol.messages import alter_user_scram_credentials as altered_scram
from barnabas_kafka.protocol.messages import create_acls as created
from barnabas_kafka.protocol.messages import delete_acls as deleted
from barnabas_kafka.protocol.messages import describe_acls as described
from barnabas_kafka.protocol.messages import describe_client_quotas as described_quotas
from barnabas_kafka.protocol.messages import describe_user_scram_credentials as described_scram
from barnabas_kafka.protocol.registry import ApiKey

SALT_BYTES: Final = 24
DEFAULT_ENTITY: Final = None
"""As name in a quota entity: the default of all users, client ids or addresses."""
_MECHANISMS: Final[Mapping[ScramMechanism, int]] = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}

QuotaEntity = frozenset[tuple[str, str | None]]
"""Of pairs such as ("user", "alice"); the types are user, client-id and ip."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AclFilter:
    """Which rules: None and ANY match everything."""

    resource_type: AclResourceType = AclResourceType.ANY
    resource_name: str | None = None
    pattern_type: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: AclOperation = AclOperation.ANY
    permission: AclPermission = AclPermission.ANY


@dataclass(frozen=True, slots=True, kw_only=True)
class Acl:
    """One access rule."""

    resource_type: AclResourceType
    resource_name: str
    pattern_type: PatternType = PatternType.LITERAL
    principal: str
    host: str = "*"
    operation: AclOperation
    permission: AclPermission = AclPermission.ALLOW

    def filter(self) -> AclFilter:
        """What matches this rule alone."""
        return AclFilter(
            resource_type=self.resource_type,
            resource_name=self.resource_name,
            pattern_type=self.pattern_type,
            principal=self.principal,
            host=self.host,
            operation=self.operation,
            permission=self.permission,
        )


@dataclass(frozen=True, slots=True)
class ScramCredential:
    """A credential to set. Only its salted hash is sent."""

    user: str
    password: str = field(repr=False)
    mechanism: ScramMechanism = "SCRAM-SHA-512"
    iterations: int = ITERATIONS_MIN


def describe_acls(filter_: AclFilter) -> Operation[tuple[Acl, ...]]:
    """The rules that match."""

    def request(ask: Ask[Any]) -> described.DescribeAclsRequest:
        return described.DescribeAclsRequest(
            resource_type_filter=filter_.resource_type,
            resource_name_filter=filter_.resource_name,
            pattern_type_filter=filter_.pattern_type,
            principal_filter=filter_.principal,
            host_filter=filter_.host,
            operation=filter_.operation,
            permission_type=filter_.permission,
        )

    def read(response: described.DescribeAclsResponse) -> tuple[Acl, ...]:
        check(response.error_code, response.error_message)
        return tuple(
            _acl(resource, acl) for resource in response.resources for acl in resource.acls
        )

    return Operation(
        name="describe ACLs",
        keys=[ONLY],
        target=lambda _: ANY_BROKER,
        request=request,
        api_key=ApiKey.DESCRIBE_ACLS,
        read=read_single(read),
        finish=single,
    )


def create_acls(acls: Iterable[Acl]) -> Operation[Results[Acl, None]]:
    """Add rules; one that is there already is no error."""

    def request(ask: Ask[Acl]) -> created.CreateAclsRequest:
        return created.CreateAclsRequest(
            creations=[
                created.AclCreation(
                    resource_type=acl.resource_type,
                    resource_name=acl.resource_name,
                    resource_pattern_type=acl.pattern_type,
                    principal=acl.principal,
                    host=acl.host,
                    operation=acl.operation,
                    permission_type=acl.permission,
                )
                for acl in ask.keys
            ]
        )

    def read(ask: Ask[Acl], response: created.CreateAclsResponse) -> Outcomes[Acl, None]:
        # In the order of the request; `take` reports those that are missing.
        return {
            acl: outcome(each.error_code, each.error_message, None)
            for acl, each in zip(ask.keys, response.results, strict=False)
        }

    return Operation(
        name="create ACLs",
        keys=unique(acls),
        target=lambda _: ANY_BROKER,
        request=request,
        api_key=ApiKey.CREATE_ACLS,
        read=read,
        finish=every,
    )


def delete_acls(filters: Iterable[AclFilter]) -> Operation[Results[AclFilter, tuple[Acl, ...]]]:
    """Remove the rules that match; the rules that were removed."""

    def request(ask: Ask[AclFilter]) -> deleted.DeleteAclsRequest:
        return deleted.DeleteAclsRequest(
            filters=[
                deleted.DeleteAclsFilter(
                    resource_type_filter=each.resource_type,
                    resource_name_filter=each.resource_name,
                    pattern_type_filter=each.pattern_type,
                    principal_filter=each.principal,
                    host_filter=each.host,
                    operation=each.operation,
                    permission_type=each.permission,
                )
                for each in ask.keys
            ]
        )

    def read(
        ask: Ask[AclFilter], response: deleted.DeleteAclsResponse
    ) -> Outcomes[AclFilter, tuple[Acl, ...]]:
        found: dict[AclFilter, tuple[Acl, ...] | BrokerError] = {}
        for filter_, result in zip(ask.keys, response.filter_results, strict=False):
            failed = [each for each in result.matching_acls if each.error_code]
            if result.error_code:
                found[filter_] = BrokerError(result.error_code, result.error_message)
            elif failed:
                found[filter_] = BrokerError(failed[0].error_code, failed[0].error_message)
            else:
                found[filter_] = tuple(_acl(each, each) for each in result.matching_acls)
        return found

    return Operation(
        name="delete ACLs",
        keys=unique(filters),
        target=lambda _: ANY_BROKER,
        request=request,
        api_key=ApiKey.DELETE_ACLS,
        read=read,
        finish=every,
    )


def describe_scram_credentials(
    users: Iterable[str] | None = None,
) -> Operation[Mapping[str, Mapping[ScramMechanism, int]]]:
    """The iterations of each mechanism that each user has; of all users without names.

    A user without credentials is left out.
    """
    wanted = None if users is None else unique(users)

    def request(ask: Ask[Any]) -> described_scram.DescribeUserScramCredentialsRequest:
        names = None if wanted is None else [described_scram.UserName(name=name) for name in wanted]
        return described_scram.DescribeUserScramCredentialsRequest(users=names)

    def read(
        response: described_scram.DescribeUserScramCredentialsResponse,
    ) -> Mapping[str, Mapping[ScramMechanism, int]]:
        check(response.error_code, response.error_message)
        names = {number: name for name, number in _MECHANISMS.items()}
        found: dict[str, Mapping[ScramMechanism, int]] = {}
        for each in response.results:
            if each.error_code == ErrorCode.RESOURCE_NOT_FOUND:
                continue
            check(each.error_code, each.error_message)
            found[each.user] = {
                names[info.mechanism]: info.iterations
                for info in each.credential_infos
                if info.mechanism in names
            }
        return found

    return Operation(
        name="describe SCRAM credentials",
        keys=[ONLY],
        target=lambda _: CONTROLLER,
        request=request,
        api_key=ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        read=read_single(read),
        finish=single,
    )


def alter_scram_credentials(
    upsertions: Iterable[ScramCredential] = (),
    deletions: Iterable[tuple[str, ScramMechanism]] = (),
    *,
    random_bytes: Callable[[int], bytes] = secrets.token_bytes,
) -> Operation[Results[str, None]]:
    """Set and remove credentials; results by user. The same user may be named several times."""
    set_, removed = list(upsertions), list(deletions)

    def upsertion(each: ScramCredential) -> altered_scram.ScramCredentialUpsertion:
        salt = random_bytes(SALT_BYTES)
        return altered_scram.ScramCredentialUpsertion(
            name=each.user,
            mechanism=_MECHANISMS[each.mechanism],
            iterations=each.iterations,
            salt=salt,
            salted_password=salted_password(each.mechanism, each.password, salt, each.iterations),
        )

    def request(ask: Ask[str]) -> altered_scram.AlterUserScramCredentialsRequest:
        users = set(ask.keys)
        return altered_scram.AlterUserScramCredentialsRequest(
            upsertions=[upsertion(each) for each in set_ if each.user in users],
            deletions=[
                altered_scram.ScramCredentialDeletion(name=user, mechanism=_MECHANISMS[mechanism])
                for user, mechanism in removed
                if user in users
            ],
        )

    def read(
        ask: Ask[str], response: altered_scram.AlterUserScramCredentialsResponse
    ) -> Outcomes[str, None]:
        return {
            each.user: outcome(each.error_code, each.error_message, None)
            for each in response.results
        }

    return Operation(
        name="alter SCRAM credentials",
        keys=unique([*(each.user for each in set_), *(user for user, _ in removed)]),
        target=lambda _: CONTROLLER,
        request=request,
        api_key=ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        read=read,
        finish=every,
    )


def describe_quotas(
    components: Mapping[str, str | None] | None = None, *, strict: bool = False
) -> Operation[Mapping[QuotaEntity, Mapping[str, float]]]:
    """The quotas of the entities that have these components, or of all; None is the default.

    `strict` leaves out entities that have components of other types as well.
    """

    def component(kind: str, name: str | None) -> described_quotas.ComponentData:
        match_type = 0 if name is not None else 1
        return described_quotas.ComponentData(entity_type=kind, match_type=match_type, match=name)

    def request(ask: Ask[Any]) -> described_quotas.DescribeClientQuotasRequest:
        wanted = [component(kind, name) for kind, name in (components or {}).items()]
        return described_quotas.DescribeClientQuotasRequest(components=wanted, strict=strict)

    def read(
        response: described_quotas.DescribeClientQuotasResponse,
    ) -> Mapping[QuotaEntity, Mapping[str, float]]:
        check(response.error_code, response.error_message)
        return {
            frozenset((part.entity_type, part.entity_name) for part in entry.entity): {
                each.key: each.value for each in entry.values
            }
            for entry in response.entries or ()
        }

    return Operation(
        name="describe client quotas",
        keys=[ONLY],
        target=lambda _: ANY_BROKER,
        request=request,
        api_key=ApiKey.DESCRIBE_CLIENT_QUOTAS,
        read=read_single(read),
        finish=single,
    )


def alter_quotas(
    changes: Mapping[QuotaEntity, Mapping[str, float | None]], *, validate_only: bool = False
) -> Operation[Results[QuotaEntity, None]]:
    """Set quotas such as `producer_byte_rate`; None removes one. Others stay as they are."""

    def entry(entity: QuotaEntity) -> altered_quotas.AlterClientQuotasRequestEntryData:
        return altered_quotas.AlterClientQuotasRequestEntryData(
            entity=[
                altered_quotas.EntityData(entity_type=kind, entity_name=name)
                for kind, name in sorted(entity, key=lambda pair: pair[0])
            ],
            ops=[
                altered_quotas.OpData(key=key, value=value or 0.0, remove=value is None)
                for key, value in changes[entity].items()
            ],
        )

    def request(ask: Ask[QuotaEntity]) -> altered_quotas.AlterClientQuotasRequest:
        entries = [entry(each) for each in ask.keys]
        return altered_quotas.AlterClientQuotasRequest(entries=entries, validate_only=validate_only)

    def read(
        ask: Ask[QuotaEntity], response: altered_quotas.AlterClientQuotasResponse
    ) -> Outcomes[QuotaEntity, None]:
        return {
            frozenset((part.entity_type, part.entity_name) for part in each.entity): outcome(
                each.error_code, each.error_message, None
            )
            for each in response.entries
        }

    return Operation(
        name="alter client quotas",
        keys=list(changes),
        target=lambda _: CONTROLLER,
        request=request,
        api_key=ApiKey.ALTER_CLIENT_QUOTAS,
        read=read,
        finish=every,
    )


def _acl(resource: Any, rule: Any) -> Acl:
    return Acl(
        resource_type=AclResourceType(resource.resource_type),
        resource_name=resource.resource_name,
        pattern_type=PatternType(resource.pattern_type),
        principal=rule.principal,
        host=rule.host,
        operation=AclOperation(rule.operation),
        permission=AclPermission(rule.permission_type),
    )
