"""The topics of a cluster: the operator's own reconciler, on a broker of this machine.

Imported late: it brings the Kafka client and, with the reconciler, more than a start can wait for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from barnabas_operator.api.reading import read_topic
from barnabas_operator.brokers import BrokersError
from barnabas_operator.local.admin import connect, settled_by, steps_said
from barnabas_operator.local.documents import Manifest
from barnabas_operator.local.state import LocalError, Record, StateDirectory
from barnabas_operator.plan.ledger import Ledger, Present
from barnabas_operator.reconcile.topic_deletion import delete_orphans
from barnabas_operator.reconcile.topics import Outcome, Result, reconcile_topics

TOPIC: Final = "KafkaTopic"

Say = Callable[[str], None]


def reconcile(
    manifest: Manifest, record: Record, state: StateDirectory, *, say: Say, deadline: float
) -> Mapping[str, Outcome]:
    """Make the topics as the file says; returns how each resource fares, by its name.

    Raises LocalError if the broker does not answer.
    """
    brokers = connect(manifest.cluster, record, state)
    documents = [each for each in record.documents if each["kind"] == TOPIC]
    # With the statuses of the last time: they show which topics were created or adopted.
    topics = [read_topic(each) for each in documents]

    def remember(ledger: Ledger) -> None:
        record.ledger = ledger
        state.save(record)

    def attempt() -> Result:
        result = reconcile_topics(topics, brokers, ledger=record.ledger, remember=remember)
        remember(result.ledger)
        return result

    try:
        with steps_said(say):
            result = settled_by(deadline, attempt, lambda it: _settled(it.outcomes))
            # The whole file was parsed, and what it names is all there is.
            present = Present.of(documents, manifest.cluster.meta.name)
            if not result.failed:
                remaining = delete_orphans(record.ledger, present, brokers, exists=lambda _: False)
                remember(remaining)
    except BrokersError as error:
        raise LocalError(f"the broker does not answer: {error}") from error
    return result.outcomes


def _settled(outcomes: Mapping[str, Outcome]) -> bool:
    return all(outcome.verdict.settled for outcome in outcomes.values())
