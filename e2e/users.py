"""What a client is given of a KafkaUser: its Secret, and nothing else."""

from __future__ import annotations

import json
from base64 import b64decode

from e2e import kafka
from e2e.cluster import Cluster
from e2e.commands import CommandError
from e2e.quickstart import MAIN


def secret(cluster: Cluster, user: str, *, namespace: str = MAIN) -> dict[str, str]:
    """The keys of a user's Secret that are text, and their texts; raises CommandError."""
    body = cluster.get("secret", user, namespace=namespace)
    if body is None:
        raise CommandError(("get", "secret", user), "NotFound", "")
    found = {key: b64decode(value) for key, value in body["data"].items()}
    return {key: value.decode() for key, value in found.items() if not key.endswith(".p12")}


def client(cluster: Cluster, user: str, *, namespace: str = MAIN) -> kafka.Client:
    """librdkafka's settings, as the Secret has them; raises CommandError."""
    found: kafka.Client = json.loads(secret(cluster, user, namespace=namespace)["librdkafka.json"])
    return found
