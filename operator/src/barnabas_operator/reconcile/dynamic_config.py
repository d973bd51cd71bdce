"""Asks brokers for the dynamic settings of all of them, and has them changed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping

from barnabas_operator.api.reading import Metadata
from barnabas_operator.brokers import Brokers, BrokersError
from barnabas_operator.kube import CLUSTERS
from barnabas_operator.plan.findings import Finding, Reason
from barnabas_operator.plan.topics import AlterConfig
from barnabas_operator.reconcile.context import Context, Regarding

logger = logging.getLogger(__name__)

# The step, in metrics and events.
ACTION = "AlterDynamicConfig"


def ask_dynamic_config(connect: Callable[[], Brokers]) -> Mapping[str, str] | Finding:
    """The dynamic settings of all brokers, or why they are not known."""
    try:
        return connect().dynamic_config()
    except BrokersError as error:
        reason = Reason.DYNAMIC_CONFIG_UNKNOWN
        if error.reachable:
            reason = Reason.DYNAMIC_CONFIG_REFUSED
        text = f"brokers do not say which dynamic settings all of them have: {error}"
        return Finding(reason=reason, message=text)


def alter_dynamic_config(
    change: AlterConfig, brokers: Brokers, meta: Metadata, context: Context
) -> list[Finding]:
    """Have the brokers make a change; returns what came of it that is not as it should be.

    They make it as a whole or not at all. A setting that they refuse keeps back no other one: each
    is then asked for by itself.
    """
    regarding = Regarding.of(CLUSTERS, meta)
    refused: list[str] = []
    try:
        for part, error in _attempts(change, brokers):
            if error is None:
                logger.info("%s/%s: %s", meta.namespace, meta.name, part)
                context.count_step(ACTION, "applied")
                context.events.record(regarding, action=ACTION, reason=ACTION, note=str(part))
                continue
            refused.append(f"{part}: {error}")
            context.count_step(ACTION, "refused")
            note = f"{part}; the brokers refuse it: {error}"
            reason = Reason.DYNAMIC_CONFIG_REFUSED
            context.events.record(regarding, action=ACTION, reason=reason, note=note, warning=True)
    except BrokersError as error:
        text = f"the dynamic settings of all brokers are not set: {error}"
        return [Finding(reason=Reason.DYNAMIC_CONFIG_UNKNOWN, message=text)]
    if not refused:
        return []
    text = f"brokers refuse spec.config: {'; '.join(refused)}"
    return [Finding(reason=Reason.DYNAMIC_CONFIG_REFUSED, message=text)]


def _attempts(
    change: AlterConfig, brokers: Brokers
) -> Iterator[tuple[AlterConfig, BrokersError | None]]:
    """The parts of a change that were asked for, each with its refusal. Raises BrokersError."""
    parts = [AlterConfig(put={name: value}) for name, value in change.put.items()]
    parts += [AlterConfig(put={}, drop=frozenset({name})) for name in sorted(change.drop)]
    if (error := _refusal(change, brokers)) is None or len(parts) == 1:
        yield change, error
        return
    for part in parts:
        yield part, _refusal(part, brokers)


def _refusal(change: AlterConfig, brokers: Brokers) -> BrokersError | None:
    try:
        brokers.alter_dynamic_config(change)
    except BrokersError as error:
        if not error.reachable:
            raise
        return error
    return None
