"""Where what Secrets hide can be read though it must not be there.

Passwords, tokens and private keys of Secrets are looked for in resources, ConfigMaps, Events and
pods (and so in their arguments and variables), in all logs, and in what the processes in the pods
were started with.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from e2e.cluster import OURS, Cluster
from e2e.commands import CommandError
from e2e.wait import wait_for

KINDS: Final = (
    f"{OURS},configmaps,services,statefulsets,deployments,pods,events,networkpolicies,ingresses"
)
# Shorter texts than this are no secrets, but names and settings.
SHORTEST: Final = 16
HIDDEN: Final = ("password", "token", "admin-token", "user.password")
PRIVATE_KEY: Final = re.compile(r"BEGIN [A-Z ]*PRIVATE KEY-----(.*?)-----END", re.DOTALL)
# What a pod's processes were started with; those that end meanwhile are left out.
STARTED: Final = "cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null; true"


def secret_values(cluster: Cluster, *namespaces: str) -> set[str]:
    """What the Secrets of namespaces have to hide."""
    found: set[str] = set()
    for namespace in namespaces:
        for each in cluster.list("secret", namespace=namespace):
            for key, text in (each.get("data") or {}).items():
                found.update(hidden(key, b64decode(text)))
    return found


def hidden(key: str, content: bytes) -> Iterator[str]:
    """What of a Secret nobody else may know: passwords, tokens, lines of private keys."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return
    for inner in PRIVATE_KEY.findall(text):
        yield from (line for line in inner.split() if len(line) >= SHORTEST)
    if key in HIDDEN and len(text) >= SHORTEST:
        yield text


def leaks(cluster: Cluster, values: Collection[str], namespaces: Sequence[str]) -> list[str]:
    """Each place where one of the values, or its base64, is found, with the value's beginning."""
    sought = {form for value in values for form in (value, b64encode(value.encode()).decode())}
    return [
        f"{place}: {value[:4]}…"
        for namespace in namespaces
        for place, text in _texts(cluster, namespace)
        for value in sought
        if value in text
    ]


def _texts(cluster: Cluster, namespace: str) -> Iterator[tuple[str, str]]:
    of = ("-n", namespace)
    yield f"objects of {namespace}", _read(cluster, "get", KINDS, *of, "-o", "json")
    for pod in cluster.list("pod", namespace=namespace):
        name, found = pod["metadata"]["name"], pod["status"]
        statuses = (*found.get("initContainerStatuses", ()), *found.get("containerStatuses", ()))
        for status in statuses:
            container = (*of, name, "-c", status["name"])
            if "waiting" not in status["state"]:
                yield f"log of {name}", _read(cluster, "logs", *container)
            if status["restartCount"]:
                yield f"former log of {name}", _previous(cluster, *container)
            if "running" in status["state"]:
                started = _read(cluster, "exec", *container, "--", "sh", "-c", STARTED)
                yield f"processes of {name}", started


def _read(cluster: Cluster, *arguments: str) -> str:
    """What kubectl says, tried again where a kubelet does not answer."""
    return wait_for(
        f"kubectl {' '.join(arguments[:5])}",
        lambda: cluster.kubectl_bytes(*arguments).decode(errors="replace"),
        until=lambda _: True,
    )


def _previous(cluster: Cluster, *of: str) -> str:
    """The log of a container's former process, which the kubelet may have removed."""
    try:
        return cluster.kubectl("logs", "--previous", *of)
    except CommandError:
        return ""
