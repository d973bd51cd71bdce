"""Taking a plan's steps, in order, on the API server."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from barnabas_operator.api.reading import Metadata
from barnabas_operator.kube import CLAIMS, PODS, KubeError
from barnabas_operator.names import RACK
from barnabas_operator.plan.steps import Apply, DeletePod, GrowClaim, Step
from barnabas_operator.reconcile.context import Context

LOG: Final = logging.getLogger(__name__)


def take(steps: Sequence[Step], meta: Metadata, context: Context) -> str:
    """Take the steps for a resource; returns what the API server refused, empty if nothing.

    What it refuses would be refused again, so the steps after it are taken all the same; if it
    cannot be reached the pass ends (KubeError).
    """
    refused = []
    for step in steps:
        LOG.info("%s/%s: %s", meta.namespace, meta.name, step)
        try:
            _take(step, meta.namespace, context)
        except KubeError as error:
            if not error.refused:
                raise
            refused.append(error.message)
    return "; ".join(refused)


def _take(step: Step, namespace: str, context: Context) -> None:
    if isinstance(step, Apply):
        context.kube.apply(dict(step.body))
    elif isinstance(step, DeletePod):
        context.kube.delete(PODS, namespace, step.name, uid=step.uid)
    elif isinstance(step, GrowClaim):
        request = {"spec": {"resources": {"requests": {"storage": step.size}}}}
        context.kube.patch(CLAIMS, namespace, step.name, request)
    else:
        told = {"metadata": {"annotations": {RACK: step.rack}}}
        context.kube.patch(PODS, namespace, step.name, told)
