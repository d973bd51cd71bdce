"""Events on KafkaClusters on which another installation of the operator acts.

Who installs a second one sees on the resources why it does nothing. Processes of one installation
stand by for one another without a word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from barnabas_operator.handlers.event_recorder import EventLimits, EventRecorder, Events
from barnabas_operator.handlers.rate_limits import RateLimit
from barnabas_operator.kube import CLUSTERS
from barnabas_operator.reconcile.context import Regarding
from barnabas_operator.reconcile.reconciler import Key

# The API server keeps events for an hour.
REPEAT_S: Final = 3600.0


class StandbyEvents:
    """Writes the events. The only writes of an operator that does not lead."""

    def __init__(self, events: Events, release: str, instance: str) -> None:
        """`release` is how people find the installation that stands by."""
        self._release = release
        self._recorder = EventRecorder(events, EventLimits(RateLimit(REPEAT_S)), instance)

    def report(
        self,
        keys: Iterable[Key],
        uid_of: Callable[[Key], str],
        holder_of: Callable[[str], str],
    ) -> None:
        """To clusters that exist, who acts in their namespaces if that is another installation."""
        for key in sorted(keys):
            if (holder := holder_of(key.namespace)) and (uid := uid_of(key)):
                self._recorder.record(
                    Regarding(
                        api_version=CLUSTERS.api_version,
                        kind=CLUSTERS.kind,
                        namespace=key.namespace,
                        name=key.cluster,
                        uid=uid,
                    ),
                    action="Elect",
                    reason="Standby",
                    note=f"operator {self._release} stands by: {holder} acts on this cluster",
                )
