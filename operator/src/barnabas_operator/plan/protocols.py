"""A staged upgrade, as Kafka documents it: binaries first, `inter.broker.protocol.version` last.

Brokers of both versions serve side by side during a roll, so that the new ones speak the protocol
of the old ones until the last has been replaced. A second roll has them speak their own. A version
whose protocol is older than the one in use cannot read what brokers may have written: it is
refused. `spec.config` may name the protocol itself; then the user decides about both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from barnabas_kafka.settings.metadata_version import MetadataVersion
from barnabas_operator.names import IMAGE, PROTOCOL
from barnabas_operator.resources.objects import hashed

SETTING: Final = "inter.broker.protocol.version"


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """What brokers speak among themselves.

    `current` is what they speak now, or from the change on that is about to be applied; empty where
    it is not known. `held` is the setting that keeps new brokers at it. `target` is what follows
    once all run the new image. `refusal` says why the image is not changed.
    """

    current: str = ""
    held: str = ""
    target: str = ""
    refusal: str = ""


def protocol_of(image: str, versions: Mapping[str, Mapping[str, str]]) -> str:
    """What brokers of an image speak by themselves; empty if the operator does not know it."""
    found = (each.get("protocol", "") for each in versions.values() if each.get("broker") == image)
    return next((protocol for protocol in found if protocol), "")


def plan_protocol(
    image: str,
    config: Mapping[str, str],
    *,
    stateful_set: Mapping[str, Any] | None,
    config_map: Mapping[str, Any] | None,
    is_complete: bool,
    versions: Mapping[str, Mapping[str, str]],
) -> Protocol:
    """The protocol of the brokers' next template, for an image that the resource asks for.

    `is_complete`: every broker has the current template and serves.
    """
    target = protocol_of(image, versions)
    if SETTING in config:
        return Protocol(current=config[SETTING], target=target)
    running = _annotation(stateful_set, IMAGE)
    current = _annotation(config_map, PROTOCOL) or protocol_of(running, versions)
    order = _compare(current, target)
    if order > 0 and stateful_set is not None:
        text = f"its brokers speak {target}, and those of this cluster speak {current} already"
        return Protocol(current=current, refusal=text)
    # On the way back from a first stage, pods of both images may start until all have the old one.
    staged = order < 0 or _is_held(config_map)
    # What follows may not be known any more, as to an operator without that version: brokers would
    # use an unknown version, and nothing would refuse the way back.
    complete = is_complete and running == image and target != ""
    if stateful_set is None or not staged or complete:
        return Protocol(current=target or current, target=target)
    return Protocol(current=current, held=current, target=target)


def with_protocol(body: Mapping[str, Any], protocol: Protocol) -> dict[str, Any]:
    """The brokers' ConfigMap with a note of what they speak, where that is known."""
    if not protocol.current:
        return dict(body)
    meta = body["metadata"]
    notes = {**meta.get("annotations", {}), PROTOCOL: protocol.current}
    return hashed({**body, "metadata": {**meta, "annotations": notes}})


def _annotation(body: Mapping[str, Any] | None, name: str) -> str:
    meta = body["metadata"] if body is not None else {}
    return str((meta.get("annotations") or {}).get(name, ""))


def _is_held(config_map: Mapping[str, Any] | None) -> bool:
    text = (config_map or {}).get("data", {}).get("server.properties", "")
    return any(line.startswith(f"{SETTING}=") for line in text.splitlines())


def _compare(current: str, target: str) -> int:
    """Less than 0 for an upgrade; 0 also where one of both is not known."""
    try:
        before, after = MetadataVersion.parse(current), MetadataVersion.parse(target)
    except ValueError:
        return 0
    return (before > after) - (before < after)
