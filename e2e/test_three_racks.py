"""Three brokers in three racks on an ensemble of three: what breaks loses nothing, under load."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import suppress

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from prometheus_client.parser import text_string_to_metric_families

from e2e import images, webhook
from e2e.cluster import ZONES, Cluster, Json
from e2e.commands import CommandError
from e2e.leaks import leaks, secret_values
from e2e.load import Load
from e2e.quickstart import MAIN, RELEASE
from e2e.three_racks import (
    ALL,
    BROKERS,
    FILE,
    check,
    client,
    is_ready,
    more,
    partitions,
    pods,
    read,
    ready_pods,
    wait_in_sync,
    wait_ready,
)
from tests.waiting import ANSWER, RUN, seconds


@pytest.fixture(scope="module")
def three(operator: Cluster) -> Iterator[Cluster]:
    """The example, applied and ready; gone after these scenarios."""
    operator.kubectl("apply", "-n", MAIN, "-f", FILE)
    wait_ready(operator)
    yield operator
    operator.delete_objects("-n", MAIN, "-f", FILE)
    operator.wait_gone("pods", namespace=MAIN, selector=ALL)


def test_partitions_have_a_replica_in_each_rack(three: Cluster) -> None:
    """The label of a broker's node is its rack, and replicas are placed by racks."""
    nodes = {
        node["metadata"]["name"]: node["metadata"]["labels"].get("topology.kubernetes.io/zone")
        for node in three.list("node", namespace=MAIN)
    }
    found = pods(three)
    reported = {
        name: pod["metadata"]["annotations"]["barnabas.io/rack"] for name, pod in found.items()
    }
    assert reported == {name: nodes[pod["spec"]["nodeName"]] for name, pod in found.items()}
    assert sorted(reported.values()) == sorted(ZONES)
    wait_in_sync(three)
    for partition in partitions(three):
        assert {node.rack for node in partition.replicas} == set(ZONES)


def test_a_killed_broker_loses_nothing(three: Cluster) -> None:
    """Without grace, under load: others lead, and it comes back in sync."""
    before = read(three)
    with Load(client(three), "orders") as load:
        more(load, three)
        name = "three-broker-1"
        uid = pods(three)[name]["metadata"]["uid"]
        three.kubectl("delete", f"pod/{name}", "-n", MAIN, "--grace-period=0", "--force")
        more(load, three)
        three.wait_for(
            f"another pod {name} that is Ready",
            lambda: ready_pods(three),
            until=lambda uids: uids.get(name, uid) != uid,
            namespaces=(MAIN,),
            within=RUN,
        )
        wait_in_sync(three)
    check(load, before, three)


def test_a_killed_member_of_the_ensemble_is_not_noticed(three: Cluster) -> None:
    """Two of three members go on; producers see nothing of it."""
    before = read(three)
    with Load(client(three), "orders") as load:
        more(load, three)
        three.kubectl("delete", "pod/three-zookeeper-2", "-n", MAIN, "--grace-period=0", "--force")
        more(load, three)
        wait_ready(three)
    check(load, before, three)


def next_images(cluster: Cluster) -> dict[str, str]:
    """The same images by another tag on every worker, as a next version would be."""
    found = {}
    for target in ("broker", "zookeeper"):
        image, tag = images.name(target), f"barnabas-{target}:next"
        full = image if "/" in image else f"docker.io/library/{image}"
        for node in cluster.workers():
            command = ("ctr", "--namespace=k8s.io", "images", "tag", "--force", full)
            cluster.on_node(node, *command, f"docker.io/library/{tag}")
        found[target] = tag
    return found


def test_an_update_replaces_the_ensemble_first_and_one_pod_at_a_time(three: Cluster) -> None:
    """Under load, all six: each broker hands over before it goes, no record is refused or lost.

    The controller is the last one, and `kubectl describe` lists the replaced pods.
    """
    before = read(three)
    old = pods(three, ALL)
    replaced: list[str] = []
    ready_at_once: list[int] = []
    controllers: list[str] = []

    def new_and_ready() -> list[str]:
        found = pods(three, ALL)
        ready_at_once.append(sum(is_ready(pod) for pod in found.values()))
        uids = {name: pod["metadata"]["uid"] for name, pod in found.items()}
        new = [name for name, uid in uids.items() if uid != old[name]["metadata"]["uid"]]
        replaced.extend(sorted(set(new) - set(replaced)))
        if not any("broker" in name for name in new):
            with suppress(KafkaException):  # The controller moves.
                controllers.append(controllers_broker(three))
        return [name for name in new if is_ready(found[name])]

    with Load(client(three), "orders") as load:
        patch = json.dumps({"spec": {"images": next_images(three)}})
        three.kubectl("patch", "kafkacluster/three", "-n", MAIN, "--type=merge", "-p", patch)
        three.wait_for(
            "six new pods that are Ready",
            new_and_ready,
            until=lambda names: len(names) == len(old),
            namespaces=(MAIN,),
            within=RUN,
        )
        more(load, three)
    assert min(ready_at_once) >= len(old) - 1
    assert [name.rpartition("-")[0] for name in replaced] == [
        *["three-zookeeper"] * 3,
        *["three-broker"] * 3,
    ]
    assert replaced[-1] == controllers[-1]
    events = three.kubectl("describe", "kafkacluster/three", "-n", MAIN)
    assert [name for name in replaced if f"delete Pod {name}" not in events] == []
    check(load, before, three)
    wait_ready(three)
    three.wait_for(
        "partitions led by their preferred leaders",
        lambda: partitions(three),
        until=lambda found: all(each.leader.id == each.replicas[0].id for each in found),
        namespaces=(MAIN,),
        within=RUN,
    )


def controllers_broker(cluster: Cluster) -> str:
    """The pod of the broker that is the controller."""
    admin = AdminClient({**client(cluster), "log_level": 0})
    found = admin.describe_cluster().result(seconds(ANSWER)).controller
    return f"three-broker-{found.id}"


def test_a_controller_that_hangs_is_neither_replaced_nor_stops_anything(three: Cluster) -> None:
    """Its connections stay open and answer nothing: others lead, topics are created, it is named.

    No pod is replaced by the operator, and topics that have not changed are not written.
    """
    name = controllers_broker(three)
    pod = pods(three)[name]
    uids = {each: found["metadata"]["uid"] for each, found in pods(three, ALL).items()}
    orders = (three.get("kafkatopic", "orders", namespace=MAIN) or {})["metadata"]
    (status,) = (each for each in pod["status"]["containerStatuses"] if each["name"] == "broker")
    node = pod["spec"]["nodeName"]
    supervisor = three.process_of(node, status["containerID"])
    process = three.on_node(node, "pgrep", "--parent", supervisor).strip()
    topic = {
        "apiVersion": "barnabas.io/v1alpha1",
        "kind": "KafkaTopic",
        "metadata": {"name": "meanwhile"},
        "spec": {"cluster": "three", "replicas": 2},
    }
    three.on_node(node, "kill", "-STOP", process)
    try:
        three.wait_for(
            f"{name} that is not ready and named",
            lambda: three.get("kafkacluster", "three", namespace=MAIN) or {},
            until=lambda found: f"{name} is not ready" in str(found["status"]["conditions"]),
            namespaces=(MAIN,),
            within=RUN,
        )
        three.kubectl("apply", "-n", MAIN, "-f", "-", stdin=json.dumps(topic))
        three.wait_ready("kafkatopic/meanwhile", namespace=MAIN, within=RUN)
        three.wait_ready("kafkacluster/three", namespace=MAIN)
    finally:
        # A liveness probe may have ended it meanwhile: the kubelet restarts it in its pod.
        with suppress(CommandError):
            three.on_node(node, "kill", "-CONT", process)
    wait_in_sync(three, within=RUN)
    three.wait_for(
        "three brokers that are ready",
        lambda: ready_pods(three),
        until=lambda found: len(found) == 3,
        namespaces=(MAIN,),
        within=RUN,
    )
    wait_ready(three)
    assert {each: found["metadata"]["uid"] for each, found in pods(three, ALL).items()} == uids
    found = (three.get("kafkatopic", "orders", namespace=MAIN) or {})["metadata"]
    assert found["resourceVersion"] == orders["resourceVersion"]
    three.delete_objects("kafkatopic/meanwhile", "-n", MAIN)


def drain(cluster: Cluster, node: str) -> subprocess.Popen[bytes]:
    """`kubectl drain` of a node, for the pods of the example; it goes on until it is done."""
    selector = "--pod-selector=barnabas.io/cluster=three"
    limit = f"--timeout={seconds(RUN):.0f}s"
    config = f"--kubeconfig={cluster.kubeconfig}"
    command = ("kubectl", config, "drain", node, selector, "--delete-emptydir-data", limit)
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def test_two_drains_in_a_row_take_one_broker_at_a_time(three: Cluster) -> None:
    """The second waits, under load, until the first broker is back on its node and in sync.

    Volumes are bound to their nodes, so that the pods of a drained one wait for it.
    """
    before = read(three)
    nodes = {name: pod["spec"]["nodeName"] for name, pod in pods(three).items()}
    first, second = nodes["three-broker-0"], nodes["three-broker-1"]
    uids = ready_pods(three)
    fewest = [len(uids)]

    def replaced(name: str) -> bool:
        found = ready_pods(three)
        fewest.append(len(found))
        return found.get(name, uids[name]) != uids[name]

    with Load(client(three), "orders") as load:
        with drain(three, first) as one:
            assert one.wait(seconds(RUN)) == 0
        two = drain(three, second)
        try:
            assert two.stderr is not None
            refusals = iter(two.stderr.readline, b"")
            assert any(b"violate the pod's disruption budget" in line for line in refusals)
            more(load, three)
            assert "three-broker-1" in ready_pods(three)
            three.kubectl("uncordon", first)
            three.wait_for(
                "the first broker on its node again",
                lambda: replaced("three-broker-0"),
                namespaces=(MAIN,),
                within=RUN,
            )
            assert two.wait(seconds(RUN)) == 0
            three.kubectl("uncordon", second)
            three.wait_for(
                "the second broker on its node again",
                lambda: replaced("three-broker-1"),
                namespaces=(MAIN,),
                within=RUN,
            )
            more(load, three)
        finally:
            two.kill()
            two.communicate()
            for node in (first, second):
                three.kubectl("uncordon", node)
    assert min(fewest) >= 2
    check(load, before, three)
    wait_ready(three)


def test_a_broker_that_waits_for_its_rack_stops_at_once(three: Cluster) -> None:
    """Its grace is two minutes; without an operator no rack is written, and it never starts."""
    name = "three-broker-2"
    three.kubectl("scale", f"deploy/{RELEASE}", "-n", MAIN, "--replicas=0")
    three.wait_gone("pods", namespace=MAIN, selector=f"app.kubernetes.io/name={RELEASE}")
    three.kubectl("delete", f"pod/{name}", "-n", MAIN, "--wait=true")

    def waiting() -> str:
        pod = pods(three).get(name) or {"status": {}, "metadata": {}}
        states = [each["state"] for each in pod["status"].get("initContainerStatuses", ())]
        running = "deletionTimestamp" not in pod["metadata"] and any("running" in s for s in states)
        return str(pod["metadata"]["uid"]) if running else ""

    uid = three.wait_for("a broker that waits for its rack", waiting, namespaces=(MAIN,))
    three.kubectl("delete", f"pod/{name}", "-n", MAIN, "--wait=false")
    three.wait_for(
        "the next one", waiting, until=lambda it: it not in ("", uid), namespaces=(MAIN,),
        within=ANSWER,
    )  # fmt: skip
    three.kubectl("scale", f"deploy/{RELEASE}", "-n", MAIN, "--replicas=1")
    wait_ready(three)


def test_a_paused_roll_waits_and_a_single_pod_is_replaced_when_asked(three: Cluster) -> None:
    """The plan is in the status before any pod goes; a pause ends with its annotation."""
    old = three.wait_for(
        "three brokers that are Ready",
        lambda: ready_pods(three),
        until=lambda uids: len(uids) == 3,
        namespaces=(MAIN,),
    )

    def annotate(*notes: str) -> None:
        three.kubectl("annotate", "kafkacluster/three", "-n", MAIN, "--overwrite", *notes)

    def roll() -> Json:
        found: Json = (three.get("kafkacluster", "three", namespace=MAIN) or {})["status"]
        return found.get("roll") or {}

    annotate("barnabas.io/pause-roll=true")
    note = ("annotate", "pod/three-broker-1", "-n", MAIN, "barnabas.io/manual-roll=true")
    three.kubectl(*note)
    three.wait_for(
        "a plan that is paused",
        roll,
        until=lambda plan: "pause-roll" in str(plan.get("blockers")),
        namespaces=(MAIN,),
    )
    assert roll()["order"] == ["three-broker-1"]
    assert ready_pods(three) == old
    annotate("barnabas.io/pause-roll-")
    three.wait_for(
        "another broker 1, and no plan",
        lambda: (ready_pods(three).get("three-broker-1"), roll()),
        until=lambda seen: seen[0] not in (None, old["three-broker-1"]) and not seen[1],
        namespaces=(MAIN,),
        within=RUN,
    )
    rest = {name: uid for name, uid in ready_pods(three).items() if name != "three-broker-1"}
    assert rest == {name: uid for name, uid in old.items() if name != "three-broker-1"}


def written(cluster: Cluster) -> dict[str, str]:
    """The version of every object of the example, and of every Secret: it changes with a write."""
    kinds = "statefulsets,services,configmaps,networkpolicies,poddisruptionbudgets"
    found = {}
    ours = "kafkaclusters,kafkatopics,kafkausers,secrets"
    for which in ((kinds, "-l", "barnabas.io/cluster=three"), (ours,)):
        text = cluster.kubectl("get", *which, "-n", MAIN, "-o", "json")
        for each in json.loads(text)["items"]:
            meta = each["metadata"]
            found[f"{each['kind']}/{meta['name']}"] = meta["resourceVersion"]
    return found


def figures(cluster: Cluster) -> tuple[float, float]:
    """The reconciliations of the example and the steps on the API server, by the operator."""
    selector = f"app.kubernetes.io/name={RELEASE}"
    (operator,) = cluster.list("pod", namespace=MAIN, selector=selector)
    pod = f"/api/v1/namespaces/{MAIN}/pods/{operator['metadata']['name']}"
    text = cluster.kubectl("get", "--raw", f"{pod}:8080/proxy/metrics")
    samples = [each for family in text_string_to_metric_families(text) for each in family.samples]
    reconciliations = sum(
        each.value
        for each in samples
        if each.name == "barnabas_operator_reconciliations_total"
        and each.labels["cluster"] == "three"
    )
    steps = [each.value for each in samples if each.name == "barnabas_operator_steps_total"]
    return reconciliations, sum(steps)


def test_a_sidecar_of_a_webhook_starves_no_roll_and_is_no_drift(three: Cluster) -> None:
    """Pods get it as they are replaced, under load; after that nothing is written."""
    before, old = read(three), ready_pods(three)
    assert len(old) == 3

    def replaced() -> list[str]:
        return [name for name, uid in ready_pods(three).items() if uid != old[name]]

    component = {"barnabas.io/cluster": "three", "barnabas.io/component": "broker"}
    with webhook.injecting(three, component), Load(client(three), "orders") as load:
        more(load, three)
        note = ("annotate", "pods", "-n", MAIN, "-l", BROKERS, "barnabas.io/manual-roll=true")
        three.kubectl(*note)
        three.wait_for(
            "three new brokers that are Ready",
            replaced,
            until=lambda names: len(names) == 3,
            namespaces=(MAIN,),
            within=RUN,
        )
        more(load, three)
        for pod in pods(three).values():
            assert webhook.SIDECAR in {each["name"] for each in pod["spec"]["containers"]}
        wait_in_sync(three)
        three.wait_for(
            "the end of the roll",
            lambda: (three.get("kafkacluster", "three", namespace=MAIN) or {})["status"],
            until=lambda status: not status.get("roll"),
            namespaces=(MAIN,),
        )
        wait_ready(three)
        check_nothing_is_written(three)
    check(load, before, three)


def check_nothing_is_written(cluster: Cluster) -> None:
    """Until three reconciliations in a row have left every object as it was, with no step."""

    def quiet() -> bool:
        before = written(cluster)
        reconciliations, steps = figures(cluster)
        cluster.wait_for(
            "three more reconciliations",
            lambda: figures(cluster)[0],
            until=lambda count: count >= reconciliations + 3,
            namespaces=(MAIN,),
        )
        return written(cluster) == before and figures(cluster)[1] == steps

    # What follows a roll, such as preferred leaders, may still be written at first.
    cluster.wait_for("reconciliations that write nothing", quiet, namespaces=(MAIN,))


def test_no_value_of_a_secret_is_found_elsewhere(three: Cluster) -> None:
    """After kills, drains and rolls: not in resources, Events, logs, arguments or variables."""
    values = secret_values(three, MAIN)
    assert values
    assert leaks(three, values, (MAIN,)) == []
