"""AlterClientQuotas: set and remove quotas of users, client ids and addresses (KIP-546)."""

import asyncio
from asyncio import Future
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Final

from barnabas_broker.cluster.quota_entity import is_address
from barnabas_broker.controller.controller import Controller
from barnabas_broker.controller.quota_changes import IP, QuotaAlteration, QuotaChange
from barnabas_broker.security.acls import AclOperation
from barnabas_broker.server.process.cooperative_scheduler import Work
from barnabas_broker.server.requests.handler import Handler
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.host_resolver import HostResolver
from barnabas_kafka.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlterClientQuotasResponseEntryData,
    EntityData,
)
from barnabas_kafka.protocol.registry import ApiKey, VersionRange

Response = AlterClientQuotasResponse

NAMES_MAX: Final = 100
"""Names of hosts that one request may have looked up."""

LOOK_UP_S: Final = 20.0
"""How long that may take; what is not found by then is not known."""


_RESOLVER: Final = HostResolver()
"""Its threads are its own: a look-up that hangs takes none that others wait for."""


def handle(
    request: AlterClientQuotasRequest, call: RequestContext
) -> Work[Work[Response] | Future[Work[Response]]]:
    """Answer for each entity; any broker may serve this, as with Kafka's."""
    alterations = []
    names = set()
    for entry in request.entries:
        # The last name counts where a type is named twice.
        parts = {part.entity_type: part.entity_name for part in entry.entity}
        changes = [QuotaChange(op.key, None if op.remove else op.value) for op in entry.ops]
        alterations.append(QuotaAlteration(tuple(parts.items()), changes))
        if (host := parts.get(IP)) and not is_address(host):
            names.add(host)
        yield
    validate_only = request.validate_only
    if not call.allowed_on_cluster(AclOperation.ALTER_CONFIGS):
        refused = KafkaError(
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed."
        )
        return _response(alterations, [refused] * len(alterations))

    def alter(unknown_hosts: Collection[str]) -> Future[Work[Response]]:
        def change(controller: Controller) -> list[KafkaError | None]:
            return controller.client_quotas.alter(
                alterations,
                validate_only=validate_only,
                unknown_hosts=unknown_hosts,
                principal=call.principal,
                now_ms=call.now_ms,
            )

        return call.ask_controller(change, lambda errors: _response(alterations, errors))

    if not names:
        return alter(())

    async def look_up() -> Work[Response]:
        return await alter(names - await _known(sorted(names)[:NAMES_MAX]))

    return asyncio.ensure_future(look_up())


async def _known(hosts: Sequence[str]) -> set[str]:
    """Those that have been found in time."""
    known: set[str] = set()

    async def look_up(host: str) -> None:
        with suppress(OSError, UnicodeError):
            await _RESOLVER.resolve(host)
            known.add(host)

    with suppress(TimeoutError):
        async with asyncio.timeout(LOOK_UP_S):
            await asyncio.gather(*map(look_up, hosts))
    return known


def _response(
    alterations: Sequence[QuotaAlteration], errors: Sequence[KafkaError | None]
) -> Work[Response]:
    """One answer for each entity, the last where it was named twice."""
    results = {}
    for it, error in zip(alterations, errors, strict=True):
        results[frozenset(it.parts)] = AlterClientQuotasResponseEntryData(
            error_code=ErrorCode.NONE if error is None else error.code,
            error_message=None
            if error is None or error.code == ErrorCode.UNKNOWN_SERVER_ERROR
            else error.message,
            entity=[EntityData(entity_type=k, entity_name=n) for k, n in sorted(it.parts)],
        )
        yield
    return Response(entries=list(results.values()))


HANDLER = Handler(ApiKey.ALTER_CLIENT_QUOTAS, VersionRange(0, 1), handle, large=True)
