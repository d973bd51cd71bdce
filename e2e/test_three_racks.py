"""Three brokers in three racks on an ensemble of three: what breaks loses nothing, under load."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Final

import pytest

from e2e import images, kafka, webhook
from e2e.cluster import ZONES, Cluster
from e2e.figures import figures, wait_for_reconciliations
from e2e.leaks import leaks, secret_values
from e2e.load import Gap, Load
from e2e.quickstart import MAIN, RELEASE, offer_versions
from e2e.three_racks import (
    ALL,
    BROKERS,
    FILE,
    HAND_OVER,
    OLD_PROTOCOL,
    PROTOCOL,
    Replacements,
    annotate,
    broker_settings,
    check,
    client,
    controllers_broker,
    disruptions_allowed,
    example,
    in_sync,
    more,
    partitions,
    patch,
    pods,
    read,
    ready_pods,
    roll,
    throttled,
    wait_for_preferred_leaders,
    wait_for_roll,
    wait_in_sync,
    wait_ready,
)
from tests.waiting import ANSWER, RUN, SETTLE, seconds

NEXT_VERSION: Final = "0.2.0"
NEW_PROTOCOL: Final = "3.9-IV0"
# More than a follower fetches of a partition in the span that its throttle looks back on, often.
MUCH: Final = [(b"much", bytes(100_000))] * 100
IN_ORDER: Final = ["three-zookeeper"] * 3 + ["three-broker"] * 3


@pytest.fixture(scope="module")
def three(operator: Cluster) -> Iterator[Cluster]:
    """The example, applied and ready; gone after these scenarios."""
    operator.kubectl("apply", "-n", MAIN, "-f", "-", stdin=example())
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


def test_a_killed_broker_loses_nothing(three: Cluster, report_gap: Callable[[Load], Gap]) -> None:
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
    report_gap(load)
    check(load, before, three)


def test_a_killed_member_of_the_ensemble_is_not_noticed(
    three: Cluster, report_gap: Callable[[Load], Gap]
) -> None:
    """Two of three members go on; producers see nothing of it."""
    before = read(three)
    with Load(client(three), "orders") as load:
        more(load, three)
        three.kubectl("delete", "pod/three-zookeeper-2", "-n", MAIN, "--grace-period=0", "--force")
        more(load, three)
        wait_ready(three)
    assert report_gap(load).units <= HAND_OVER
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


def test_an_upgrade_replaces_nothing_before_its_approval(three: Cluster) -> None:
    """Neither a newer operator nor `spec.version`: the plan of six pods is in the status."""
    nothing = Replacements(three)
    newer = {**next_images(three), "protocol": NEW_PROTOCOL}
    offer_versions(three, {NEXT_VERSION: newer})
    patch(
        three,
        {"version": NEXT_VERSION, "roll": {"policy": "OnApproval"}, "config": {PROTOCOL: None}},
    )
    plan = wait_for_roll(three, "it waits for approval")
    assert [name.rpartition("-")[0] for name in plan["order"]] == IN_ORDER
    assert f"a second roll follows: {PROTOCOL} {OLD_PROTOCOL} becomes {NEW_PROTOCOL}" in str(plan)
    wait_for_reconciliations(three, "three")
    assert nothing.ready() == []


def test_an_approved_upgrade_replaces_the_ensemble_first_and_one_pod_at_a_time(
    three: Cluster, report_gap: Callable[[Load], Gap]
) -> None:
    """Under load, all six: each broker hands over before it goes, no record is refused or lost.

    A pause holds the rest back; the new brokers speak the old protocol until all are replaced. The
    controller is the last one, and `kubectl describe` lists the replaced pods.
    """
    before, replaced = read(three), Replacements(three)
    with Load(client(three), "orders") as load:
        more(load, three)
        annotate(three, f"barnabas.io/approve-roll={roll(three)['token']}")
        replaced.wait_for(4)
        annotate(three, "barnabas.io/pause-roll=true")
        wait_for_roll(three, "pause-roll")
        paused = replaced.ready()
        wait_for_reconciliations(three, "three")
        assert replaced.ready() == paused
        assert len(paused) < replaced.expected
        assert f"{PROTOCOL}={OLD_PROTOCOL}" in broker_settings(three).splitlines()
        annotate(three, "barnabas.io/pause-roll-")
        replaced.wait_for(replaced.expected)
        more(load, three)
    assert replaced.fewest_ready >= replaced.expected - 1
    assert [name.rpartition("-")[0] for name in replaced.order] == IN_ORDER
    assert replaced.order[-1] == replaced.controller
    events = three.kubectl("describe", "kafkacluster/three", "-n", MAIN)
    assert [name for name in replaced.order if f"delete Pod {name}" not in events] == []
    assert report_gap(load).units <= HAND_OVER
    check(load, before, three)


def test_the_protocol_follows_in_a_roll_of_its_own_that_is_forced(
    three: Cluster, report_gap: Callable[[Load], Gap]
) -> None:
    """The first approval says nothing about it; forced, it loses nothing either."""
    before, replaced = read(three), Replacements(three, BROKERS)
    approved = (three.get("kafkacluster", "three", namespace=MAIN) or {})["metadata"]["annotations"]
    token = approved["barnabas.io/approve-roll"]
    plan = wait_for_roll(three, "it waits for approval", other_than=token)
    assert sorted(plan["order"]) == sorted(ready_pods(three))
    assert replaced.ready() == []
    with Load(client(three), "orders") as load:
        more(load, three)
        annotate(three, f"barnabas.io/force-roll={plan['token']}")
        replaced.wait_for(replaced.expected)
        more(load, three)
        wait_in_sync(three, within=RUN)
    report_gap(load)
    check(load, before, three)
    assert replaced.fewest_ready >= replaced.expected - 1
    assert PROTOCOL not in broker_settings(three)
    patch(three, {"roll": None})
    wait_ready(three)
    assert roll(three) == {}
    wait_for_preferred_leaders(three)


def test_a_controller_that_hangs_is_neither_replaced_nor_stops_anything(three: Cluster) -> None:
    """Its connections stay open and answer nothing: others lead, topics are created, it is named.

    No pod is replaced by the operator, and topics that have not changed are not written.
    """
    name = controllers_broker(three)
    pod = pods(three)[name]
    uids = {each: found["metadata"]["uid"] for each, found in pods(three, ALL).items()}
    orders = (three.get("kafkatopic", "orders", namespace=MAIN) or {})["metadata"]
    topic = {
        "apiVersion": "barnabas.io/v1alpha1",
        "kind": "KafkaTopic",
        "metadata": {"name": "meanwhile"},
        "spec": {"cluster": "three", "replicas": 2},
    }
    with three.frozen(pod, "broker"):
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
    command = cluster.kubectl_command("drain", node, selector, "--delete-emptydir-data", limit)
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def test_two_drains_in_a_row_take_one_broker_at_a_time(
    three: Cluster, report_gap: Callable[[Load], Gap]
) -> None:
    """The second waits, under load, until the first broker is back on its node, and then in sync.

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

    with Load(client(three), "orders") as load, ExitStack() as throttle:
        throttle.enter_context(throttled(three, 0))
        with drain(three, first) as one:
            assert one.wait(seconds(RUN)) == 0
        before |= kafka.send(client(three), "orders", MUCH, limit_s=seconds(SETTLE))
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
            wait_for_reconciliations(three, "three")
            three.wait_for(
                "a replica that is behind", lambda: in_sync(three), until=lambda it: min(it) == 2,
                namespaces=(MAIN,),
            )  # fmt: skip
            assert disruptions_allowed(three) == 0
            assert ready_pods(three)["three-broker-1"] == uids["three-broker-1"]
            throttle.close()
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
    assert report_gap(load).units <= HAND_OVER
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

    annotate(three, "barnabas.io/pause-roll=true")
    note = ("annotate", "pod/three-broker-1", "-n", MAIN, "barnabas.io/manual-roll=true")
    three.kubectl(*note)
    assert wait_for_roll(three, "pause-roll")["order"] == ["three-broker-1"]
    assert ready_pods(three) == old
    annotate(three, "barnabas.io/pause-roll-")
    three.wait_for(
        "another broker 1, and no plan",
        lambda: (ready_pods(three).get("three-broker-1"), roll(three)),
        until=lambda seen: seen[0] not in (None, old["three-broker-1"]) and not seen[1],
        namespaces=(MAIN,),
        within=RUN,
    )
    rest = {name: uid for name, uid in ready_pods(three).items() if name != "three-broker-1"}
    assert rest == {name: uid for name, uid in old.items() if name != "three-broker-1"}


def written(cluster: Cluster) -> dict[str, str]:
    """The version of every object of the example, and of every Secret: it changes with a write."""
    applied = ("statefulset", "service", "configmap", "networkpolicy", "poddisruptionbudget")
    ours = ("kafkacluster", "kafkatopic", "kafkauser", "secret")
    selected = {**dict.fromkeys(applied, "barnabas.io/cluster=three"), **dict.fromkeys(ours, "")}
    return {
        f"{kind}/{each['metadata']['name']}": each["metadata"]["resourceVersion"]
        for kind, selector in selected.items()
        for each in cluster.list(kind, namespace=MAIN, selector=selector)
    }


def test_a_sidecar_of_a_webhook_starves_no_roll_and_is_no_drift(
    three: Cluster, report_gap: Callable[[Load], Gap]
) -> None:
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
    assert report_gap(load).units <= HAND_OVER
    check(load, before, three)


def check_nothing_is_written(cluster: Cluster) -> None:
    """Until three reconciliations in a row have left every object as it was, with no step."""

    def quiet() -> bool:
        before = written(cluster)
        _, steps = figures(cluster, "three")
        wait_for_reconciliations(cluster, "three", 3)
        return written(cluster) == before and figures(cluster, "three")[1] == steps

    # What follows a roll, such as preferred leaders, may still be written at first.
    cluster.wait_for("reconciliations that write nothing", quiet, namespaces=(MAIN,))


def test_no_value_of_a_secret_is_found_elsewhere(three: Cluster) -> None:
    """After kills, drains and rolls: not in resources, Events, logs, arguments or variables."""
    values = secret_values(three, MAIN)
    assert values
    assert leaks(three, values, (MAIN,)) == []
