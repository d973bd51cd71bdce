"""Staged upgrades: binaries first, the protocol between brokers last."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from barnabas_operator.plan.observed import Images
from barnabas_operator.plan.protocols import SETTING, Protocol, plan_protocol, protocol_of
from barnabas_operator.reconcile.context import Context
from barnabas_operator.reconcile.reconciler import Key, reconcile
from tests.operator import examples
from tests.operator.memory_kube import MemoryKube
from tests.operator.ports import MemoryBrokers, context_on

KEY = Key("default", "quickstart")
VERSIONS = {
    "1": {"broker": "b:1", "zookeeper": "z:1", "protocol": "2.8-IV1"},
    "2": {"broker": "b:2", "zookeeper": "z:2", "protocol": "3.9-IV0"},
}
IMAGES = Images(broker="b:2", zookeeper="z:2", pipeline="p:1", operator="x", versions=VERSIONS)


def _context(kube: MemoryKube) -> Context:
    return replace(context_on(kube, MemoryBrokers()), images=IMAGES)


def _settle(kube: MemoryKube, rounds: int = 8) -> None:
    for _ in range(rounds):
        reconcile(KEY, _context(kube))
        kube.settle()


def _brokers(kube: MemoryKube) -> tuple[str, bool]:
    """The image of the brokers, and whether their settings hold the protocol."""
    template = kube.find("StatefulSet", "quickstart-broker")["spec"]["template"]["spec"]
    text = kube.find("ConfigMap", "quickstart-broker")["data"]["server.properties"]
    return template["containers"][0]["image"], f"{SETTING}=2.8-IV1" in text


def _status(kube: MemoryKube) -> dict[str, Any]:
    found = kube.find("KafkaCluster", "quickstart")["status"]
    assert isinstance(found, dict)
    return found


def test_binaries_are_replaced_before_brokers_speak_the_new_protocol() -> None:
    """Two rolls: in the first the settings hold the old protocol, in the second they do not."""
    kube = MemoryKube(examples.cluster(version="1"))
    _settle(kube)
    assert _brokers(kube) == ("b:1", False)
    assert _status(kube)["interBrokerProtocolVersion"] == "2.8-IV1"
    kube.put(examples.cluster(version="2"))
    seen: list[tuple[str, bool]] = []
    reasons = set()
    for _ in range(16):
        reconcile(KEY, _context(kube))
        seen.append(_brokers(kube))
        reasons.add((_status(kube).get("roll") or {}).get("reason", ""))
        kube.settle()
    stages = [each for number, each in enumerate(seen) if each not in seen[:number]]
    assert stages == [("b:2", True), ("b:2", False)]
    assert any("2.8-IV1 becomes 3.9-IV0" in reason for reason in reasons)
    assert [each for each in kube.writes if "Pod quickstart-broker" in each] == [
        "evict Pod quickstart-broker-0"
    ] * 2
    assert _status(kube)["interBrokerProtocolVersion"] == "3.9-IV0"


def test_a_version_of_an_older_protocol_is_refused() -> None:
    """It could not read what the present brokers have written; nothing is replaced."""
    kube = MemoryKube(examples.cluster(version="2"))
    _settle(kube)
    kube.put(examples.cluster(version="1"))
    kube.writes.clear()
    _settle(kube)
    assert _brokers(kube)[0] == "b:2"
    assert not [each for each in kube.writes if "Pod quickstart-broker" in each]
    stalled = {each["type"]: each for each in _status(kube)["conditions"]}["Stalled"]
    assert "b:1 is not used: its brokers speak 2.8-IV1" in stalled["message"]


def test_a_downgrade_before_the_second_stage_goes_back_at_once() -> None:
    """That is what the first stage is for: the brokers still speak the old protocol."""
    kube = MemoryKube(examples.cluster(version="1"))
    _settle(kube)
    kube.put(examples.cluster(version="2"))
    reconcile(KEY, _context(kube))
    kube.settle(pods=False)
    assert _brokers(kube) == ("b:2", True)
    kube.put(examples.cluster(version="1"))
    _settle(kube)
    assert _brokers(kube) == ("b:1", False)


def test_an_explicit_protocol_is_kept() -> None:
    """Nothing is staged, and nothing refused."""
    plan = plan_protocol(
        "b:1",
        {SETTING: "3.0"},
        stateful_set={"metadata": {}},
        config_map=None,
        is_complete=True,
        versions=VERSIONS,
    )
    assert plan == Protocol(current="3.0", target="2.8-IV1")


def test_images_that_the_operator_does_not_know_are_not_staged() -> None:
    """Their protocol is their own affair."""
    assert protocol_of("mine", VERSIONS) == ""
    kube = MemoryKube(examples.cluster(version="1"))
    _settle(kube)
    kube.put(examples.cluster(images={"broker": "mine"}))
    _settle(kube)
    assert _brokers(kube) == ("mine", False)


def test_an_upgrade_goes_no_further_without_the_version_that_it_leads_to() -> None:
    """An operator that does not know it would let brokers speak what no way back is checked by."""
    kube = MemoryKube(examples.cluster(version="1"))
    _settle(kube)
    kube.put(examples.cluster(version="2"))
    reconcile(KEY, _context(kube))
    kube.settle(pods=False)
    assert _brokers(kube) == ("b:2", True)
    known = {"1": VERSIONS["1"]}
    for _ in range(8):
        reconcile(KEY, replace(_context(kube), images=replace(IMAGES, versions=known)))
        kube.settle()
    assert _brokers(kube) == ("b:2", True)
    assert _status(kube)["interBrokerProtocolVersion"] == "2.8-IV1"
    _settle(kube)
    assert _brokers(kube) == ("b:2", False)
