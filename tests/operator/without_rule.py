"""Each rule by which the operator does no harm, switched off. A plugin of pytest.

`-p tests.operator.without_rule --without-rule NAME` runs tests on an operator without the rule;
`make mutate-operator` does so for every rule: the model test or a test of the rule must fail.
rules.toml has what each rule says and the tests that show it.
"""

from __future__ import annotations

import functools
import inspect
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from barnabas_broker.cli import pod as rack_of_pod
from barnabas_broker.server.metrics.admin import Admin
from barnabas_broker.server.peers import controlled_shutdown
from barnabas_operator import answers
from barnabas_operator import brokers as kafka
from barnabas_operator.api.clusters import ClusterStatus
from barnabas_operator.api.reading import read_topic
from barnabas_operator.handlers import resource_index
from barnabas_operator.handlers.guard import Deadline
from barnabas_operator.handlers.health import Health
from barnabas_operator.handlers.operator import Passes
from barnabas_operator.handlers.resource_index import ResourceIndex
from barnabas_operator.handlers.work_queue import WorkQueue
from barnabas_operator.kube import ApiServer, KubeError
from barnabas_operator.plan import (
    claims,
    clusters,
    disruptions,
    drift,
    ledger,
    orphans,
    pipelines,
    pruning,
    roll_checks,
    rolling,
    shards,
    snapshot,
    topics,
    users,
    versions,
)
from barnabas_operator.plan.findings import Finding, Reason, Severity
from barnabas_operator.plan.protocols import Protocol
from barnabas_operator.plan.shrink import Size
from barnabas_operator.reconcile import (
    apply,
    authorities,
    cluster_secrets,
    kafka_topics,
    listener_certificates,
    ownership,
    reconciler,
    rolls,
    status,
    steady,
    topic_deletion,
    user_certificates,
    user_deletion,
    user_secrets,
)
from barnabas_operator.reconcile import certificates as reconcile_certificates
from barnabas_operator.reconcile import clusters as reconcile_clusters
from barnabas_operator.reconcile import ledger as ledger_store
from barnabas_operator.reconcile import orphans as reconcile_orphans
from barnabas_operator.reconcile import topics as reconcile_topics
from barnabas_operator.reconcile import users as reconcile_users
from barnabas_operator.reconcile.context import Context, Regarding
from barnabas_operator.resources import brokers as broker_objects
from barnabas_operator.resources import pods, services
from tests.operator.changes_of_rules import (
    Off,
    all_figures_due,
    always,
    before_it_was_ready,
    delete_everything,
    delete_instead_of_evict,
    every_pod_counts,
    everything_recorded,
    everywhere,
    generation_of_before,
    issued_all_the_same,
    never_probing,
    never_slow,
    newest,
    newest_of_pipelines,
    no_rack_wait,
    one_at_a_time,
    probe_ready,
    reachable_for_ever,
    reraise,
    returns,
    shrinks,
    silent_outcome,
    strict_lines,
    taken_for_a_change,
    unchecked_identity,
    unready_is_broken,
    user_waits_too,
    waits_for_ever,
    with_check,
    with_severity,
    without,
    without_deadline,
    without_guard,
    without_labels,
    without_leadership,
)

# What Python runs first, in a program that a test starts.
AT_START: Final = """
import pytest
from tests.operator.without_rule import switch_off
switch_off({name!r}, pytest.MonkeyPatch())
"""

WITHOUT: Final[Mapping[str, tuple[Off, ...]]] = {
    "what exists protects its topic": (Off(kafka_topics, "_delete_orphans", delete_everything),),
    "nothing is deleted beside an error": (
        Off(reconciler, "DeletionGuard", without_guard("unparsed")),
    ),
    "brokers that fail delete nothing": (
        Off(
            reconcile_topics,
            "Result",
            lambda original: lambda **given: original(**{**given, "failed": False}),
        ),
    ),
    "unknown fields are ignored": (Off(reconciler, "READ_TOPIC", always(read_topic)),),
    "another definition deletes nothing": (
        Off(orphans.PresentResources, "is_of_another", returns(value=False)),
    ),
    "topic ids are compared": (Off(topic_deletion, "_objection", returns("")),),
    "Retain is the last word": (
        Off(kafka_topics, "without_retained", always(lambda entries, _: entries)),
    ),
    "what exists protects its user": (
        Off(user_deletion, "orphans", always(lambda entries, _: list(entries))),
        Off(user_deletion, "exists", returns(value=False)),
    ),
    "users of others stay": (Off(users, "is_managed", returns(value=True)),),
    "passwords are remembered": (Off(reconcile_users, "credential_change", returns(None)),),
    "replicas held": (
        Off(snapshot, "brokers_to_run", always(lambda asked, *_: Size(replicas=asked))),
    ),
    "claims never shrink": everywhere("growth", (claims, clusters), shrinks),
    "a refusal gates nothing": (Off(KubeError, "refused", always(property(lambda _: False))),),
    "errors end the pass": (Off(KubeError, "refused", always(property(lambda _: True))),),
    "ensemble before brokers": (Off(roll_checks, "_ensemble_trouble", returns("")),),
    "one pod at a time": (Off(snapshot.Snapshot, "absences", returns([])),),
    "a quorum is seen": (Off(roll_checks, "_quorum_trouble", returns("")),),
    "leaders last": (
        Off(
            roll_checks,
            "next_to_replace",
            lambda original: lambda pods, seen, *_: original(pods, seen),
        ),
    ),
    "one rack at a time": (Off(rolling.Together, "_fits", returns(value=True)),),
    "the budget grants a group": (Off(apply, "_is_granted", returns(value=True)),),
    "a new topic splits its group": (Off(reconcile_clusters, "may_join", returns(value=True)),),
    "restart check": everywhere(
        "hold_back", (reconcile_clusters, rolls), always(lambda plan, *_: plan)
    ),
    "not ready is not broken": (Off(roll_checks, "broken_to_replace", unready_is_broken),),
    "broken is replaced at once": (Off(roll_checks, "broken_to_replace", returns(None)),),
    "a broken template stops the roll": (Off(roll_checks, "newly_broken", returns([])),),
    "probes follow progress": (Off(broker_objects, "_probe", probe_ready),),
    "a stuck recovery is not alive": (Off(Admin, "_stalled", returns(None)),),
    "an upgrade rolls nothing": (
        Off(snapshot, "chosen_images", newest),
        Off(pipelines, "chosen_pipeline_image", newest_of_pipelines),
    ),
    "templates are held": everywhere(
        "is_held", (clusters, pipelines, versions), returns(value=False)
    ),
    "policy and pause": (Off(roll_checks, "objection", returns("")),),
    "binaries first": (Off(snapshot, "plan_protocol", returns(Protocol())),),
    "Ready is that brokers answer": (
        Off(clusters, "CHECKS", with_check("availability", every_pod_counts)),
    ),
    "topics need brokers that answer": (
        Off(
            ClusterStatus,
            "serves_topics",
            lambda _: property(
                lambda status: status.answering and status.brokers.ready == status.brokers.replicas
            ),
        ),
    ),
    "settled topics keep their conditions": (Off(status, "_is_settled", returns(value=False)),),
    "keyed lists are compared by key": (Off(drift, "_keys", returns(())),),
    "what applying does not change is a warning": (Off(drift, "_managers", returns(())),),
    "ledgers have shards": (Off(shards, "SHARD_BYTES", always(1 << 30)),),
    "only Delete is recorded": everywhere(
        "next_ledger", (ledger, reconcile_topics), everything_recorded
    ),
    "slow clusters have slots of their own": (Off(WorkQueue, "_find_slow", never_slow),),
    "passes have deadlines": (Off(Deadline, "check", without_deadline),),
    "an index instead of lists": (Off(ResourceIndex, "named", returns(None)),),
    "requests are batched": (Off(reconcile_topics, "batches", one_at_a_time),),
    "changes are read": (Off(steady.SteadyClusters, "_is_as_before", returns(value=True)),),
    "errors stay in their namespace": (Off(reconciler, "find_keys", reraise),),
    "health before lists": (Off(Health, "stuck", before_it_was_ready),),
    "a stuck worker is seen": (Off(Health, "stuck", returns("")),),
    "only equals are adopted": (Off(topics, "differences", returns(())),),
    "internal topics are refused": (Off(topics, "INTERNAL_TOPICS", always(frozenset())),),
    "objects of others stay": (Off(ownership, "objection_to", returns("")),),
    "pods are those of the StatefulSet": (
        Off(reconcile_clusters, "_is_owned", returns(value=True)),
    ),
    "claims are not pruned by others": (Off(clusters, "relabelled", returns([])),),
    "selectors stay": (Off(snapshot.Snapshot, "selector_of", returns(None)),),
    "the budget follows replicas": everywhere(
        "max_unavailable", (disruptions, clusters), returns(1)
    ),
    "pods are evicted": (Off(apply, "_apply", delete_instead_of_evict),),
    "pods that are not ready may be evicted": (
        Off(services, "disruption_budget", without("spec", "unhealthyPodEvictionPolicy")),
    ),
    "racks by label": (Off(rolling.PodView, "of", without_labels),),
    "racks by annotation": (Off(clusters, "CHECKS", with_check("racks", None)),),
    "no broker without its rack": (Off(broker_objects, "_add_rack", no_rack_wait),),
    "what is not wanted goes": (Off(clusters, "surplus", returns([])),),
    "only what is controlled is pruned": (
        Off(pruning, "_controlled", returns(value=True)),
        Off(reconcile_clusters, "is_ours", returns(value=True)),
    ),
    "a broken entry ends no pass": everywhere("parse", (shards, ledger_store), strict_lines),
    "a StorageClass is not ignored": (Off(clusters, "ignored_class", returns("")),),
    "claims that lose their ensemble": everywhere(
        "lost_cluster_id", (claims, clusters), returns("")
    ),
    "nothing is in sync before it is known": (Off(Admin, "_waiting_for_metadata", returns(None)),),
    "internal topics grow with the cluster": (Off(clusters, "INTERNAL_TOPICS", always({})),),
    "edits are acted on at once": (Off(WorkQueue, "add", user_waits_too),),
    "figures are written seldom": (Off(Context, "figures_due", all_figures_due),),
    "stricter checks stop no cluster": (
        Off(Finding, "severity", with_severity(Reason.INVALID_SPEC, Severity.BLOCKING)),
    ),
    "a client that finds the controller": (Off(kafka, "ClientConfig", never_probing),),
    "the trouble is shown": (Off(reconcile_clusters, "ask_brokers", returns((None, ""))),),
    "refusals are short": (Off(apply, "short", always(lambda message: message)),),
    "blockers are named": everywhere("absences", (rolling, snapshot), returns([])),
    "steps are events": (
        Off(
            Regarding,
            "of",
            lambda _: classmethod(
                lambda cls, *_: cls(api_version="", kind="", namespace="", name="", uid="")
            ),
        ),
    ),
    "Ready has a message": (Off(reconcile_topics, "_outcome", silent_outcome),),
    "claims of removed brokers are told": (Off(clusters, "CHECKS", with_check("size", None)),),
    "Ready is of its generation": (Off(status, "conditions", generation_of_before),),
    "a waiting pod ends": (Off(rack_of_pod, "end_on_sigterm", returns(None)),),
    "a broker ends without ZooKeeper": (
        Off(controlled_shutdown, "hand_over_if_reachable", reachable_for_ever),
    ),
    "nothing goes with its cluster": (Off(reconcile_orphans, "leaving", returns("")),),
    "a refused status gates nothing": (
        Off(
            reconciler,
            "_status_of",
            always(lambda *given: reconcile_clusters.reconcile_cluster(*given[:3])),
        ),
    ),
    "no member beside new brokers": (
        Off(snapshot.Draft, "changes_templates", returns(value=False)),
    ),
    "a roll is shown first": (
        Off(reconcile_clusters, "_show_roll", always(lambda cluster, _, plan, __: (cluster, plan))),
    ),
    "fields without effect are refused": (
        Off(reconcile_clusters, "listener_problems", returns(())),
    ),
    "templates are tried": (
        Off(reconcile_clusters, "without_invalid_templates", always(lambda plan, *_: plan)),
    ),
    "nothing lies over the data": (
        Off(pods, "_mounts", returns(())),
        Off(pods, "_written", returns(())),
    ),
    "a listener's certificate is checked": (
        Off(listener_certificates, "_identity", unchecked_identity),
    ),
    "what has expired issues nothing": everywhere(
        "issue", (reconcile_certificates, user_certificates), issued_all_the_same
    ),
    "an authority waits for all": (Off(authorities.Authorities, "_lagging", returns("")),),
    "the refused are not waited for": (
        Off(authorities, "is_allowed", returns(value=True)),
        Off(authorities, "_is_refused", returns(value=False)),
    ),
    "a lost authority is followed": (Off(authorities, "former_certificates", returns(())),),
    "Secrets are written as read": everywhere(
        "apply_as_read",
        (cluster_secrets, user_certificates, user_secrets),
        always(lambda kube, body, _: ownership.apply_owned(kube, body)),
    ),
    "Secrets of clusters are no passwords": (Off(user_secrets, "controller", returns(None)),),
    "clocks that are wrong": (
        Off(ApiServer, "_set_clock", returns(None)),
        *everywhere(
            "no_earlier_than",
            (cluster_secrets, user_certificates),
            always(lambda now, _: now),
        ),
    ),
    "a cluster stays what it was": (
        Off(reconciler, "as_recorded", always(lambda cluster, _: (cluster, ""))),
    ),
    "other namespaces are refused": (Off(reconciler, "is_allowed", returns(value=True)),),
    "who has it keeps it": everywhere("objection_to", (topics, users), returns("")),
    "other namespaces adopt nothing": everywhere("origin_of", (topics, users), returns("")),
    "names of znodes": (Off(users, "NO_ZNODES", always(())),),
    "ledgers have room": (Off(users, "are_too_long", returns(value=False)),),
    "partitions of a request": (Off(reconcile_topics, "PARTITIONS_PER_REQUEST", always(1 << 30)),),
    "answers of pods end": (Off(answers, "left", waits_for_ever),),
    "only what is read is kept": (
        Off(resource_index, "trimmed", always(lambda _, document: document)),
    ),
    "a watch that lists again": (Off(ResourceIndex, "observe", taken_for_a_change),),
    "passes wait for their list": (Off(Passes, "is_listed", returns(value=True)),),
    "one operator acts": (Off(Deadline, "check", without_leadership),),
}


def switch_off(name: str, patch: pytest.MonkeyPatch) -> None:
    """Have the operator, in this process, do without a rule."""
    for each in WITHOUT[name]:
        found = inspect.getattr_static(each.where, each.name)
        original = found.__func__ if isinstance(found, classmethod) else found
        patch.setattr(each.where, each.name, each.instead(original))


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option of the plugin."""
    parser.addoption("--without-rule", choices=sorted(WITHOUT))


def pytest_configure(config: pytest.Config) -> None:
    """Before any test file is imported; programs that tests start do without the rule, too."""
    if name := config.getoption("--without-rule"):
        switch_off(name, pytest.MonkeyPatch())
        directory = Path(tempfile.mkdtemp(prefix="without-rule-"))
        config.add_cleanup(functools.partial(shutil.rmtree, directory))
        (directory / "sitecustomize.py").write_text(AT_START.format(name=name), encoding="utf-8")
        os.environ["PYTHONPATH"] = os.pathsep.join([str(directory), str(config.rootpath)])
