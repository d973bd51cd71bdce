"""`barnabas local up`: bring what runs on this machine to what a file says.

The second time it finds the broker running and does only what is missing. What is decided about
topics is the operator's reconciler; here is only the order: the broker, topics, then pipelines.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from barnabas_operator.api.conditions import Verdict
from barnabas_operator.local import broker, pipelines
from barnabas_operator.local.documents import Manifest, carry_statuses
from barnabas_operator.local.state import LocalError, Record, StateDirectory

Say = Callable[[str], None]

# Below the usual limit for a path, and no separator of server.properties.
_UNUSABLE: Final = ",\n"


def up(
    manifest: Manifest,
    file: Path,
    state: StateDirectory,
    *,
    say: Say,
    timeout_s: float,
    replace: bool = False,
) -> Any:
    """Bring everything up; returns the view of it (`view.View`). Raises LocalError.

    What concerns one topic or pipeline alone is in its conditions, not raised. `replace` lets the
    file take the place of another one that the same directory was used for.
    """
    if any(character in str(state.path) for character in _UNUSABLE):
        raise LocalError(f"{state.path}: a directory for data may have no comma in its name")
    deadline = time.monotonic() + timeout_s
    with state.held():
        record = _record(manifest, file, state, replace=replace)
        record.file = str(file)
        record.documents = carry_statuses(manifest.documents, record.documents)
        # Before anything is started: what is not known cannot be stopped.
        state.save(record)
        starting = broker.ensure(manifest.cluster, record, state, say=say, timeout_s=timeout_s)
        # Half a second of imports, while the broker starts.
        from barnabas_operator.local import topics, view

        if starting is not None:
            for told in broker.settle(starting, manifest.cluster, record, state, deadline):
                say(told)
            say(f"the broker was ready after {record.startup_s * 1000:.0f} ms")
        outcomes = topics.reconcile(manifest, record, state, say=say, deadline=deadline)
        _run_pipelines(manifest, record, state, say=say, deadline=deadline)
        verdicts: Mapping[str, Verdict] = {
            name: outcome.verdict for name, outcome in outcomes.items()
        }
        seen = view.look(record, state, verdicts)
        view.with_statuses(record, seen)
        state.save(record)
        return seen


def _record(manifest: Manifest, file: Path, state: StateDirectory, *, replace: bool) -> Record:
    """The record, if this file may go on with it."""
    name = manifest.cluster.meta.name
    record = state.load()
    if record is None:
        return Record(cluster=name, file=str(file))
    if record.cluster != name:
        text = f"{state.path} belongs to KafkaCluster {record.cluster}, not to {name}"
        raise LocalError(f"{text}; name another directory with --dir")
    before = Path(record.file)
    if before != file and before.exists() and not replace:
        text = f"KafkaCluster {name} in {state.path} is the one of {before}"
        raise LocalError(
            f"{text}; for a second cluster of that name give --dir,"
            " and --replace if this file takes the place of that one"
        )
    return record


def _run_pipelines(
    manifest: Manifest, record: Record, state: StateDirectory, *, say: Say, deadline: float
) -> None:
    documents = {
        document["metadata"]["name"]: document
        for document in manifest.documents
        if document["kind"] == "KafkaPipeline"
    }
    pipelines.ensure(
        [(each, documents[each.meta.name]) for each in manifest.pipelines],
        state,
        bootstrap=broker.bootstrap_servers(manifest.cluster, record),
        say=say,
        timeout_s=max(deadline - time.monotonic(), 1.0),
    )
    pipelines.await_settled(list(documents), state, deadline)
