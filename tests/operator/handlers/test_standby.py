"""Events of an installation that stands by."""

from __future__ import annotations

from barnabas_operator.handlers.standby import StandbyEvents
from barnabas_operator.kube import Document, Kind
from barnabas_operator.reconcile.reconciler import Key

OURS, THEIRS, ABSENT = Key("ours", "a"), Key("theirs", "b"), Key("theirs", "absent")
HOLDER = "first/barnabas-operator/pod"


class Events:
    """What was created, by namespace."""

    def __init__(self) -> None:
        self.created: list[tuple[str, Document]] = []

    def create(self, kind: Kind, namespace: str, body: Document) -> None:
        """See Events."""
        assert kind.kind == "Event"
        self.created.append((namespace, body))


def test_a_cluster_of_another_installation_has_an_event() -> None:
    """Once; those that do not exist, and those on which this one acts, have none."""
    events = Events()
    standby = StandbyEvents(events, "second/barnabas-operator", "pod")
    for _ in range(2):
        standby.report(
            [THEIRS, ABSENT, OURS],
            lambda key: "" if key == ABSENT else f"uid-{key.cluster}",
            lambda namespace: HOLDER if namespace == "theirs" else "",
        )
    ((namespace, body),) = events.created
    assert (namespace, body["reason"], body["type"]) == ("theirs", "Standby", "Normal")
    assert (body["regarding"]["kind"], body["regarding"]["name"]) == ("KafkaCluster", "b")
    assert body["regarding"]["uid"] == "uid-b"
    assert body["note"] == (
        f"operator second/barnabas-operator stands by: {HOLDER} acts on this cluster"
    )
