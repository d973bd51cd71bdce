"""The Secrets of a cluster's certificates: read by name, and applied where they differ.

Neither logs, Events nor errors contain what is in them.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from barnabas_operator.api.reading import Metadata
from barnabas_operator.kube import CLUSTERS, SECRETS, Document, KubeError
from barnabas_operator.plan.certificates import no_earlier_than, parse_time
from barnabas_operator.plan.findings import Finding, Reason
from barnabas_operator.reconcile.apply import short
from barnabas_operator.reconcile.context import Context, Regarding
from barnabas_operator.reconcile.ownership import (
    apply_as_read,
    controller,
    is_begun,
    objection_to,
)
from barnabas_operator.resources.certificates import secret

logger = logging.getLogger(__name__)


class CertificatesUnavailableError(Exception):
    """Why certificates cannot be had; a finding."""

    def __init__(self, finding: Finding) -> None:
        self.finding = finding
        super().__init__(finding.message)


class ClusterSecrets:
    """The Secrets of one cluster during one reconciliation."""

    def __init__(self, meta: Metadata, context: Context) -> None:
        self.meta = meta
        self._context = context
        #: the API server's clock, and not before what is stored
        self.now = parse_time(context.now)
        # Secrets without data yet: as good as none.
        self._begun: dict[str, Document] = {}

    def own(self, name: str) -> Document | None:
        """A Secret of the cluster; one of another is neither read nor changed."""
        found = self.get(name)
        body = secret(name, self.meta, {}, annotations={})
        if found is not None and (objection := objection_to(found, body)):
            raise CertificatesUnavailableError(Finding(reason=Reason.REFUSED, message=objection))
        self.now = no_earlier_than(self.now, found)
        if found is not None and is_begun(found):
            self._begun[name] = found
            return None
        return found

    def get(self, name: str) -> Document | None:
        try:
            return self._context.kube.get(SECRETS, self.meta.namespace, name)
        except KubeError as error:
            raise _unavailable(name, error) from error

    def apply(self, body: Document, found: Document | None, reason: str) -> None:
        name = body["metadata"]["name"]
        if found is not None and not differs(body, found):
            return
        note = f"Secret {name}: {reason}"
        logger.info("KafkaCluster %s/%s: %s", self.meta.namespace, self.meta.name, note)
        try:
            apply_as_read(self._context.kube, body, found or self._begun.get(name))
        except KubeError as error:
            raise _unavailable(name, error) from error
        regarding = Regarding.of(CLUSTERS, self.meta)
        self._context.events.record(
            regarding, action="Certificates", reason="Certificates", note=note
        )


def differs(body: Document, found: Mapping[str, Any]) -> bool:
    """Whether a Secret has to be applied: it is to have this data, these notes and this owner."""
    meta, wanted = found["metadata"], body["metadata"]
    return not (
        body["data"] == (found.get("data") or {})
        and wanted["labels"].items() <= (meta.get("labels") or {}).items()
        and wanted.get("annotations", {}).items() <= (meta.get("annotations") or {}).items()
        and (controller(found) or {}).get("uid") == wanted["ownerReferences"][0]["uid"]
    )


def _unavailable(name: str, error: KubeError) -> Exception:
    """The error as a finding, if asking again would be answered the same."""
    if not error.refused:
        return error
    text = f"Secret {name} is refused: {short(error.message)}"
    if error.status == 403 and 'resource "secrets"' in error.message:
        text = "the operator may not get, create or patch Secrets"
        text += "; install the operator's chart with users=true"
    return CertificatesUnavailableError(Finding(reason=Reason.REFUSED, message=text))
