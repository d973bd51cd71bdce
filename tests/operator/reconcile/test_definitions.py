"""Definitions: what resources made outlives a definition that is deleted, and applied again."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from barnabas_operator.kube import TOPICS, KubeError
from barnabas_operator.reconcile.definitions import definition_uid
from barnabas_operator.reconcile.reconciler import Key, reconcile
from tests.operator import examples
from tests.operator.memory_kube import MemoryKube
from tests.operator.ports import MemoryBrokers, context_on

KEY = Key("default", "quickstart")
CRD = "CustomResourceDefinition"


@dataclass(frozen=True, slots=True)
class Case:
    """A kind whose resources may take with them what they made."""

    kind: str
    plural: str
    documents: Callable[[], list[examples.Document]]
    made: Callable[[MemoryBrokers], set[str]]


CASES = [
    Case(
        "KafkaTopic",
        "kafkatopics",
        lambda: [examples.topic(name, deletionPolicy="Delete") for name in ("a", "b")],
        lambda brokers: set(brokers.views),
    ),
    Case(
        "KafkaUser",
        "kafkausers",
        lambda: [examples.user("a"), examples.user("b")],
        lambda brokers: {name for name, each in brokers.credentials.items() if each},
    ),
]
by_kind = pytest.mark.parametrize("case", CASES, ids=lambda case: case.plural)


class Bench:
    """A cluster with two resources of a kind, and what they made."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.brokers, self.uids = MemoryBrokers(), itertools.count()
        self.kube = MemoryKube(examples.secured(), examples.definition(case.plural))
        self.run(2)
        self.apply()
        self.run()
        assert self.made() == {"a", "b"}

    def run(self, passes: int = 1) -> None:
        """Passes, with what the controllers do after each."""
        for _ in range(passes):
            reconcile(KEY, context_on(self.kube, self.brokers))
            self.kube.settle()

    def made(self) -> set[str]:
        """What there is in Kafka."""
        return self.case.made(self.brokers)

    def apply(self) -> None:
        """A user applies the resources."""
        for each in self.case.documents():
            each["metadata"]["uid"] = f"uid-of-{each['metadata']['name']}-{next(self.uids)}"
            self.kube.put(each)

    def remove(self, *names: str) -> None:
        """Resources are deleted."""
        for name in names:
            self.kube.remove(self.case.kind, name)
        self.kube.collect_garbage()

    def lose_definition(self) -> None:
        """The definition is deleted, and all resources with it."""
        self.kube.remove(CRD, f"{self.case.plural}.barnabas.io", "")
        self.remove("a", "b")


@by_kind
def test_a_definition_that_is_applied_again_deletes_nothing(
    case: Case, caplog: pytest.LogCaptureFixture
) -> None:
    """Its empty list is not one of resources that were deleted, whether a pass saw it go or not."""
    for sees_it_go in (True, False):
        bench = Bench(case)
        bench.lose_definition()
        if sees_it_go:
            bench.run()
        bench.kube.put(examples.definition(case.plural, "definition-2"))
        with caplog.at_level(logging.WARNING):
            bench.run(2)
        assert bench.made() == {"a", "b"}
        assert f"definition of {case.kind} was deleted" in caplog.text


@by_kind
def test_a_definition_that_is_being_deleted_deletes_nothing(case: Case) -> None:
    """The API server still lists, and fewer resources each time."""
    bench = Bench(case)
    found = bench.kube.find(CRD, f"{case.plural}.barnabas.io", "")
    found["metadata"]["deletionTimestamp"] = bench.kube.now
    bench.remove("a", "b")
    bench.run(2)
    assert bench.made() == {"a", "b"}


@by_kind
def test_resources_of_the_new_definition_take_with_them_what_is_theirs(case: Case) -> None:
    """Those that are applied again have what they had, and go as any other."""
    bench = Bench(case)
    bench.lose_definition()
    bench.kube.put(examples.definition(case.plural, "definition-2"))
    bench.run()
    bench.apply()
    bench.run()
    ready = bench.kube.find(case.kind, "a")["status"]["conditions"][0]
    assert ready["status"] == "True"
    bench.remove("a")
    bench.run()
    assert bench.made() == {"b"}


@by_kind
def test_a_definition_that_stays_is_no_obstacle(case: Case) -> None:
    """Also where the operator may not read it, and so knows nothing of it."""
    bench = Bench(case)
    bench.remove("a")
    bench.run()
    assert bench.made() == {"b"}
    bench.kube.refuses[f"get {CRD} {case.plural}.barnabas.io"] = "forbidden"
    bench.remove("b")
    bench.run()
    assert bench.made() == {"b"}


@by_kind
def test_an_entry_of_an_earlier_operator_gets_its_definition(case: Case) -> None:
    """As soon as a pass finds its resource."""
    bench = Bench(case)
    for (kind, _, name), body in bench.kube.objects.items():
        if kind == "ConfigMap" and name.endswith("-0"):
            for key, text in body["data"].items():
                body["data"][key] = text.replace(', "definition": "definition-1"', "")
                assert "definition" not in body["data"][key]
    bench.run()
    bench.lose_definition()
    bench.kube.put(examples.definition(case.plural, "definition-2"))
    bench.run(2)
    assert bench.made() == {"a", "b"}


def test_an_api_server_that_fails_says_nothing_of_a_definition() -> None:
    """Refusals are an answer, failures are none."""
    kube = MemoryKube(examples.definition("kafkatopics"))
    assert definition_uid(TOPICS, kube) == "definition-1"
    kube.fail(f"get {CRD}", 500)
    with pytest.raises(KubeError):
        definition_uid(TOPICS, kube)
