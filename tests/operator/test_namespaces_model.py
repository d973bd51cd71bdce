"""A model test of one topic that three namespaces want: nobody takes it over from another.

Each namespace's resource has settings of its own, so that each change says whose it is. The judge
knows whose the topic is by who created it, and not by what the operator remembers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from barnabas_operator.brokers import BrokersError
from barnabas_operator.kube import KubeError
from barnabas_operator.plan import topics as plan
from barnabas_operator.plan.orphans import PresentResources
from barnabas_operator.plan.topics import AlterConfig, CreateTopic, TopicView
from barnabas_operator.reconcile import topics as reconcile_topics
from barnabas_operator.reconcile.reconciler import Key, reconcile
from tests.operator import examples
from tests.operator.memory_kube import MemoryKube
from tests.operator.ports import MemoryBrokers, context_on

KEY = Key("default", "quickstart")
HOME, TEAMS = "default", ("a", "b")
NAMESPACES = st.sampled_from([HOME, *TEAMS])
MARK, STRANGER = "retention.ms", "9"
MARKS = {HOME: "1", "a": "2", "b": "3"}
OF_MARK = {mark: namespace for namespace, mark in MARKS.items()}
ADOPT = {"barnabas.io/adopt": "resource"}
ANSWER_LOST = BrokersError("REQUEST_TIMED_OUT", "no answer", reachable=False)


class OperatorCrash(BaseException):
    """The operator's process ends in the middle of a pass."""


class Judge(MemoryBrokers):
    """Brokers that know whose the topic is."""

    def __init__(self, kube: MemoryKube) -> None:
        super().__init__()
        self.kube = kube
        self.allowed: set[str] = {HOME}
        self.policies: dict[str, str] = {}
        self.owner = ""
        self.loses_answer = False

    def resource(self, namespace: str) -> dict[str, Any] | None:
        """The KafkaTopic of a namespace."""
        return self.kube.objects.get(("KafkaTopic", namespace, "t"))

    def create_topics(self, topics: Mapping[str, CreateTopic]) -> Mapping[str, BrokersError]:
        """See Brokers; it is whose resource it is created for."""
        (step,) = topics.values()
        namespace = OF_MARK[step.config[MARK]]
        assert namespace in self.allowed, f"created for {namespace}, which is not allowed"
        assert self.resource(namespace), f"created for {namespace}, which has no resource"
        failed = super().create_topics(topics)
        if not failed:
            self.owner = namespace
        if self.loses_answer:
            self.loses_answer = False
            raise ANSWER_LOST
        return failed

    def alter_configs(self, topics: Mapping[str, AlterConfig]) -> Mapping[str, BrokersError]:
        """See Brokers."""
        (step,) = topics.values()
        self.claim(OF_MARK[step.put[MARK]])
        return super().alter_configs(topics)

    def delete_topics(self, names: Collection[str]) -> Mapping[str, BrokersError]:
        """See Brokers; only with its owner's resource, which said so, of an allowed namespace."""
        owner = self.owner
        assert owner, "deleted, and another client created it"
        assert owner in self.allowed, f"deleted, and {owner} was withdrawn"
        assert not self.resource(owner), f"deleted, and the resource of {owner} is there"
        assert self.policies[owner] == "Delete", f"deleted, and {owner} retains it"
        return super().delete_topics(names)

    def claim(self, namespace: str) -> None:
        """A namespace has the topic, or takes it over: then it must be the cluster's."""
        if self.owner == namespace:
            return
        before, resource = self.owner, self.resource(namespace)
        assert namespace == HOME, f"{namespace} took the topic of {before or 'another client'} over"
        assert resource, "taken over without a resource"
        if before:
            notes = resource["metadata"].get("annotations") or {}
            assert notes == ADOPT, f"taken over from {before} without being asked"
            there = before in self.allowed and self.resource(before)
            assert not there, f"taken over from {before}, which has it"
        self.owner = HOME

    def create_elsewhere(self, mark: str) -> None:
        """Another client creates the topic, after it has deleted the one that there was."""
        self.owner = ""
        self.views["t"] = TopicView(
            name="t", topic_id=f"id-{next(self.ids)}", partitions=1, replicas=1, config={MARK: mark}
        )


class Life(RuleBasedStateMachine):
    """One topic, and a cluster that serves."""

    def __init__(self) -> None:
        super().__init__()
        self.kube = MemoryKube(examples.secured())
        self.judge = Judge(self.kube)
        self.retained: set[str] = set()
        self.made = 0
        for _ in range(3):
            self.allow(TEAMS)
            self.kube.settle()

    def _pass(self) -> None:
        context = replace(
            context_on(self.kube, self.judge), retained=lambda uid: uid in self.retained
        )
        try:
            reconcile(KEY, context)
        except (KubeError, OperatorCrash):
            return
        finally:
            self.kube.faults.clear()
        for namespace in MARKS:
            found = self.judge.resource(namespace)
            conditions = (found or {}).get("status", {}).get("conditions", ())
            if any((each["type"], each["status"]) == ("Ready", "True") for each in conditions):
                self.judge.claim(namespace)

    @rule()
    def work(self) -> None:
        """Two passes."""
        self._pass()
        self._pass()

    @rule(call=st.integers(1, 40), done=st.booleans(), crash=st.booleans())
    def fail(self, call: int, done: bool, crash: bool) -> None:
        """The API server fails once, or the operator ends."""
        calls = 0

        def is_due(_: str) -> bool:
            nonlocal calls
            calls += 1
            if crash and calls == call:
                raise OperatorCrash
            return calls == call

        self.kube.fail(is_due, 500, applied=done)
        self._pass()

    @rule()
    def lose_an_answer(self) -> None:
        """The brokers create the topic, and the operator does not learn of it."""
        self.judge.loses_answer = True
        self._pass()
        self.judge.loses_answer = False

    @rule(
        namespace=NAMESPACES, policy=st.sampled_from(["Delete", "Delete", "Retain"]),
        adopt=st.booleans(), old=st.booleans(),
    )  # fmt: skip
    def apply(self, namespace: str, policy: str, adopt: bool, old: bool) -> None:
        """A user applies the topic."""
        document = examples.topic(
            "t", clusterNamespace=HOME, partitions=1, replicas=1, deletionPolicy=policy,
            config={MARK: MARKS[namespace]},
        )  # fmt: skip
        found = self.judge.resource(namespace)
        self.made += found is None
        meta = document["metadata"]
        meta["namespace"] = namespace
        meta["uid"] = found["metadata"]["uid"] if found else f"uid-{self.made}"
        meta["creationTimestamp"] = f"20{10 if old else 50}-01-01T00:00:00Z"
        meta["annotations"] = dict(ADOPT) if adopt else {}
        self.judge.policies[namespace] = policy
        self.kube.put(document)
        self._pass()

    @rule(namespace=NAMESPACES, seen=st.booleans())
    def forget(self, namespace: str, seen: bool) -> None:
        """A user deletes the resource; a watch sees what it said."""
        if found := self.judge.resource(namespace):
            if found["spec"]["deletionPolicy"] == "Retain":
                self.retained.add(found["metadata"]["uid"])
            self.kube.remove("KafkaTopic", "t", namespace)
        if seen:
            self._pass()

    @rule()
    def withdraw(self) -> None:
        """The cluster allows no other namespace, and one that was deletes its resource."""
        self.allow(())
        self.forget(TEAMS[0], seen=True)

    @rule(teams=st.sampled_from([(), ("a",), TEAMS]))
    def allow(self, teams: tuple[str, ...]) -> None:
        """The cluster allows other namespaces than before."""
        self.judge.allowed = {HOME, *teams}

        def change(body: dict[str, Any]) -> None:
            body["spec"]["allowedNamespaces"] = sorted(teams)

        self.kube.edit("KafkaCluster", "quickstart", change)
        self._pass()

    @rule(mark=st.sampled_from([STRANGER, MARKS[HOME]]))
    def other_client(self, mark: str) -> None:
        """Another client has a topic of its own under the name."""
        self.judge.create_elsewhere(mark)

    @rule()
    def other_client_deletes(self) -> None:
        """Another client deletes the topic."""
        self.judge.views.clear()


QUICK = settings(
    max_examples=50,
    stateful_step_count=20,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def test_no_namespace_takes_over_from_another() -> None:
    """Whatever is applied, withdrawn, lost and refused, in whichever order."""
    run_state_machine_as_test(Life, settings=QUICK)


MUTATIONS: dict[str, tuple[Any, str, Any]] = {
    "other namespaces adopt nothing": (plan, "origin_of", lambda _: ""),
    "what has another namespace is its own": (plan, "objection_to", lambda *_: ""),
    "who has it keeps it": (
        reconcile_topics, "owners", lambda topics, _: plan.owners(topics),
    ),
    "what was withdrawn is protected": (
        PresentResources, "protects", lambda self, name, _: name in self.in_kafka,
    ),
}  # fmt: skip


@pytest.mark.soak
@pytest.mark.parametrize("rule_name", MUTATIONS)
def test_each_rule_switched_off_is_found(rule_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model test is worth something: without the rule it fails."""
    where, name, instead = MUTATIONS[rule_name]
    monkeypatch.setattr(where, name, instead)
    with pytest.raises((AssertionError, BaseExceptionGroup)):
        run_state_machine_as_test(
            Life, settings=settings(QUICK, max_examples=300, phases=[Phase.generate])
        )
