"""A model test: random lives of a cluster, with invariants in every moment and a good end.

Users edit, pods die, nodes are lost, the API server fails, operators are upgraded, end in the
middle of a pass, and run twice at once. tests/operator/world.py judges each deletion, each removal
of a broker and each deletion of a topic. A failure prints the steps that lead to it.
"""

from __future__ import annotations

from base64 import b64decode
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    rule,
    run_state_machine_as_test,
)

from barnabas_operator.kube import Document
from barnabas_operator.names import MANUAL_ROLL, PAUSE_ROLL, SECURITY
from barnabas_operator.plan import clusters, snapshot
from barnabas_operator.plan.observed import Images
from tests.operator.without_rule import WITHOUT, switch_off
from tests.operator.world import (
    BAD_IMAGE,
    BROKERS,
    ENSEMBLE,
    FOREIGN_ACL,
    MECHANISM,
    NEWER,
    TOPIC,
    USER,
    ApiFault,
    World,
    annotate,
    edited,
    inject,
    is_foreign,
)
from tools.operator_rules import rules

STATUSES = st.sampled_from([0, 409, 429, 500, 503])
CALLS = st.integers(1, 40)
TOPICS = st.sampled_from(["a", "b"])
USERS = st.sampled_from(["u", "v"])
SETTLES = 200
# Kafka's 3.9 is the newest protocol.
NEWEST = 9


class Life(RuleBasedStateMachine):
    """One cluster, from its creation on."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.version = 1
        self.broken_image = False

    @property
    def images(self) -> Images:
        """The images of the operator that runs."""
        return Images(
            broker=f"b:{self.version}",
            zookeeper=f"z:{self.version}",
            pipeline="p:1",
            operator=str(self.version),
            versions={
                str(number): {
                    "broker": f"b:{number}",
                    "zookeeper": f"z:{number}",
                    "protocol": f"3.{number}",
                }
                for number in range(1, self.version + 1)
            },
        )

    @rule(rounds=st.integers(1, 8))
    def work(self, rounds: int) -> None:
        """Passes and controllers in turn."""
        for _ in range(rounds):
            self.world.run_pass(self.images)
            self.world.tick()

    @rule()
    def two_passes_without_a_tick(self) -> None:
        """The controllers are slower than the operator."""
        self.world.run_pass(self.images)
        self.world.run_pass(self.images)

    @rule(call=CALLS, status=STATUSES, done=st.booleans())
    def fail(self, call: int, status: int, done: bool) -> None:
        """The API server fails once, before it did what was asked or after."""
        self.world.run_pass(self.images, ApiFault(call=call, status=status, done=done))

    @rule(call=CALLS, done=st.booleans())
    def crash(self, call: int, done: bool) -> None:
        """The operator ends in the middle of a pass."""
        self.world.run_pass(self.images, ApiFault(call=call, status=0, done=done, crash=True))

    @rule()
    def second_operator(self) -> None:
        """Another operator makes a whole pass while the first one has only begun its own."""
        self.world.between = lambda: self.world.run_pass(self.images)
        self.world.run_pass(self.images)

    @rule()
    def upgrade(self) -> None:
        """A new operator with new images for both components, which changes nothing by itself."""
        self.version = min(self.version + 1, NEWEST)

    @rule()
    def update(self) -> None:
        """A user asks for the images of the operator."""
        broker = BAD_IMAGE if self.broken_image else self.images.broker
        edited(self.world, images={"broker": broker, "zookeeper": self.images.zookeeper})

    @rule(back=st.integers(0, 2))
    def choose_version(self, back: int) -> None:
        """A user asks for a version, or goes back to an earlier one."""
        if not self.broken_image:
            edited(self.world, images=None, version=str(max(1, self.version - back)))

    @rule(broken=st.booleans())
    def image(self, broken: bool) -> None:
        """An image that cannot be pulled, and its correction."""
        self.broken_image = broken
        self.update()

    @rule(partitions=st.integers(1, 3))
    def configure(self, partitions: int) -> None:
        """A user changes a setting of the brokers."""
        edited(self.world, config={"num.partitions": str(partitions)})

    @rule(replicas=st.sampled_from([3, 3, 4, 6]))
    def resize(self, replicas: int) -> None:
        """A user adds brokers, or takes back what was a mistake."""
        edited(self.world, brokers={"replicas": replicas})

    @rule(policy=st.sampled_from(["Auto", "OnApproval"]))
    def hold(self, policy: str) -> None:
        """A user wants to be asked before each roll, or no longer."""
        edited(self.world, roll={"policy": policy})

    @rule(paused=st.booleans())
    def pause(self, paused: bool) -> None:
        """A user pauses what rolls, or has it go on."""
        annotate(self.world, "KafkaCluster", "quickstart", PAUSE_ROLL, "true" if paused else None)

    @rule(kind=st.sampled_from([ENSEMBLE, BROKERS]), ordinal=st.integers(0, 2))
    def ask(self, kind: str, ordinal: int) -> None:
        """A user wants a pod to be replaced."""
        if f"{kind}-{ordinal}" in self.world.pods():
            annotate(self.world, "Pod", f"{kind}-{ordinal}", MANUAL_ROLL, "true")

    @rule(
        soak=st.sampled_from([0, 60]),
        guarantee=st.sampled_from(["KeepHealthy", "AllHealthy"]),
        together=st.sampled_from([1, 2, 3]),
    )
    def care(self, soak: int, guarantee: str, together: int) -> None:
        """A user wants rolls to be slower, or stricter, or faster rack by rack."""
        given = {"soakSeconds": soak, "guarantee": guarantee, "maxUnavailablePerRack": together}
        edited(self.world, roll=given)

    @rule(size=st.sampled_from(["2Gi", "3Gi"]))
    def storage(self, size: str) -> None:
        """A user asks for larger claims, which this StorageClass cannot give, or takes it back."""
        edited(self.world, brokers={"storage": {"size": size}})

    @rule(kind=st.sampled_from([ENSEMBLE, BROKERS]), ordinal=st.integers(0, 3))
    def die(self, kind: str, ordinal: int) -> None:
        """A process ends; it needs its time to be ready again."""
        self.world.die(f"{kind}-{ordinal}")

    @rule(kind=st.sampled_from([ENSEMBLE, BROKERS]), ordinal=st.integers(0, 2))
    def lose_node(self, kind: str, ordinal: int) -> None:
        """A pod's node is gone, with or without coming back."""
        self.world.lost_nodes ^= {f"{kind}-{ordinal}"}
        self.world.tick()

    @rule(name=TOPICS, policy=st.sampled_from(["Delete", "Delete", "Retain"]))
    def topic(self, name: str, policy: str) -> None:
        """A user applies a topic."""
        self.world.put_topic(name, deletionPolicy=policy)

    @rule(name=TOPICS)
    def newer_topic(self, name: str) -> None:
        """A user applies a topic that this version of the operator cannot parse."""
        self.world.put_topic(name, deletionPolicy="Delete", partitions=NEWER)

    @rule(name=TOPICS)
    def forget_topic(self, name: str) -> None:
        """A user deletes its resource."""
        if (TOPIC, "default", name) in self.world.objects:
            self.world.remove_topic(name)

    @rule(name=TOPICS)
    def other_client(self, name: str) -> None:
        """Another client has a topic of its own under the name."""
        self.world.brokers.create_elsewhere(name)

    @rule(insecure=st.sampled_from([None, True, False]), lost=st.booleans())
    def say_otherwise(self, insecure: bool | None, lost: bool) -> None:
        """A user says, or no longer says, what the cluster is; its record may be lost."""
        edited(self.world, insecure=insecure)
        if lost:
            self.world.lose_status("security")

    @invariant()
    def it_is_what_it_was_created_as(self) -> None:
        """What brokers reach each other by does not change under them."""
        for name in (ENSEMBLE, BROKERS):
            found = self.world.objects.get(("StatefulSet", "default", name))
            notes = found["metadata"].get("annotations", {}) if found else {}
            assert SECURITY not in notes

    @rule()
    def take_a_name(self) -> None:
        """Somebody has an object of the name that one of the operator's has."""
        self.world.take_name("Service", "quickstart-bootstrap")

    @rule()
    def admission_webhook(self) -> None:
        """An admission webhook is installed, and alters what the operator applies."""
        self.world.webhooks[:] = [inject]

    @rule()
    def edit_a_config_map(self) -> None:
        """Somebody changes what is the operator's."""
        if ("ConfigMap", "default", BROKERS) in self.world.objects:
            changed = {"server.properties": "broker.id=7"}
            self.world.edit("ConfigMap", BROKERS, lambda body: body["data"].update(changed))

    @rule(call=st.integers(10, 17), status=STATUSES)
    def fail_to_restore_a_service(self, call: int, status: int) -> None:
        """Somebody deletes what is the operator's, and the API server fails while it is applied."""
        found = self.world.objects.get(("Service", "default", "quickstart-bootstrap"))
        if found is not None and not is_foreign(found):
            self.world.remove("Service", "quickstart-bootstrap")
        self.fail(call, status, done=False)

    @rule(name=USERS, policy=st.sampled_from(["Delete", "Delete", "Retain"]), topic=TOPICS)
    def user(self, name: str, policy: str, topic: str) -> None:
        """A user applies a KafkaUser, with the ACLs of one topic or of another."""
        acl = {"resource": {"type": "topic", "name": topic}, "operations": ["Write", "Describe"]}
        quotas = {"producerByteRate": 1000} if topic == "a" else {"consumerByteRate": 500}
        authorization = {"acls": [acl]}
        self.world.put_user(name, deletionPolicy=policy, authorization=authorization, quotas=quotas)

    @rule(name=USERS)
    def newer_user(self, name: str) -> None:
        """A user applies one that this version of the operator cannot parse."""
        self.world.put_user(name, deletionPolicy="Delete", listener=NEWER)

    @rule(name=USERS, token=st.sampled_from(["1", "2"]))
    def rotate(self, name: str, token: str) -> None:
        """A user wants another password."""
        found = self.world.objects.get((USER, "default", name))
        if found is not None:
            self.world.put_user(name, rotate=token, **found["spec"])

    @rule(name=USERS)
    def forget_user(self, name: str) -> None:
        """A user deletes the resource."""
        if (USER, "default", name) in self.world.objects:
            self.world.remove_user(name)

    @rule(name=USERS)
    def lose_secret(self, name: str) -> None:
        """Somebody deletes the Secret of a user."""
        if ("Secret", "default", name) in self.world.objects:
            self.world.remove("Secret", name)

    @rule(name=USERS)
    def other_admin(self, name: str) -> None:
        """Another client creates the user, or sets its password, and gives it an ACL."""
        self.world.brokers.create_user_elsewhere(name)

    def teardown(self) -> None:
        """When faults stop, the cluster becomes what its resource says, and nothing is written."""
        self.world.lost_nodes.clear()
        self.world.return_names()
        self.hold("Auto")
        self.pause(paused=False)
        self.image(broken=False)
        edited(self.world, insecure=True)
        edited(self.world, brokers={"storage": {"size": "2Gi"}})
        replicas = self.world.find("KafkaCluster", "quickstart")["spec"]["brokers"]["replicas"]
        self.world.brokers.move_from(replicas)
        for _ in range(SETTLES):
            self.world.writes.clear()
            self.world.run_pass(self.images)
            if not self.world.writes and self._is_settled():
                break
            self.world.tick()
        conditions = self.world.find("KafkaCluster", "quickstart")["status"]["conditions"]
        assert self._is_settled(), conditions
        assert self.world.writes == []
        for (kind, _, name), body in self.world.objects.items():
            if kind == USER:
                self._check_user(name, body)

    def _check_user(self, name: str, body: Document) -> None:
        """Ready is what its Secret says; everything else is somebody else's, or newer."""
        ready = next(each for each in body["status"]["conditions"] if each["type"] == "Ready")
        if ready["status"] != "True":
            expected = {"Invalid"} if body["spec"].get("listener") == NEWER else {"AlreadyExists"}
            assert ready["reason"] in expected, ready
            return
        secret = self.world.find("Secret", name)["data"]["password"]
        found = self.world.brokers.credentials.get(name, {})
        assert MECHANISM in found, f"{name} is Ready and has no credential"
        _, password = found[MECHANISM]
        assert b64decode(secret).decode() == password
        (acl,) = body["spec"]["authorization"]["acls"]
        own = [each.name for each in self.world.brokers.acls[name] if each != FOREIGN_ACL]
        assert own == [acl["resource"]["name"]] * 2
        assert len(self.world.brokers.quotas[name]) == 1

    def _is_settled(self) -> bool:
        cluster = self.world.find("KafkaCluster", "quickstart")
        status = cluster.get("status", {})
        seen = status.get("observedGeneration") == cluster["metadata"]["generation"]
        found = {each["type"]: each["status"] for each in status.get("conditions", ())}
        types = {"Reconciling", "Stalled"} & found.keys()
        current = not any(self.world.is_outdated(name) for name in self.world.pods())
        return seen and found.get("Ready") == "True" and not types and current


SOAKS = settings.get_current_profile_name() == "soak"
EXAMPLES = 2000 if SOAKS else 10


def declared(check: clusters.Check) -> clusters.Check:
    """The check, which finds nothing but what the table of reasons says that it finds."""

    def run(given: snapshot.Snapshot, draft: snapshot.Draft) -> None:
        before = len(draft.findings)
        check.run(given, draft)
        found = {each.reason for each in draft.findings[before:]}
        assert found <= set(check.reasons), f"{check.name}: {found - set(check.reasons)}"

    return replace(check, run=run)


def test_the_operator_does_no_harm_and_comes_to_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """No order of events leads to harm, and all of them end in the cluster that was asked for."""
    monkeypatch.setattr(clusters, "CHECKS", tuple(map(declared, clusters.CHECKS)))
    run_state_machine_as_test(
        Life, settings=settings(max_examples=EXAMPLES, stateful_step_count=30)
    )


def test_brokers_that_got_replicas_stay_when_their_number_is_taken_back() -> None:
    """A life that random ones seldom have: six brokers by mistake, a topic, three brokers again."""
    life = Life()
    life.work(8)
    life.resize(6)
    life.work(8)
    life.work(8)
    life.topic("a", "Delete")
    life.work(8)
    assert max(broker for each in life.world.brokers.placed["a"] for broker in each.replicas) > 2
    life.resize(3)
    life.work(8)
    assert f"{BROKERS}-4" in life.world.pods()
    life.teardown()
    assert f"{BROKERS}-3" not in life.world.pods()


def test_brokers_of_a_rack_go_together_where_they_share_no_partition() -> None:
    """Six brokers in two racks, partitions on the first three; 0 is the controller, and alone."""
    life = Life()
    life.work(8)
    life.topic("a", "Retain")
    life.work(8)
    life.resize(6)
    life.work(8)
    life.work(8)
    edited(life.world, roll={"maxUnavailablePerRack": 3})
    life.configure(2)
    acts = []
    for _ in range(60):
        life.world.run_pass(life.images)
        acts += [sorted(life.world.act)] if life.world.act else []
        life.world.tick()
    assert acts == [
        [f"{BROKERS}-{ordinal}" for ordinal in each] for each in ((1, 3, 5), (2, 4), (0,))
    ]
    life.teardown()


FOUND_HERE = [each.name for each in rules() if each.by_model and each.name in WITHOUT]


@pytest.mark.soak
@pytest.mark.parametrize("rule_name", FOUND_HERE)
def test_each_rule_switched_off_is_found(rule_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model test is worth something: without the rule it fails."""
    switch_off(rule_name, monkeypatch)
    quick = settings(
        max_examples=300,
        stateful_step_count=40,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    with pytest.raises((AssertionError, BaseExceptionGroup)):
        run_state_machine_as_test(Life, settings=quick)
