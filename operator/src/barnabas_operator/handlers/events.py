"""What kopf watches, and what an event means: that a cluster is to be looked at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import kopf

from barnabas_operator.api import GROUP, VERSION
from barnabas_operator.kube import CLUSTERS, PIPELINES, TOPICS
from barnabas_operator.names import FIELD_MANAGER, INSTANCE, MANAGED_BY
from barnabas_operator.reconcile.passes import Key, key_of

# A watch that the server or something between has silently dropped is noticed after that.
SERVER_TIMEOUT_S: Final = 300
CLIENT_TIMEOUT_S: Final = 330


class Novelty:
    """Tells events that say something new from those that our own status made."""

    def __init__(self) -> None:
        self._seen: dict[str, object] = {}

    def is_new(self, event: Mapping[str, Any]) -> bool:
        """Whether the event's object is new, gone, or asks for something else than before."""
        meta = event["object"]["metadata"]
        uid = meta["uid"]
        if event.get("type") == "DELETED":
            self._seen.pop(uid, None)
            return True
        asked = (meta.get("generation"), bool(meta.get("deletionTimestamp")))
        if self._seen.get(uid) == asked:
            return False
        self._seen[uid] = asked
        return True


def register(ask: Callable[[Key], None]) -> kopf.OperatorRegistry:
    """The registry of event handlers, each of which asks for a pass."""
    registry = kopf.OperatorRegistry()
    novelty = Novelty()

    async def on_resource(event: kopf.RawEvent, **_: Any) -> None:
        key = key_of(event["object"])
        if key is not None and novelty.is_new(event):
            ask(key)

    async def on_stateful_set(labels: Mapping[str, str], namespace: str | None, **_: Any) -> None:
        if namespace and INSTANCE in labels:
            ask(Key(namespace, labels[INSTANCE]))

    for kind in (CLUSTERS, TOPICS, PIPELINES):
        kopf.on.event(GROUP, VERSION, kind.plural, registry=registry)(on_resource)
    # Its status follows its pods: one watch tells of both.
    kopf.on.event(
        "apps", "v1", "statefulsets", labels={MANAGED_BY: FIELD_MANAGER}, registry=registry
    )(on_stateful_set)
    kopf.on.login(registry=registry)(log_in)
    return registry


def log_in(settings: kopf.OperatorSettings, **_: Any) -> kopf.ConnectionInfo | None:
    """As the pod's service account, or as kubectl would."""
    return kopf.login_with_service_account(settings=settings) or kopf.login_with_kubeconfig(
        settings=settings
    )


def settings() -> kopf.OperatorSettings:
    """kopf without anything but watching."""
    chosen = kopf.OperatorSettings()
    chosen.posting.enabled = False
    # Without this it watches namespaces and CRDs, which needs rights on the whole cluster.
    chosen.scanning.disabled = True
    chosen.watching.server_timeout = SERVER_TIMEOUT_S
    chosen.watching.client_timeout = CLIENT_TIMEOUT_S
    return chosen
