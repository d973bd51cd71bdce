"""Dynamic settings of clusters reconciled: set without a roll, reverted, refused, deleted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from barnabas_operator.brokers import BrokersError
from barnabas_operator.names import CONFIG_HASH, DYNAMIC_CONFIG
from barnabas_operator.reconcile.context import Context
from barnabas_operator.reconcile.reconciler import reconcile
from barnabas_operator.resources.objects import digest
from tests.operator import examples
from tests.operator.memory_kube import MemoryKube
from tests.operator.ports import IMAGES, MemoryBrokers
from tests.operator.rolls import KEY, put, settled

EXAMPLE = examples.cluster()["spec"]["config"]
DAY, WEEK = {"log.retention.ms": "86400000"}, {"log.retention.ms": "604800000"}
REFUSED = BrokersError("INVALID_REQUEST", "may change from 8 to between 4 and 16", reachable=True)


def _apply(kube: MemoryKube, context: Context, config: dict[str, str], passes: int = 4) -> None:
    """A user applies other settings beside the example's; evicted pods stay away."""
    put(kube, config={**EXAMPLE, **config})
    for _ in range(passes):
        reconcile(KEY, context)
        kube.settle(pods=False)


def _evictions(kube: MemoryKube) -> list[str]:
    return [each for each in kube.writes if each.startswith("evict")]


def _conditions(kube: MemoryKube) -> dict[str, dict[str, Any]]:
    status = kube.find("KafkaCluster", "quickstart")["status"]
    return {each["type"]: each for each in status["conditions"]}


def _roll(kube: MemoryKube, context: Context) -> None:
    for _ in range(20):
        reconcile(KEY, context)
        kube.settle()


def test_a_dynamic_setting_is_set_without_a_roll_and_a_steady_state_writes_nothing() -> None:
    """The file has it too, for a broker that starts alone."""
    kube, brokers, context = settled()
    brokers.config["max.connections"] = "100"
    kube.writes.clear()
    for config in (DAY, WEEK):
        _apply(kube, context, config)
        assert brokers.config == {**config, "max.connections": "100"}
        file = kube.find("ConfigMap", "quickstart-broker")["data"]["server.properties"]
        assert f"log.retention.ms={config['log.retention.ms']}\n" in file
    assert _evictions(kube) == []
    assert set(_conditions(kube)) == {"Ready"}
    kube.writes.clear()
    brokers.requests.clear()
    reconcile(KEY, context)
    assert kube.writes == []
    assert "alter all brokers" not in brokers.requests


def test_a_read_only_setting_rolls_and_a_dynamic_one_of_the_same_edit_does_not_wait() -> None:
    """One edit, both ways."""
    kube, brokers, context = settled()
    kube.writes.clear()
    _apply(kube, context, {**DAY, "num.partitions": "7"})
    assert brokers.config == DAY
    assert _evictions(kube) == ["evict Pod quickstart-broker-1"]


def test_foreign_values_are_reverted_for_settings_that_the_spec_names() -> None:
    """The others are theirs."""
    kube, brokers, context = settled()
    _apply(kube, context, DAY)
    brokers.config = {"log.retention.ms": "1", "min.insync.replicas": "2"}
    reconcile(KEY, context)
    assert brokers.config == {**DAY, "min.insync.replicas": "2"}
    del brokers.config["log.retention.ms"]
    reconcile(KEY, context)
    assert brokers.config == {**DAY, "min.insync.replicas": "2"}


def test_a_removed_setting_is_deleted_after_the_roll() -> None:
    """Earlier, a broker would fall back to the value that its file had when it started."""
    kube, brokers, context = settled()
    _apply(kube, context, DAY)
    _apply(kube, context, WEEK)
    kube.writes.clear()
    _apply(kube, context, {})
    assert len(_evictions(kube)) == 1
    assert brokers.config == WEEK
    _roll(kube, context)
    assert len(_evictions(kube)) == 3
    assert brokers.config == {}
    assert set(_conditions(kube)) == {"Ready"}
    # What another client sets from now on is its own.
    brokers.config = dict(DAY)
    kube.writes.clear()
    reconcile(KEY, context)
    assert (brokers.config, kube.writes) == (DAY, [])


def test_a_refused_setting_is_named_and_keeps_back_no_other() -> None:
    """The spec is not reported as applied, and the cluster is Ready."""
    kube, brokers, context = settled()
    brokers.refuses["num.io.threads"] = REFUSED
    kube.writes.clear()
    _apply(kube, context, {**DAY, "num.io.threads": "64"})
    assert brokers.config == DAY
    stalled = _conditions(kube)["Stalled"]
    assert (stalled["status"], stalled["reason"]) == ("True", "DynamicConfigRefused")
    assert "set num.io.threads=64" in stalled["message"]
    assert REFUSED.message in stalled["message"]
    assert _conditions(kube)["Ready"]["status"] == "True"
    assert _evictions(kube) == []
    brokers.refuses.clear()
    reconcile(KEY, context)
    reconcile(KEY, context)
    assert brokers.config == {**DAY, "num.io.threads": "64"}
    assert set(_conditions(kube)) == {"Ready"}


def test_brokers_that_do_not_answer_get_it_later() -> None:
    """That they do not answer is what the status says."""
    kube, brokers, context = settled()
    brokers.error = BrokersError("_TRANSPORT", "connection refused", reachable=False)
    _apply(kube, context, DAY)
    assert _conditions(kube)["Ready"]["reason"] == "Unreachable"
    brokers.error = None
    reconcile(KEY, context)
    assert brokers.config == DAY


class _Failing(MemoryBrokers):
    """Answers everything but what it is asked of dynamic settings."""

    failure: BrokersError

    def dynamic_config(self) -> dict[str, str]:
        """See Brokers."""
        raise self.failure


def test_settings_that_cannot_be_asked_for_are_waited_for_or_named() -> None:
    """Nothing is changed while it is not known what there is."""
    kube, _, context = settled()
    brokers = _Failing(view=context.brokers(None).describe())  # type: ignore[arg-type]
    context = replace(context, brokers=lambda _: brokers)
    brokers.failure = BrokersError("REQUEST_TIMED_OUT", "late", reachable=False)
    _apply(kube, context, DAY)
    assert _conditions(kube)["Reconciling"]["reason"] == "DynamicConfigUnknown"
    brokers.failure = BrokersError("CLUSTER_AUTHORIZATION_FAILED", "no", reachable=True)
    reconcile(KEY, context)
    assert _conditions(kube)["Stalled"]["reason"] == "DynamicConfigRefused"
    assert brokers.config == {}


def test_an_upgrade_of_the_operator_rolls_nothing_and_sets_nothing_before_the_spec_changes() -> (
    None
):
    """An earlier operator had the hash of the whole file in the template, and no record."""
    kube, brokers, context = settled()
    put(kube, config={**EXAMPLE, **DAY})
    earlier = replace(context, images=replace(IMAGES, operator="1"))
    _roll(kube, earlier)
    found = kube.find("StatefulSet", "quickstart-broker")
    file = kube.find("ConfigMap", "quickstart-broker")["data"]["server.properties"]
    found["spec"]["template"]["metadata"]["annotations"][CONFIG_HASH] = digest(file)
    del found["metadata"]["annotations"][DYNAMIC_CONFIG]
    for broker in range(3):
        kube.remove("Pod", f"quickstart-broker-{broker}")
    kube.settle()
    brokers.config = {"log.retention.ms": "5"}
    kube.writes.clear()
    later = replace(context, images=replace(IMAGES, operator="2"))
    _roll(kube, later)
    assert brokers.config == {"log.retention.ms": "5"}
    assert [each for each in kube.writes if "status" not in each] == []
    _apply(kube, later, WEEK)
    assert brokers.config == WEEK
    assert _evictions(kube) == []
