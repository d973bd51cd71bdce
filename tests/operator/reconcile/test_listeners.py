"""Listeners whose addresses Kubernetes gives: late, other ones, and never."""

from __future__ import annotations

from typing import Any

from barnabas_operator.api.reading import read_cluster
from barnabas_operator.plan.observed import ClusterView
from barnabas_operator.reconcile.clusters import broker_hosts_of, observe
from barnabas_operator.reconcile.context import Context
from barnabas_operator.reconcile.reconciler import Key, reconcile
from tests.operator import examples
from tests.operator.memory_kube import MemoryKube
from tests.operator.ports import MemoryBrokers, context_on

KEY = Key("default", "quickstart")
PLAIN = {"name": "plain", "port": 9092}
BALANCED = {"name": "lb", "port": 9094, "type": "loadbalancer"}
BROKERS = {"replicas": 2, "storage": {"size": "1Gi"}}
VIEW = ClusterView(cluster_id="an-id", broker_ids=(0, 1), controller_id=0)
# As many replicas of internal topics whatever the number of brokers: the template stays.
CONFIG = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}
HOST = "quickstart-broker-nodes.default.svc:9092"


class Bench:
    """A cluster of two brokers whose files say what they advertise."""

    def __init__(self, *listeners: dict[str, Any]) -> None:
        asked = examples.cluster(listeners=[PLAIN, *listeners], brokers=BROKERS, config=CONFIG)
        self.kube = MemoryKube(asked)
        self.brokers = MemoryBrokers(view=VIEW)
        self.context: Context = context_on(self.kube, self.brokers)

    def run_pass(self) -> list[str]:
        """One pass; returns what it wrote, without the status."""
        self.kube.writes.clear()
        reconcile(KEY, self.context)
        return [each for each in self.kube.writes if not each.startswith("status")]

    def start(self) -> None:
        """Until the pods are ready."""
        self.run_pass()
        self.kube.settle()
        self.run_pass()

    def give(self, name: str, address: str) -> None:
        """What the cloud does: a load balancer has an address."""
        status = {"loadBalancer": {"ingress": [{"ip": address}]}}
        self.kube.objects["Service", "default", name]["status"] = status

    def read_files(self, *brokers: int) -> None:
        """Brokers advertise what their files say."""
        data = self.kube.find("ConfigMap", "quickstart-broker-addresses")["data"]
        for broker in brokers:
            text = data[str(broker)].replace("{POD_NAME}", f"quickstart-broker-{broker}")
            self.brokers.addresses[broker] = text

    def conditions(self) -> dict[str, tuple[str, str]]:
        """Reasons and messages by type."""
        status = self.kube.find("KafkaCluster", "quickstart")["status"]
        return {each["type"]: (each["reason"], each["message"]) for each in status["conditions"]}

    def servers(self) -> dict[str, str]:
        """Bootstrap servers by listener."""
        status = self.kube.find("KafkaCluster", "quickstart")["status"]
        return {each["name"]: each["bootstrapServers"] for each in status["listeners"]}


def test_a_listener_without_address_gates_nothing() -> None:
    """The cluster is Ready, pods have started, and the warning names what is missing."""
    bench = Bench(BALANCED)
    bench.start()
    conditions = bench.conditions()
    assert conditions["Ready"][0] == "Ready"
    reason, text = conditions["Warning"]
    assert reason == "ListenerPending"
    assert text.startswith("listener lb: Service quickstart-lb-bootstrap and 2 more has no address")
    assert bench.servers()["lb"] == ""
    data = bench.kube.find("ConfigMap", "quickstart-broker-addresses")["data"]
    assert data == dict.fromkeys(("0", "1"), f"PLAIN://{{POD_NAME}}.{HOST}")


def test_brokers_are_restarted_for_an_address_one_at_a_time_and_once() -> None:
    """Only those that it concerns; no template changes."""
    bench = Bench(BALANCED)
    bench.start()
    bench.read_files(0, 1)
    bench.give("quickstart-lb-bootstrap", "192.0.2.9")
    bench.give("quickstart-lb-1", "192.0.2.1")
    bench.kube.now = "2026-01-02T04:00:00Z"
    assert bench.run_pass() == ["apply ConfigMap quickstart-broker-addresses"]
    assert bench.servers()["lb"] == "192.0.2.9:9094"
    assert bench.run_pass() == ["evict Pod quickstart-broker-1"]
    assert bench.run_pass() == []
    bench.kube.settle()
    for pod in ("quickstart-broker-1",):
        bench.kube.objects["Pod", "default", pod]["metadata"]["creationTimestamp"] = bench.kube.now
    bench.read_files(1)
    assert bench.run_pass() == []
    assert bench.brokers.addresses[1].endswith(",LB://192.0.2.1:9094")


def test_a_broker_that_goes_on_with_other_addresses_is_not_restarted_for_ever() -> None:
    """It has started since they were written; something else is wrong."""
    bench = Bench(BALANCED)
    bench.start()
    bench.read_files(0, 1)
    bench.give("quickstart-lb-0", "192.0.2.1")
    bench.kube.now = "2026-01-02T04:00:00Z"
    bench.run_pass()
    assert bench.run_pass() == ["evict Pod quickstart-broker-0"]
    bench.kube.settle()
    pod = bench.kube.objects["Pod", "default", "quickstart-broker-0"]
    pod["metadata"]["creationTimestamp"] = "2026-01-02T04:00:01Z"
    assert bench.run_pass() == []


def test_a_roll_for_addresses_waits_for_its_approval() -> None:
    """An approval of an earlier roll does not cover it."""
    bench = Bench(BALANCED)
    bench.start()
    bench.read_files(0, 1)
    bench.kube.edit(
        "KafkaCluster", "quickstart",
        lambda body: body["spec"].update(rollPolicy={"type": "OnApproval"}),
    )  # fmt: skip
    bench.run_pass()
    bench.give("quickstart-lb-0", "192.0.2.1")
    bench.kube.now = "2026-01-02T04:00:00Z"
    bench.run_pass()
    assert bench.run_pass() == []
    assert bench.conditions()["Reconciling"][0] == "RollHeldBack"


def test_objects_of_a_removed_listener_go() -> None:
    """Their Services at once, and what brokers read of them once no broker does."""
    bench = Bench(BALANCED)
    bench.start()
    bench.kube.edit(
        "KafkaCluster", "quickstart", lambda body: body["spec"].update(listeners=[PLAIN])
    )
    gone = [each for each in bench.run_pass() if each.startswith("delete")]
    assert gone == [
        "delete Service quickstart-lb-0",
        "delete Service quickstart-lb-1",
        "delete Service quickstart-lb-bootstrap",
    ]


def test_the_addresses_stay_while_pods_have_them_as_a_volume() -> None:
    """A pod of the older template that starts again could not without them."""
    bench = Bench(BALANCED)
    bench.start()
    addresses = ("ConfigMap", "default", "quickstart-broker-addresses")
    bench.kube.edit(
        "KafkaCluster",
        "quickstart",
        lambda body: body["spec"].update(listeners=[PLAIN], roll={"policy": "OnApproval"}),
    )
    for _ in range(3):
        bench.run_pass()
        bench.kube.settle()
    assert bench.conditions()["Reconciling"][0] == "RollHeldBack"
    assert addresses in bench.kube.objects
    bench.kube.edit("KafkaCluster", "quickstart", lambda body: body["spec"].pop("roll"))
    for _ in range(6):
        bench.run_pass()
        bench.kube.settle()
    assert "Reconciling" not in bench.conditions()
    assert addresses not in bench.kube.objects


def test_the_brokers_certificate_has_every_advertised_host() -> None:
    """Of each broker, and of the first connection."""
    inside = {"name": "cip", "port": 9095, "type": "cluster-ip", "tls": {}}
    bench = Bench(BALANCED, inside)
    cluster = read_cluster(bench.kube.find("KafkaCluster", "quickstart"))
    reconcile(KEY, bench.context)
    bench.give("quickstart-lb-1", "192.0.2.1")
    hosts = broker_hosts_of(cluster, observe(cluster, bench.context))
    assert {"192.0.2.1", "quickstart-cip-0.default.svc", "quickstart-cip-1.default.svc"} < hosts
    assert "quickstart-cip-bootstrap.default.svc" in hosts


def test_a_new_broker_restarts_no_other() -> None:
    """The file of all addresses changes, and what the others advertise does not."""
    bench = Bench(BALANCED)
    bench.start()
    for ordinal in (0, 1):
        bench.give(f"quickstart-lb-{ordinal}", f"192.0.2.{ordinal}")
    bench.run_pass()
    bench.read_files(0, 1)
    bench.kube.now = "2026-01-02T04:00:00Z"
    brokers = {**BROKERS, "replicas": 3}
    bench.kube.edit("KafkaCluster", "quickstart", lambda body: body["spec"].update(brokers=brokers))
    bench.run_pass()
    bench.kube.settle()
    bench.give("quickstart-lb-2", "192.0.2.2")
    written = [*bench.run_pass(), *bench.run_pass()]
    assert not [each for each in written if each.startswith("evict")]


def test_fields_without_effect_are_refused_and_change_nothing() -> None:
    """All of them in one message; the cluster serves as before, and is not taken for settled."""
    bench = Bench(BALANCED)
    bench.start()
    wrong = {**BALANCED, "nodePort": 31000, "configuration": {"ingressClassName": "nginx"}}
    bench.kube.put(examples.cluster(listeners=[PLAIN, wrong], brokers=BROKERS, config=CONFIG))
    assert bench.run_pass() == []
    conditions = bench.kube.find("KafkaCluster", "quickstart")["status"]["conditions"]
    (stalled,) = (each for each in conditions if each["type"] == "Stalled")
    assert stalled["reason"] == "InvalidSpec"
    for field in ("lb: nodePort is for", "lb: configuration.ingressClassName is for"):
        assert field in stalled["message"]
