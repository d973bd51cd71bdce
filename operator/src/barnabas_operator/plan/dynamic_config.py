"""Settings that all brokers take while they run: which changes of spec.config need no roll.

Kafka calls a setting cluster-wide dynamic if all brokers take a value for it at once (KIP-226).
The cluster keeps that value, which beats the one in server.properties; a broker that starts alone
has the latter. So the pod template keeps its hash while nothing changes but such settings, and a
check has the brokers set them. Listeners' settings and secrets are never among them.

* A setting that is added or changed needs no roll. What another client sets for all brokers instead
  is reverted; settings that the spec does not name, and values for one broker, are left alone.
* One that is removed needs a roll, after which its dynamic value is deleted. Deleted before, it
  would leave the value of the file that each broker has read at its start, which may be any earlier
  one: a retention of years ago would delete records. Kafka's default, set in its place, would stay
  for ever, and hide what other settings decide, such as log.retention.hours.
* A setting is recorded on the StatefulSet before it is set. What is recorded and named no longer is
  deleted, after a restart of the operator too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from barnabas_kafka.settings.broker import find_key
from barnabas_kafka.settings.definitions import SettingError
from barnabas_kafka.settings.dynamic import POOLS, is_cluster_wide
from barnabas_kafka.settings.properties import parse_properties
from barnabas_operator.names import CONFIG_HASH, DYNAMIC_CONFIG
from barnabas_operator.plan.findings import Finding
from barnabas_operator.plan.rolling import is_complete
from barnabas_operator.plan.snapshot import Draft, Snapshot
from barnabas_operator.plan.topics import AlterConfig
from barnabas_operator.resources.brokers import broker_config
from barnabas_operator.resources.objects import Document, digest, hashed

Object = Mapping[str, Any]
Values = Mapping[str, str]

FILE: Final = "server.properties"
POOL_NAMES: Final = frozenset(key.name for key in POOLS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigRecord:
    """What a pod template stands for, as an annotation of its StatefulSet."""

    # The hash of the settings that need a restart.
    static: str
    # The dynamic settings that pods of this template may have read from their file.
    files: frozenset[str]
    # Those that the operator has set for all brokers, or is about to set.
    managed: frozenset[str]

    def __str__(self) -> str:
        document = {
            "static": self.static,
            "files": sorted(self.files),
            "managed": sorted(self.managed),
        }
        return json.dumps(document, separators=(",", ":"))


def record_of(stateful_set: Object | None) -> ConfigRecord | None:
    """The record of a StatefulSet; None where there is none that can be read."""
    notes = (stateful_set["metadata"].get("annotations") or {}) if stateful_set else {}
    try:
        document = json.loads(notes[DYNAMIC_CONFIG])
        return ConfigRecord(
            static=str(document["static"]),
            files=frozenset(map(str, document["files"])),
            managed=frozenset(map(str, document["managed"])),
        )
    except (KeyError, TypeError, ValueError):
        return None


def manages_config(stateful_set: Object | None) -> bool:
    """Whether the operator has set, or may set, dynamic settings of all brokers."""
    record = record_of(stateful_set)
    return record is not None and bool(record.managed)


def split_config(text: str) -> tuple[str, dict[str, str]]:
    """The hash of the settings of a server.properties that need a restart, and the others."""
    values = parse_properties(text.encode("latin-1", "replace"), origin=FILE)
    dynamic = {name: value for name, value in values.items() if is_cluster_wide(name)}
    static = {name: value for name, value in values.items() if name not in dynamic}
    return digest(static), dynamic


def next_record(
    text: str,
    found: Object | None,
    config_map: Object | None,
    present: Values | None,
) -> tuple[ConfigRecord, str]:
    """The record for a server.properties, and the hash for the pod template.

    `found` and `config_map` are the brokers' present objects; those of an earlier operator have no
    record, and the hash of its template was that of the whole file. `present` are the dynamic
    settings of all brokers, None while they are not known or pods are to be replaced.
    """
    static, dynamic = split_config(text)
    names = frozenset(dynamic)
    template = found["spec"]["template"]["metadata"] if found is not None else {}
    in_use = str((template.get("annotations") or {}).get(CONFIG_HASH, ""))
    before = record_of(found) or _former_record(in_use, config_map)
    if before is None:
        return ConfigRecord(static=static, files=names, managed=names), digest(text)
    gone = frozenset[str]() if present is None else before.managed - before.files - present.keys()
    managed = names | (before.managed - gone)
    if before.static == static and before.files <= names:
        return ConfigRecord(static=static, files=before.files | names, managed=managed), in_use
    rendered = digest(text)
    # Pods that started before a setting was removed may have it, whatever the template had.
    changed = rendered if rendered != in_use else digest(rendered + in_use)
    return ConfigRecord(static=static, files=names, managed=managed), changed


def _former_record(in_use: str, config_map: Object | None) -> ConfigRecord | None:
    text = ((config_map or {}).get("data") or {}).get(FILE, "")
    if not in_use or digest(text) != in_use:
        return None
    try:
        static, dynamic = split_config(text)
    except SettingError:
        return None
    return ConfigRecord(static=static, files=frozenset(dynamic), managed=frozenset())


def with_config_record(body: Document, snapshot: Snapshot) -> Document:
    """The brokers' StatefulSet with its record, and with another hash only if a roll is needed."""
    objects, name = snapshot.observed.objects, snapshot.names.broker
    present = snapshot.observed.dynamic_config
    record, config_hash = next_record(
        broker_config(snapshot.cluster),
        objects.get(("StatefulSet", name)),
        objects.get(("ConfigMap", name)),
        present if isinstance(present, Mapping) and _is_rolled(snapshot) else None,
    )
    meta, spec = body["metadata"], body["spec"]
    template = spec["template"]
    pod_notes = {**template["metadata"]["annotations"], CONFIG_HASH: config_hash}
    template = {**template, "metadata": {**template["metadata"], "annotations": pod_notes}}
    notes = {**meta.get("annotations", {}), DYNAMIC_CONFIG: str(record)}
    return hashed(
        {
            **body,
            "metadata": {**meta, "annotations": notes},
            "spec": {**spec, "template": template},
        }
    )


def check_dynamic_config(snapshot: Snapshot, draft: Draft) -> None:
    """The recorded dynamic settings as the spec has them; those it has no longer deleted."""
    observed, name = snapshot.observed, snapshot.names.broker
    record = record_of(observed.objects.get(("StatefulSet", name)))
    # What an earlier operator has rendered stays as it is, and silent brokers are named elsewhere.
    if record is None or not record.managed or draft.held or observed.brokers is None:
        return
    present = observed.dynamic_config
    if isinstance(present, Finding):
        draft.findings.append(present)
    if not isinstance(present, Mapping):
        return
    _, wanted = split_config(broker_config(snapshot.cluster))
    is_rolled = _is_rolled(snapshot) and not draft.changes_templates(name)
    draft.config = plan_change(record, wanted, present, is_rolled=is_rolled)


def _is_rolled(snapshot: Snapshot) -> bool:
    """Whether every broker runs the present template."""
    seen = snapshot.set_of("broker")
    return seen is not None and is_complete(snapshot.observed.pods.get("broker", ()), seen)


def plan_change(
    record: ConfigRecord, wanted: Values, present: Values, *, is_rolled: bool
) -> AlterConfig | None:
    """What to set and delete for all brokers; None if nothing.

    `is_rolled`: every broker runs the present template.
    """
    put = {
        name: _next_value(name, present.get(name), value)
        for name, value in sorted(wanted.items())
        if name in record.managed and not _is_same(name, present.get(name), value)
    }
    # While a pod may have the setting from its file, that value must not come into effect.
    unnamed = record.managed - record.files - wanted.keys() if is_rolled else frozenset[str]()
    drop = unnamed & present.keys()
    return AlterConfig(put=put, drop=drop) if put or drop else None


def _is_same(name: str, present: str | None, value: str) -> bool:
    """Whether two texts are one value, which brokers may write in another way."""
    key = find_key(name)
    if present is None or key is None:
        return False
    try:
        return bool(key.parse(present) == key.parse(value))
    except SettingError:  # A tool that writes past the brokers may write anything.
        return False


def _next_value(name: str, present: str | None, value: str) -> str:
    """The value to set: of a pool of threads at most twice or half the present one in a step."""
    try:
        before, after = int(present or ""), int(value)
    except ValueError:
        return value
    if name not in POOL_NAMES or before < 1:
        return value
    return str(min(max(after, before // 2), before * 2))
