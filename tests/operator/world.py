"""A world for the model test: an API server that fails, controllers that take their time, brokers.

Nothing settles by itself: `tick` moves each controller by one step. What the operator does is
judged in the moment in which it does it; a broken invariant is an AssertionError.
"""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from barnabas_operator.api.users import AclOperation, AclResourceType
from barnabas_operator.brokers import BrokersError
from barnabas_operator.ensemble import MemberAccess
from barnabas_operator.kube import PODS, SECRETS, STATEFUL_SETS, Document, Kind, KubeError
from barnabas_operator.names import MANUAL_ROLL, PAUSE_ROLL
from barnabas_operator.plan.observed import ClusterView, Images
from barnabas_operator.plan.topics import AlterConfig, CreateTopic, GrowPartitions, TopicView
from barnabas_operator.plan.user_acls import Acl
from barnabas_operator.plan.users import AclChange, CredentialChange
from barnabas_operator.reconcile.context import Context
from barnabas_operator.reconcile.reconciler import Key
from barnabas_operator.reconcile.steady import SteadyClusters
from barnabas_operator.resources.objects import digest
from barnabas_operator.restart_check import AdminAccess, CheckResult
from tests.operator import examples
from tests.operator.memory_kube import MemoryKube
from tests.operator.ports import MemoryBrokers, context_on

KEY = Key("default", "quickstart")
ENSEMBLE, BROKERS = "quickstart-zookeeper", "quickstart-broker"
MIN_ISR = 2
# Ticks that a pod needs to be ready (log recovery), and then to be in sync.
START_TICKS, CATCH_UP_TICKS = 2, 2
# As Kubernetes copies it from the node onto a pod.
ZONE = "topology.kubernetes.io/zone"
# Fewer than replicas: some brokers of a rack share partitions, and some do not.
RACKS = 2
BAD_IMAGE = "no-such-image"
# A label on what others made, and how the ids of their topics begin.
FOREIGN = "foreign"
# A value of a field as a newer version may have it.
TOPIC = "KafkaTopic"
USER = "KafkaUser"
MECHANISM = "SCRAM-SHA-512"
FOREIGN_ACL = Acl(resource=AclResourceType.TOPIC, name=FOREIGN, operation=AclOperation.READ)
NEWER = {"of": "a newer version"}


class OperatorCrash(BaseException):
    """The operator's process ends in the middle of a pass."""


@dataclass
class ApiFault:
    """What becomes of the API call with this number: refused, or done and not answered."""

    call: int
    status: int
    done: bool = False
    crash: bool = False


@dataclass
class Partition:
    """Replicas and ISR; the last one in sync stays in the ISR, as without unclean elections."""

    replicas: tuple[int, ...]
    isr: set[int] = field(default_factory=set)


class World(MemoryKube):
    """Everything outside of the operator."""

    def __init__(self) -> None:
        super().__init__()
        # The default StorageClass does not expand volumes.
        self.fixed_classes = {None}
        self.brokers = ModelBrokers(self)
        self.fault: ApiFault | None = None
        self.calls = 0
        self.failed = False
        self.between: Callable[[], None] | None = None
        self.lost_nodes: set[str] = set()
        self.age: dict[str, int] = {}
        self.leader = 0
        # What the watch has told; it tells when the controllers have made their step.
        self.revision = 0
        # The brokers that have gone in this pass.
        self.act: set[str] = set()
        self._reported = b""
        self._operators: dict[str, SteadyClusters] = {}
        # What each broker can speak with others, and what it speaks.
        self.protocols: dict[str, tuple[int, int]] = {}
        # The uids of resources that went while they said Retain, and the number of all that were.
        self.retained: set[str] = set()
        self.topics_made = 0
        # What the last KafkaUser of each name said when it went.
        self.last_policies: dict[str, str] = {}
        self.put(examples.secured(
            zookeeper={"replicas": 3, "storage": {"size": "1Gi"}},
            brokers={"replicas": 3, "storage": {"size": "2Gi"}, "rack": {"topologyKey": ZONE}},
        ))  # fmt: skip

    # --- the operator's side ----------------------------------------------------------------------

    def run_pass(self, images: Images, fault: ApiFault | None = None) -> None:
        """One pass of an operator, which may meet a fault or end in the middle."""
        self.fault, self.calls, self.failed = fault, 0, False
        self.act.clear()
        # A second operator, or one that starts again after a crash, remembers nothing.
        operator = self._operators.pop(images.operator, None)
        operator = operator or SteadyClusters(lambda *_: (self.revision, 0))
        try:
            operator.reconcile(KEY, self.context(images))
        except OperatorCrash:
            return
        except KubeError:
            pass
        finally:
            self.fault = None
        self._operators[images.operator] = operator

    def context(self, images: Images) -> Context:
        """The ports of an operator in this world."""
        return replace(
            context_on(self, self.brokers),
            images=images,
            index=self._index,
            retained=lambda uid: uid in self.retained,
            restart_check=self._restart_check,
            in_sync=self._in_sync,
            ensemble_mode=self._mode,
        )

    def _index(self, kind: Kind, namespace: str, _: str) -> list[Document]:
        return self.list(kind, namespace)

    def watch(self) -> None:
        """Every change of an object is another revision."""
        reported = pickle.dumps(self.objects)
        self.revision += reported != self._reported
        self._reported = reported

    def _restart_check(self, url: str, _access: AdminAccess) -> CheckResult:
        broker = _ordinal_of(url)
        at_risk = [
            name
            for name, each in self.brokers.partitions()
            if broker in each.isr and len(each.replicas) > 1 and len(each.isr) - 1 < MIN_ISR
        ]
        return CheckResult(ok=not at_risk, reason="; ".join(at_risk))

    def _in_sync(self, url: str, _access: AdminAccess) -> CheckResult:
        broker = _ordinal_of(url)
        behind = [n for n, p in self.brokers.partitions() if broker in {*p.replicas} - p.isr]
        return CheckResult(ok=not behind, reason=f"{len(behind)} partitions are behind")

    def _mode(self, address: str, _: MemberAccess) -> str:
        if not self.has_quorum():
            return ""
        return "leader" if int(address.rpartition(".")[2]) == self.leader else "follower"

    @contextmanager
    def _call(self) -> Iterator[None]:
        """One API call, with the fault that is due; another operator may come before it."""
        if (between := self.between) is not None:
            self.between = None
            between()
        self.calls += 1
        fault = self.fault if self.fault and self.fault.call == self.calls else None
        if fault and not fault.done:
            self._fail(fault)
        yield
        if fault:
            self._fail(fault)

    def _fail(self, fault: ApiFault) -> None:
        if fault.crash:
            raise OperatorCrash
        self.failed = True
        raise KubeError(fault.status, f"injected {fault.status}")

    @contextmanager
    def _request(self, what: str, *, write: bool = False) -> Iterator[None]:
        with self._call(), super()._request(what, write=write):
            yield

    def apply(self, body: Document, *, uid: str | None = None, dry_run: bool = False) -> Document:
        """See Kube; nothing of others is changed, and no broker that holds replicas is removed."""
        key = (body["kind"], body["metadata"]["namespace"], body["metadata"]["name"])
        assert not is_foreign(self.objects.get(key)), f"{key[2]} of another was taken over"
        if key == ("StatefulSet", "default", BROKERS) and key in self.objects:
            before = self.objects[key]["spec"]["replicas"]
            for removed in range(body["spec"]["replicas"], before):
                held = self.brokers.describe().replicas.get(removed, 0)
                assert not held, f"broker {removed} was removed with {held} replicas"
        return super().apply(body, uid=uid)

    def _delete(self, key: tuple[str, str, str]) -> None:
        if key[0] == PODS.kind:
            self._judge_deletion(key[2])
        super()._delete(key)

    # --- invariants -------------------------------------------------------------------------------

    def _judge_deletion(self, name: str) -> None:
        pod = self.pods()[name]
        assert not self.failed, f"{name} was deleted in a pass with an error"
        if pod_is_broken(pod):
            return
        cluster = self.find("KafkaCluster", "quickstart")
        notes = cluster["metadata"].get("annotations") or {}
        assert PAUSE_ROLL not in notes, f"{name} was deleted in a paused roll"
        asked = MANUAL_ROLL in (pod["metadata"].get("annotations") or {})
        policy = cluster["spec"].get("roll", {}).get("policy")
        approved = policy != "OnApproval" or (asked and not self.is_outdated(name))
        assert approved, f"{name} was deleted without approval"
        assert serves(pod), f"{name} was deleted though it was only not ready"
        away = [each for each in self.expected() if not serves(self.pods().get(each))]
        assert not away or self._are_of_one_act(name, away, cluster), (
            f"{name} was deleted while {away} were away"
        )
        if name.startswith(ENSEMBLE):
            others = [n for n in self.expected() if n.startswith(ENSEMBLE) and n != name]
            old = [n for n in others if self.is_outdated(n)]
            leads = name == f"{ENSEMBLE}-{self.leader}"
            assert not (leads and old), f"the leader {name} was deleted before {old}"
            return
        old = [n for n in self.expected() if n.startswith(ENSEMBLE) and self.is_outdated(n)]
        assert not old, f"{name} was deleted before {old} of the ensemble"
        # Those that go in one act are in the ISR yet.
        gone = {_ordinal_of(each) for each in (name, *away)}
        for partition, each in self.brokers.partitions():
            if gone & each.isr and len(each.replicas) > 1 and len(each.isr) >= MIN_ISR:
                left = len(each.isr - gone)
                assert left >= MIN_ISR, f"{name}: {partition} falls below its min ISR"
        controller = min({*self.brokers.live(), *gone})
        assert not (away and controller in gone), f"the controller {controller} did not go alone"
        self.act.add(name)

    def _are_of_one_act(self, name: str, away: Sequence[str], cluster: Document) -> bool:
        """Whether a broker goes with those that have gone in this pass: of one rack, so many."""
        limit = (cluster["spec"].get("roll") or {}).get("maxUnavailablePerRack", 1)
        racks = {rack_of(self.pods()[each]) for each in (name, *away) if each in self.pods()}
        return len(away) < limit and {*away} <= self.act and len(racks) == 1 and racks != {""}

    def _judge_protocol(self, name: str, owner: Document) -> None:
        """A broker that starts speaks what all others can, and they what it can."""
        (container,) = owner["spec"]["template"]["spec"]["containers"]
        text = self.objects["ConfigMap", "default", BROKERS]["data"]["server.properties"]
        image = container["image"]
        if image == BAD_IMAGE or "broker.id=7" in text:
            return
        newest = int(image.rpartition(":")[2])
        held = re.search(r"^inter.broker.protocol.version=3\.(\d+)", text, re.MULTILINE)
        spoken = int(held[1]) if held else newest
        self.protocols[name] = newest, spoken
        present = {other: self.protocols[other] for other in self.pods() if other in self.protocols}
        for other, (theirs, their_spoken) in present.items():
            assert spoken <= theirs, f"{name} speaks 3.{spoken}, {other} knows 3.{theirs}"
            assert their_spoken <= newest, f"{other} speaks 3.{their_spoken}, {name} 3.{newest}"

    def put_topic(self, name: str, **spec: Any) -> None:
        """A user applies a KafkaTopic, which is another one if there was none of the name."""
        document = examples.topic(name, **{"partitions": 3, "replicas": 3, **spec})
        found = self.objects.get(("KafkaTopic", "default", name))
        self.topics_made += found is None
        uid = found["metadata"]["uid"] if found else f"uid-of-{name}-{self.topics_made}"
        document["metadata"]["uid"] = uid
        self.put(document)

    def remove_topic(self, name: str) -> None:
        """A user deletes a KafkaTopic; what it said last is in the event."""
        document = self.find("KafkaTopic", name)
        if document["spec"]["deletionPolicy"] == "Retain":
            self.retained.add(document["metadata"]["uid"])
        self.remove("KafkaTopic", name)

    def put_user(self, name: str, *, rotate: str = "", **spec: Any) -> None:
        """A user applies a KafkaUser, which is another one if there was none of the name."""
        document = examples.user(name, **spec)
        found = self.objects.get((USER, "default", name))
        self.topics_made += found is None
        uid = found["metadata"]["uid"] if found else f"uid-of-{name}-{self.topics_made}"
        document["metadata"]["uid"] = uid
        if rotate:
            document["metadata"]["annotations"] = {"barnabas.io/rotate": rotate}
        self.put(document)

    def remove_user(self, name: str) -> None:
        """A user deletes a KafkaUser; what it said last is in the event."""
        document = self.find(USER, name)
        policy = self.last_policies[name] = document["spec"]["deletionPolicy"]
        if policy == "Retain":
            self.retained.add(document["metadata"]["uid"])
        self.remove(USER, name)

    def _collect_secrets(self) -> None:
        """What the garbage collector does with the Secrets of users that are gone."""
        uids = {body["metadata"]["uid"] for body in self.objects.values()}
        for key, body in [*self.objects.items()]:
            owners = body["metadata"].get("ownerReferences") or ()
            if key[0] == SECRETS.kind and not any(each["uid"] in uids for each in owners):
                self._forget(key)

    def lose_status(self, field: str) -> None:
        """A field of the cluster's status is lost, as where definitions are older."""
        self.find("KafkaCluster", "quickstart").get("status", {}).pop(field, None)

    def take_name(self, kind: str, name: str) -> None:
        """Somebody replaces an object of the operator by one that no resource controls."""
        if (kind, "default", name) in self.objects:
            self.remove(kind, name)
        head = {"name": name, "labels": {FOREIGN: ""}}
        self.put({"apiVersion": "v1", "kind": kind, "metadata": head, "spec": {"ports": []}})

    def return_names(self) -> None:
        """Whoever did so removes it."""
        for kind, _, name in [key for key, body in self.objects.items() if is_foreign(body)]:
            self.remove(kind, name)

    def pods(self) -> dict[str, Document]:
        """The pods by name."""
        return {name: body for (kind, _, name), body in self.objects.items() if kind == "Pod"}

    def expected(self) -> Sequence[str]:
        """The names of the pods that there should be."""
        return [
            f"{name}-{ordinal}"
            for name in (ENSEMBLE, BROKERS)
            if (body := self.objects.get(("StatefulSet", "default", name)))
            for ordinal in range(body["spec"]["replicas"])
        ]

    def is_outdated(self, name: str) -> bool:
        """Whether a pod has another template than its StatefulSet now."""
        owner = self.objects["StatefulSet", "default", name.rpartition("-")[0]]
        revision = self.pods()[name]["metadata"]["labels"]["controller-revision-hash"]
        return bool(revision != _revision(owner))

    def has_quorum(self) -> bool:
        """Whether two of three members serve."""
        return sum(serves(pod) for n, pod in self.pods().items() if n.startswith(ENSEMBLE)) > 1

    # --- the controllers --------------------------------------------------------------------------

    def tick(self) -> None:
        """One step of the controllers, of each kubelet, and of the brokers."""
        self.budget()
        for (kind, _, _), body in sorted(self.objects.items()):
            if kind == STATEFUL_SETS.kind:
                self._control(body)
        for name, pod in sorted(self.pods().items()):
            if pod["metadata"].get("deletionTimestamp"):
                if name not in self.lost_nodes:
                    self._forget(("Pod", "default", name))
                    self.age.pop(name, None)
            else:
                self.age[name] = self.age.get(name, 0) + 1
                self._kubelet(name, pod)
        members = [n for n, pod in sorted(self.pods().items()) if serves(pod)]
        if f"{ENSEMBLE}-{self.leader}" not in members:
            live = [_ordinal_of(n) for n in members if n.startswith(ENSEMBLE)]
            self.leader = live[-1] if live else 0
        self.brokers.tick()
        self._collect_secrets()
        self.watch()

    def _control(self, body: Document) -> None:
        name, revision = body["metadata"]["name"], _revision(body)
        for ordinal in range(body["spec"]["replicas"]):
            if f"{name}-{ordinal}" not in self.pods():
                self._pod(body, f"{name}-{ordinal}", revision, ready=False)
                labels = self.pods()[f"{name}-{ordinal}"]["metadata"]["labels"]
                labels[ZONE] = f"rack-{ordinal % RACKS}"
                if name == BROKERS:
                    self._judge_protocol(f"{name}-{ordinal}", body)
        for pod in self.pods().values():
            pod_name = pod["metadata"]["name"]
            owned = pod_name.rpartition("-")[0] == name
            if owned and _ordinal_of(pod_name) >= body["spec"]["replicas"]:
                pod["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:05Z"
        body["status"] = {
            "observedGeneration": body["metadata"]["generation"],
            "updateRevision": revision,
        }

    def _kubelet(self, name: str, pod: Document) -> None:
        # The template of the moment in which the pod was created is its revision.
        owner = self.objects["StatefulSet", "default", name.rpartition("-")[0]]
        if not self.is_outdated(name):
            pod["image"] = owner["spec"]["template"]["spec"]["containers"][0]["image"]
        pod["status"]["containerStatuses"] = []
        if pod.get("image") == BAD_IMAGE:
            waiting = {"waiting": {"reason": "ImagePullBackOff"}}
            pod["status"]["containerStatuses"] = [{"name": name.split("-")[-2], "state": waiting}]
        up = name not in self.lost_nodes and pod.get("image") != BAD_IMAGE
        ready = up and self.age[name] > START_TICKS
        pod["status"]["conditions"] = [{"type": "Ready", "status": "True" if ready else "False"}]

    def die(self, name: str) -> None:
        """A pod's process ends and starts again."""
        if name in self.pods():
            self.age[name] = 0
            self._kubelet(name, self.pods()[name])


class ModelBrokers(MemoryBrokers):
    """Topics whose partitions have replicas on the brokers of the world."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world
        self.placed: dict[str, list[Partition]] = {}
        self.caught_up: dict[int, int] = {}
        # The uid of the resource for which a topic was last created.
        self.made_for: dict[str, str] = {}
        # Users that another client has created.
        self.strangers: set[str] = set()

    def live(self) -> list[int]:
        """The brokers that serve."""
        pods = self.world.pods().items()
        return sorted(_ordinal_of(n) for n, p in pods if n.startswith(BROKERS) and serves(p))

    def partitions(self) -> list[tuple[str, Partition]]:
        """Every partition with its name."""
        return [(f"{t}-{n}", p) for t, each in self.placed.items() for n, p in enumerate(each)]

    def describe(self) -> ClusterView:
        """See Brokers."""
        live = self.live()
        replicas: dict[int, int] = {}
        for _, each in self.partitions():
            for broker in each.replicas:
                replicas[broker] = replicas.get(broker, 0) + 1
        return ClusterView(
            cluster_id="an-id",
            broker_ids=tuple(live),
            controller_id=live[0] if live else None,
            replicas=replicas,
            replica_sets=frozenset(frozenset(p.replicas) for _, p in self.partitions()),
            leaderless=tuple(n for n, p in self.partitions() if not p.isr & {*live}),
        )

    def create_topics(self, topics: Mapping[str, CreateTopic]) -> Mapping[str, BrokersError]:
        """See Brokers."""
        live = self.live()
        failed = {}
        for name, each in topics.items():
            if len(live) < each.replicas:
                text = f"{each.replicas} replicas, {len(live)} brokers"
                failed[name] = BrokersError("INVALID_REPLICATION_FACTOR", text, reachable=True)
        possible = {name: each for name, each in topics.items() if name not in failed}
        refused = super().create_topics(possible)
        for name in possible.keys() - refused.keys():
            placed = [
                tuple(live[(number + i) % len(live)] for i in range(possible[name].replicas))
                for number in range(possible[name].partitions)
            ]
            self.placed[name] = [Partition(replicas=each, isr={*each}) for each in placed]
            resource = self.world.objects.get((TOPIC, "default", name))
            self.made_for[name] = resource["metadata"]["uid"] if resource else ""
        return {**failed, **refused}

    def delete_topics(self, names: Collection[str]) -> Mapping[str, BrokersError]:
        """See Brokers; only what was created for a resource that is gone and did not say Retain."""
        resources = [body for (kind, _, _), body in self.world.objects.items() if kind == TOPIC]
        named = {body["metadata"]["name"] for body in resources}
        assert not named & set(names), f"{named & set(names)} deleted, and a resource names it"
        newer = [body for body in resources if body["spec"]["partitions"] == NEWER]
        assert not newer, f"{names} deleted beside a resource that cannot be parsed"
        self._judge_change(names)
        retained = {name for name in names if self.made_for.get(name) in self.world.retained}
        assert not retained, f"{retained} deleted, and the resource said Retain"
        failed = super().delete_topics(names)
        for name in set(names) - failed.keys():
            self.placed.pop(name, None)
        return failed

    def grow_partitions(self, topics: Mapping[str, GrowPartitions]) -> Mapping[str, BrokersError]:
        """See Brokers."""
        self._judge_change(topics)
        return super().grow_partitions(topics)

    def alter_configs(self, topics: Mapping[str, AlterConfig]) -> Mapping[str, BrokersError]:
        """See Brokers."""
        self._judge_change(topics)
        return super().alter_configs(topics)

    def _judge_change(self, names: Collection[str]) -> None:
        theirs = [
            n for n in names if n in self.views and self.views[n].topic_id.startswith(FOREIGN)
        ]
        assert not theirs, f"{theirs} was created by another client, and changed"

    def alter_credentials(
        self, users: Mapping[str, CredentialChange]
    ) -> Mapping[str, BrokersError]:
        """See Brokers; users of others stay, and only what its last resource gave up is removed."""
        strangers = self.strangers & users.keys()
        assert not strangers, f"{strangers} of another client were changed"
        for name, change in users.items():
            if change.mechanism:
                continue
            self._judge_removal(name)
            _, password = self.credentials[name][MECHANISM]
            assert password != FOREIGN, f"{name} was deleted, and another client has set it"
        return super().alter_credentials(users)

    def alter_acls(self, users: Mapping[str, AclChange]) -> Mapping[str, BrokersError]:
        """See Brokers; ACLs of others stay."""
        strangers = self.strangers & users.keys()
        assert not strangers, f"ACLs of {strangers} of another client were changed"
        for name, change in users.items():
            assert FOREIGN_ACL not in change.delete, f"an ACL of {name} was another client's"
            if change.delete and (USER, "default", name) not in self.world.objects:
                self._judge_removal(name)
        return super().alter_acls(users)

    def _judge_removal(self, name: str) -> None:
        resources = [body for (kind, _, _), body in self.world.objects.items() if kind == USER]
        named = {body["metadata"]["name"] for body in resources}
        assert name not in named, f"user {name} deleted, and a resource names it"
        newer = [body for body in resources if body["spec"].get("listener") == NEWER]
        assert not newer, f"user {name} deleted beside a resource that cannot be parsed"
        assert self.world.last_policies[name] == "Delete", f"user {name} deleted, to be retained"

    def create_user_elsewhere(self, name: str) -> None:
        """Another client creates a user, or sets the password of one that there is."""
        if not self.live():
            return
        found = self.world.objects.get((USER, "default", name))
        ours = found is not None and found.get("status", {}).get("username") == name
        if not (self.credentials.get(name) or ours):
            self.strangers.add(name)
        self.credentials.setdefault(name, {})[MECHANISM] = 4095, FOREIGN
        self.acls.setdefault(name, set()).add(FOREIGN_ACL)

    def create_elsewhere(self, name: str) -> None:
        """Another client creates a topic, after it has deleted the one that there was."""
        # With fewer replicas no broker of it could ever be restarted: that is no operator's doing.
        if len(live := self.live()[:3]) < 3:
            return
        self.views[name] = TopicView(
            name=name,
            topic_id=f"{FOREIGN}-{next(self.ids)}",
            partitions=1,
            replicas=3,
            config={"cleanup.policy": "compact"},
        )
        self.placed[name] = [Partition(replicas=tuple(live), isr={*live})]

    def move_from(self, size: int) -> None:
        """What `barnabas reassign plan drain` does: nothing is left above `size`."""
        for _, each in self.partitions():
            each.replicas = tuple(range(min(len(each.replicas), size)))
            each.isr = {*each.replicas}

    def tick(self) -> None:
        """Brokers leave the ISR when they are away, and come back after a while."""
        live = self.live()
        for broker in range(16):
            count = self.caught_up.get(broker, 0) + 1 if broker in live else 0
            self.caught_up[broker] = count
            for _, each in self.partitions():
                if broker not in each.replicas:
                    continue
                if broker not in live and len(each.isr) > 1:
                    each.isr.discard(broker)
                elif count > CATCH_UP_TICKS and each.isr & {*live}:
                    each.isr.add(broker)

    def _answer(self) -> None:
        if not self.live():
            raise BrokersError("_TRANSPORT", "no broker", reachable=False)


def is_foreign(body: Document | None) -> bool:
    """Whether an object is one that others made."""
    return body is not None and FOREIGN in (body["metadata"].get("labels") or {})


def inject(body: Document) -> None:
    """A mutating webhook that gives each container a variable."""
    if body["kind"] == STATEFUL_SETS.kind:
        for container in body["spec"]["template"]["spec"]["containers"]:
            names = {each["name"] for each in container.setdefault("env", [])}
            if "INJECTED" not in names:
                container["env"].append({"name": "INJECTED", "value": "x"})


def serves(pod: Document | None) -> bool:
    """Whether a pod is there, ready and not terminating."""
    if pod is None or pod["metadata"].get("deletionTimestamp"):
        return False
    return any(each["status"] == "True" for each in pod["status"]["conditions"])


def rack_of(pod: Document) -> str:
    """The rack that is on a pod; empty if none is."""
    return str(pod["metadata"]["labels"].get(ZONE, ""))


def pod_is_broken(pod: Document) -> bool:
    """Whether the kubelet says that it cannot start."""
    return bool(pod["status"].get("containerStatuses"))


def edited(world: World, **spec: Any) -> None:
    """A user changes the cluster's spec."""
    body = copy.deepcopy(world.find("KafkaCluster", "quickstart"))
    for name, value in spec.items():
        if isinstance(value, dict):
            body["spec"][name] = {**(body["spec"].get(name) or {}), **value}
        else:
            body["spec"][name] = value
    world.put(body)


def annotate(world: World, kind: str, name: str, note: str, value: str | None) -> None:
    """A user sets an annotation, or removes it."""
    meta = world.find(kind, name)["metadata"]
    kept = {key: text for key, text in (meta.get("annotations") or {}).items() if key != note}
    meta["annotations"] = kept if value is None else {**kept, note: value}


def _ordinal_of(text: str) -> int:
    """The number of a pod in its name, or in the URL of its admin port."""
    if text.startswith("http"):
        return int(text.partition("//")[2].rpartition(":")[0].rpartition(".")[2])
    return int(text.rpartition("-")[2])


def _revision(owner: Document) -> str:
    return f"{owner['metadata']['name']}-{digest(owner['spec']['template'])}"
