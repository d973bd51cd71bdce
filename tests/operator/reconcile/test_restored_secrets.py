"""Secrets that come back from a backup: without owners, then with the new resources as owners."""

from __future__ import annotations

import copy
from typing import Any

from tests.operator import examples
from tests.operator.memory_kube import MemoryKube
from tests.operator.ports import MemoryBrokers
from tests.operator.reconcile.test_certificates import Passes

NEW = {"KafkaCluster": "uid-of-the-new-cluster", "KafkaUser": "uid-of-the-new-user"}


def _settle(passes: Passes) -> None:
    for _ in range(6):
        passes.run()
        passes.kube.settle()


def _restored(passes: Passes) -> MemoryKube:
    """Resources and Secrets as backups have them: no status, no owners, nothing of managers."""
    kube = MemoryKube()
    for (kind, _, _), body in sorted(passes.kube.objects.items()):
        if kind not in (*NEW, "Secret"):
            continue
        meta = body["metadata"]
        kept = {key: meta[key] for key in ("name", "labels", "annotations") if key in meta}
        uid = {"uid": NEW[kind]} if kind in NEW else {}
        document = {key: value for key, value in body.items() if key != "status"}
        kube.put(copy.deepcopy({**document, "metadata": {**kept, **uid}}), manager="restore")
    return kube


def _secrets(kube: MemoryKube) -> dict[str, Any]:
    return {
        name: body["data"] for (kind, _, name), body in kube.objects.items() if kind == "Secret"
    }


def _ready(kube: MemoryKube, kind: str, name: str) -> str:
    conditions = kube.find(kind, name)["status"]["conditions"]
    return next(str(each["status"]) for each in conditions if each["type"] == "Ready")


def test_restored_secrets_are_used_again_once_they_have_owners() -> None:
    """Until then nothing of them is read or changed; then clients go on with what they have."""
    passes = Passes(
        examples.cluster(insecure=False, listeners=None), examples.user(authorization=None)
    )
    _settle(passes)
    before = _secrets(passes.kube)
    owners = {
        name: passes.kube.find("Secret", name)["metadata"]["ownerReferences"][0] for name in before
    }
    passes.kube, passes.brokers = _restored(passes), MemoryBrokers()
    _settle(passes)
    assert _secrets(passes.kube) == before
    assert ("StatefulSet", "default", "quickstart-broker") not in passes.kube.objects
    for name, owner in owners.items():

        def give(body: dict[str, Any], owner: dict[str, Any] = owner) -> None:
            body["metadata"]["ownerReferences"] = [{**owner, "uid": NEW[owner["kind"]]}]

        passes.kube.edit("Secret", name, give)
    _settle(passes)
    assert _secrets(passes.kube) == before
    assert _ready(passes.kube, "KafkaCluster", "quickstart") == "True"
    assert _ready(passes.kube, "KafkaUser", "billing") == "True"
