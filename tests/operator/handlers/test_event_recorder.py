"""Events on resources: the scenario that `kubectl describe` tells, without flooding."""

from __future__ import annotations

from barnabas_operator.handlers.event_recorder import (
    BURST,
    LONGEST_NOTE,
    EventLimits,
    EventRecorder,
)
from barnabas_operator.handlers.rate_limits import RateLimit
from barnabas_operator.kube import Document, Kind, KubeError
from barnabas_operator.reconcile.context import Regarding

CLUSTER = Regarding(
    api_version="barnabas.io/v1alpha1", kind="KafkaCluster", namespace="ns", name="c", uid="u"
)


class Written:
    """Events that were written, or what each of them gets."""

    def __init__(self, error: KubeError | None = None) -> None:
        self.bodies: list[Document] = []
        self.error = error

    def create(self, kind: Kind, namespace: str, body: Document) -> None:
        """See Events."""
        assert (kind.api_version, namespace) == ("events.k8s.io/v1", "ns")
        if self.error is not None:
            raise self.error
        self.bodies.append(body)


def _recorder(written: Written) -> EventRecorder:
    still = EventLimits(
        RateLimit(1.0, clock=lambda: 0.0), RateLimit(1.0, burst=BURST, clock=lambda: 0.0)
    )
    return EventRecorder(written, still, "pod-1")


def test_an_event_has_what_the_api_server_asks_for() -> None:
    """Action, reason, note, type and who reports are required."""
    written = Written()
    recorder = _recorder(written)
    recorder.record(CLUSTER, action="DeletePod", reason="DeletePod", note="x" * 2000, warning=True)
    (body,) = written.bodies
    assert body["regarding"]["uid"] == "u"
    assert body["metadata"]["namespace"] == "ns"
    assert (body["type"], len(body["note"])) == ("Warning", LONGEST_NOTE)
    for name in ("eventTime", "reportingController", "reportingInstance", "action", "reason"):
        assert body[name]


def test_repetitions_and_floods_are_not_written() -> None:
    """A pass every two seconds would otherwise write its step every two seconds.

    The deletion of a pod is recorded however many objects were applied before.
    """
    written = Written()
    recorder = _recorder(written)
    for _ in range(3):
        recorder.record(CLUSTER, action="Apply", reason="Apply", note="the same")
    assert len(written.bodies) == 1
    for number in range(100):
        recorder.record(CLUSTER, action="Apply", reason="Apply", note=f"another {number}")
    assert len(written.bodies) == BURST
    recorder.record(CLUSTER, action="DeletePod", reason="DeletePod", note="delete Pod a-broker-0")
    assert written.bodies[-1]["note"] == "delete Pod a-broker-0"


def test_a_lost_event_stops_nothing() -> None:
    """As where the chart's older role does not allow events."""
    recorder = _recorder(Written(KubeError(403, "events is forbidden")))
    recorder.record(CLUSTER, action="Apply", reason="Apply", note="a note")
