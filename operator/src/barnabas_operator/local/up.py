"""`barnabas local up`: bring what runs on this machine to what a file says.

The second time it finds the broker running and does only what is missing. What is decided about
topics is the operator's reconciler; here is only the order: what keeps the coordination
data, brokers, topics, users, then pipelines.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from barnabas_operator.api.clusters import Security
from barnabas_operator.api.conditions import Verdict
from barnabas_operator.local import broker, coordination, pipelines, processes
from barnabas_operator.local import repair as repairing
from barnabas_operator.local.broker import LocalBroker, Starting
from barnabas_operator.local.documents import Manifest, carry_statuses
from barnabas_operator.local.pipeline_rules import admin_among, user_of
from barnabas_operator.local.pipelines import Connection, Pipeline
from barnabas_operator.local.state import (
    BrokerRecord,
    DamagedError,
    LocalError,
    Record,
    StateDirectory,
)

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
    repair: bool = False,
) -> Any:
    """Bring everything up; returns the view of it (`view.View`). Raises LocalError.

    What concerns one topic or pipeline alone is in its conditions, not raised. `replace` lets the
    file take the place of another one that the same directory was used for; `repair` makes a record
    that cannot be read again.
    """
    if any(character in str(state.path) for character in _UNUSABLE):
        raise LocalError(f"{state.path}: a directory for data may have no comma in its name")
    deadline = time.monotonic() + timeout_s
    with state.held():
        if repair:
            _repair(manifest, file, state, say=say)
        record = _record(manifest, file, state, replace=replace)
        record.file = str(file)
        record.documents = carry_statuses(manifest.documents, record.documents)
        _count_brokers(manifest, record, state)
        _record_security(manifest, record, state)
        keeper = coordination.choose(manifest.cluster, record, state)
        # Before anything is started: what is not known cannot be stopped.
        state.save(record)
        authority = _certificates(manifest, state, repair=repair)
        coordination.ensure(keeper, record, state, say=say, deadline=deadline)
        state.save(record)
        connect = coordination.connect(record)
        brokers = [
            LocalBroker(broker_id, manifest.cluster, record, state, connect, authority)
            for broker_id in record.brokers
        ]
        with _starting(brokers, say=say, timeout_s=timeout_s) as starting:
            # Half a second of imports, while brokers start.
            from barnabas_operator.local import topics, view

            for each, process in starting:
                for line in each.settle(process, deadline):
                    say(line)
        # Those that ran are restarted one by one: the others serve meanwhile.
        for each in brokers:
            restarted = each.ensure(say=say, timeout_s=timeout_s)
            if restarted is not None:
                for line in each.settle(restarted, deadline):
                    say(line)
        outcomes = topics.reconcile(manifest, record, state, say=say, deadline=deadline)
        users = _users(manifest, record, state, say=say, deadline=deadline)
        _write_client(manifest, record, state)
        _run_pipelines(manifest, record, state, say=say, deadline=deadline)
        verdicts: Mapping[str, Verdict] = {
            name: outcome.verdict for name, outcome in outcomes.items()
        }
        seen = view.look(record, state, verdicts, users)
        view.with_statuses(record, seen)
        state.save(record)
        return seen


def _certificates(manifest: Manifest, state: StateDirectory, *, repair: bool) -> str:
    """Have the certificates that brokers need; returns those to trust, empty where none do."""
    if not manifest.cluster.body.spec.needs_certificates:
        return ""
    # Late: a cluster without TLS starts without what makes certificates.
    from barnabas_operator.local.pki import Pki

    pki = Pki(state.pki)
    pki.ensure(manifest.cluster, repair=repair)
    return pki.trusted


def _users(
    manifest: Manifest, record: Record, state: StateDirectory, *, say: Say, deadline: float
) -> Mapping[str, Any]:
    """Have the users as the file says; returns how they fare (`users.Outcome`)."""
    if not (manifest.users or record.users or state.users()):
        return {}
    # Late, for the same reason.
    from barnabas_operator.local import users

    return users.reconcile(manifest, record, state, say=say, deadline=deadline)


def _write_client(manifest: Manifest, record: Record, state: StateDirectory) -> None:
    """Have what commands need that name the cluster with `--local`."""
    spec, admin = manifest.cluster.body.spec, admin_among(manifest.users)
    if spec.secured and admin is not None:
        # A link: a password is in one place only.
        processes.link_atomically(state.client, Path("users", admin, state.client.name))
        return
    plain = [each.name for each in spec.listeners if each.is_plain]
    reached = {each.name: each for each in broker.listeners(manifest.cluster, record)}
    servers = next((reached[name].bootstrap_servers for name in plain if name in reached), None)
    if servers is None:
        state.client.unlink(missing_ok=True)
    else:
        processes.write_atomically(state.client, f"bootstrap.servers={servers}\n")


def _repair(manifest: Manifest, file: Path, state: StateDirectory, *, say: Say) -> None:
    """Rebuild a record that cannot be read."""
    try:
        state.load()
    except DamagedError:
        aside = state.set_aside()
        record = repairing.remade(state, manifest.cluster, file)
        record.documents = list(manifest.documents)
        state.save(record)
        say(f"the record is written again from the files beside it; the damaged one is {aside}")
    else:
        say("the record is not damaged: there is nothing to repair")


def _record(manifest: Manifest, file: Path, state: StateDirectory, *, replace: bool) -> Record:
    """The record, if this file may go on with it."""
    name = manifest.cluster.meta.name
    record = state.load()
    if record is None:
        # If it was removed, ports and brokers are in the files beside it.
        return repairing.remade(state, manifest.cluster, file)
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


def _count_brokers(manifest: Manifest, record: Record, state: StateDirectory) -> None:
    """Remember as many brokers as are wanted. Raises LocalError where that cannot be."""
    wanted, there = manifest.cluster.body.spec.brokers.replicas, len(record.brokers)
    if wanted < there:
        text = f"spec.brokers.replicas is {wanted}, and there are {there} brokers"
        raise LocalError(f"{text} in {state.path}: here brokers can be added, not taken away")
    for broker_id in range(there, wanted):
        record.brokers[broker_id] = BrokerRecord()


def _record_security(manifest: Manifest, record: Record, state: StateDirectory) -> None:
    """Remember what the cluster is created as. Raises LocalError where it was created otherwise."""
    secured = manifest.cluster.body.spec.secured
    asked = Security.SECURED if secured else Security.INSECURE
    if record.security not in (None, asked):
        text = f"the cluster in {state.path} was created {record.security.value.lower()}"
        raise LocalError(f"{text}, and stays so; name another directory with --dir")
    record.security = asked


@contextmanager
def _starting(
    brokers: Sequence[LocalBroker], *, say: Say, timeout_s: float
) -> Iterator[list[tuple[LocalBroker, Starting]]]:
    """Start all that do not run, side by side; if one fails none is left half started."""
    started: list[tuple[LocalBroker, Starting]] = []
    try:
        for each in brokers:
            if not each.running:
                process = each.ensure(say=say, timeout_s=timeout_s)
                if process is not None:
                    started.append((each, process))
        yield started
    except BaseException:
        for _, process in started:
            process.abandon()
        raise


def _run_pipelines(
    manifest: Manifest, record: Record, state: StateDirectory, *, say: Say, deadline: float
) -> None:
    documents = {
        document["metadata"]["name"]: document
        for document in manifest.documents
        if document["kind"] == "KafkaPipeline"
    }
    pipelines.ensure(
        [
            (each, documents[each.meta.name], _connection(each, manifest, record, state))
            for each in manifest.pipelines
        ],
        state,
        say=say,
        timeout_s=max(deadline - time.monotonic(), 1.0),
    )
    pipelines.await_settled(list(documents), state, deadline)


def _connection(
    pipeline: Pipeline, manifest: Manifest, record: Record, state: StateDirectory
) -> Connection:
    """How a pipeline connects: as its user over the listener of that one, or without one."""
    user = user_of(pipeline, manifest.cluster, manifest.users)
    if user is None:
        return Connection(broker.bootstrap_servers(manifest.cluster, record))
    # Late: a file without users needs none of it.
    from barnabas_operator.local.user_directory import UserDirectory

    directory = UserDirectory(state.user(user))
    return Connection(directory.bootstrap_servers(), directory.path)
