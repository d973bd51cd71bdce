"""Defaults by profile: what a spec does not say, filled in before it is read.

The API server fills in no default of these fields (`NoDefault`), or one would look like what
a user wrote.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

PROFILE: Final = "profile"
PRODUCTION: Final = "production"
# A partition has three copies, and a write counts with two: one broker may be away.
PRODUCTION_CONFIG: Final = {
    "auto.create.topics.enable": "false",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
}
PRODUCTION_DEFAULTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "zookeeper": {"replicas": 3, "resources": {"memory": "1Gi", "cpu": "500m"}},
    "brokers": {"replicas": 3, "resources": {"memory": "2Gi", "cpu": "1"}},
    "config": PRODUCTION_CONFIG,
}


def with_profile(spec: Any) -> Any:
    """The spec of a KafkaCluster with the defaults of its profile; anything else as it is."""
    if not isinstance(spec, Mapping) or spec.get(PROFILE) != PRODUCTION:
        return spec
    filled = dict(spec)
    for part, defaults in PRODUCTION_DEFAULTS.items():
        given = spec.get(part)
        if given is None:
            given = {}
        if isinstance(given, Mapping):
            said = {name: value for name, value in given.items() if value is not None}
            filled[part] = {**defaults, **said}
    return filled
