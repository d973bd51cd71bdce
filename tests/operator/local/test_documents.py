"""What is taken from a file, and everything that is wrong with one at once."""

from __future__ import annotations

import copy
import functools
from pathlib import Path
from typing import Any

import pytest

from barnabas_operator.api.clusters import Security
from barnabas_operator.local.documents import ManifestError, carry_statuses, choose, read_file
from tests.operator import examples
from tests.operator.local import laptop

Document = dict[str, Any]
OWN_CERTIFICATE = {"brokerCertChainAndKey": {"secretName": "own"}}


def _problems(*documents: Any, name: str | None = None) -> list[str]:
    with pytest.raises(ManifestError) as raised:
        choose(documents, name=name)
    return list(raised.value.problems)


def test_the_quickstart_as_it_is() -> None:
    """One cluster, two topics, one pipeline."""
    manifest = read_file(examples.QUICKSTART)
    assert manifest.cluster.meta.name == "quickstart"
    assert [each.meta.name for each in manifest.topics] == ["packages", "files"]
    assert [each.meta.name for each in manifest.pipelines] == ["packages-to-parquet"]
    assert len(manifest.documents) == 4


def test_of_several_clusters_one_is_named() -> None:
    """Topics of the others are left alone."""
    other = copy.deepcopy(laptop.cluster())
    other["metadata"]["name"] = "other"
    documents = [laptop.cluster(), other, laptop.topic(), laptop.topic("more", cluster="other")]
    manifest = choose(documents, name="other")
    assert manifest.cluster.meta.name == "other"
    assert [each.meta.name for each in manifest.topics] == ["more"]
    (problem,) = _problems(*documents)
    assert "several KafkaClusters (quickstart, other): choose with --name" in problem
    (problem,) = _problems(*documents, name="third")
    assert problem == "there is no KafkaCluster third; there is quickstart, other"


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ("text", "document 1: is no resource"),
        ({"kind": "KafkaConnect"}, "document 1: kind: is KafkaConnect; there are KafkaCluster, "),
        (
            {**laptop.topic(), "apiVersion": "barnabas.io/v1"},
            "document 1: apiVersion: is barnabas.io/v1, must be barnabas.io/v1alpha1",
        ),
        (laptop.topic(partitons=3), "KafkaTopic packages: spec.partitons: is no field; did you"),
        (laptop.topic(partitions="3"), "KafkaTopic packages: spec.partitions: is '3', must be a"),
        (laptop.topic(topicName=".."), "KafkaTopic packages: spec.topicName: cannot be . or .."),
        (laptop.topic(topicName="__consumer_offsets"), "is an internal topic of Kafka; brokers"),
        (
            laptop.topic(config={"min.compaction.lag.ms": "2", "max.compaction.lag.ms": "1"}),
            "KafkaTopic packages: spec.config.min.compaction.lag.ms=2: must be at most",
        ),
        (laptop.topic(replicas=3), "spec.replicas: is 3, and KafkaCluster quickstart has one bro"),
        (
            laptop.pipeline(sink={"parquet": {"path": "/data/../etc"}}),
            "KafkaPipeline packages-to-parquet: spec.sink.parquet.path: may not contain ..",
        ),
        (laptop.pipeline(trigger={"interval": "0s"}), "spec.trigger.interval: must be a second"),
        (laptop.pipeline(sink={}), "KafkaPipeline packages-to-parquet: spec.sink: give a sink"),
        ({**laptop.topic(), "metadata": {"name": 7}}, "metadata.name: is missing or is no text"),
    ],
)
def test_a_document_that_cannot_be_used(document: Any, problem: str) -> None:
    """Where it is, what is wrong, what would be right."""
    (found,) = _problems(document, laptop.cluster())
    assert problem in found


def test_a_missing_cluster_is_reported_with_the_rest() -> None:
    """Unless a document that cannot be read may be one."""
    missing = "there is no KafkaCluster; topics and pipelines need theirs beside"
    assert _problems() == _problems(laptop.topic()) == [missing]
    first, second = _problems(laptop.topic(partitions=0))
    assert "spec.partitions" in first
    assert second == missing
    for maybe in ({"kind": "KafkaCluter"}, {"kind": ["KafkaCluster"]}, "text"):
        (found,) = _problems(maybe, laptop.topic())
        assert found.startswith("document 1: ")


def test_references_are_checked_with_the_rest() -> None:
    """Not after the next attempt; what cannot be read is there all the same."""
    broken = laptop.cluster(brokers={})
    unreadable, dangling = _problems(broken, laptop.topic(), laptop.topic("t", cluster="nowhere"))
    assert "spec.brokers.storage" in unreadable
    assert "there is no KafkaCluster nowhere in its namespace; there is quickstart" in dangling
    reader = _user("reader", authentication={"type": "tsl"})
    asked = laptop.pipeline(user="reader")
    (found,) = _problems(laptop.secured_cluster(), reader, asked)
    assert "KafkaUser reader: spec.authentication.type" in found
    wrong, unfit = _problems(laptop.cluster(), laptop.topic("t", partitions=0),
                             laptop.topic(replicas=2))  # fmt: skip
    assert "KafkaTopic t: spec.partitions" in wrong
    assert "KafkaTopic packages: spec.replicas: is 2" in unfit


def test_two_resources_for_one_topic_are_refused() -> None:
    """Names of resources differ; the name of the topic in Kafka is the same."""
    (found,) = _problems(laptop.cluster(), laptop.topic("a"), laptop.topic("b", topicName="a"))
    assert found == (
        "KafkaTopic b: spec.topicName: KafkaTopic a has the topic a already; each has its own"
    )


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        (
            {
                "brokers": {"replicas": 3, "storage": {"size": "1Gi"}},
                "listeners": [
                    {"name": "in", "port": 9092},
                    {"name": "out", "type": "nodeport", "port": 9094},
                ],
            },
            "listeners: out: needs a nodePort where there are several brokers",
        ),
        ({"brokers": {"storage": {}}}, "brokers.storage: give either size or sizing"),
        (
            {"listeners": [{"name": "out", "type": "nodeport", "port": 9094}]},
            "listeners: one listener must be of type internal",
        ),
        (
            {
                "listeners": [
                    {"name": "a", "port": 9092, "authentication": {"type": "scram-sha-512"}}
                ]
            },
            "listeners: one listener must be of type internal, without authentication",
        ),
        (
            {
                "authorization": {"type": "simple"},
                "listeners": [{"name": "a", "port": 9092}, {"name": "b", "port": 9093}],
            },
            "authorization: every listener but one needs authentication",
        ),
        (
            {
                "authorization": {},
                "config": {"super.users": "User:a"},
                "listeners": [{"name": "a", "port": 9092}],
            },
            "config.super.users: follows from spec.authorization",
        ),
        (
            {"listeners": [{"name": "a", "port": 9092}, {"name": "b", "port": 9092}]},
            "listeners: 2 have the port 9092; each needs its own",
        ),
        (
            {"listeners": [{"name": "a", "port": 9092}, {"name": "a", "port": 9093}]},
            "listeners: 2 have the name a; each needs its own",
        ),
        (
            {"listeners": [{"name": "a", "port": 9092, "nodePort": 30000}]},
            "listeners: a: nodePort is for listeners of type nodeport",
        ),
        (
            {
                "listeners": [
                    {"name": "a", "port": 9092},
                    {"name": "b", "port": 9093, "type": "loadbalancer"},
                ]
            },
            "listeners: b: types other than internal and nodeport, and configuration, need",
        ),
        (
            {"listeners": [{"name": "a", "port": 9404}]},
            "listeners: a: name metrics and port 9404 are taken",
        ),
        ({"config": {"log.dirs": "/x"}}, "config.log.dirs: follows from the resource itself"),
        ({"config": {"log.retention.hour": "1"}}, "did you mean log.retention.hours"),
        ({"config": {"num.partitions": "many"}}, "config.num.partitions"),
    ],
)
def test_rules_that_the_api_server_would_hold(spec: Document, problem: str) -> None:
    """A file meets no API server; what its rules refuse is refused here."""
    (found,) = _problems(laptop.cluster() | {"spec": laptop.cluster()["spec"] | spec})
    assert found.startswith("KafkaCluster quickstart: spec.")
    assert problem in found


def _user(name: str = "billing", **spec: Any) -> Document:
    return laptop.bare(examples.user(name, **spec))


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        (
            {"authentication": {"passwordSecretRef": {"name": "own"}}},
            "authentication.passwordSecretRef: is a Secret of Kubernetes; remove it",
        ),
        (
            {"authentication": {"type": "tls", "rotationDays": 3}},
            "authentication.rotationDays: is for passwords that are generated",
        ),
        ({"username": "ANONYMOUS"}, "username: ANONYMOUS is the principal of clients without"),
        ({"clusterNamespace": "elsewhere"}, "clusterNamespace: is for Kubernetes"),
        (
            {"authorization": {"roles": [{"type": "producer"}]}},
            "authorization.roles[0]: producer and consumer need a topic",
        ),
        (
            {"authorization": {"roles": [{"type": "producer", "topic": "t", "group": "g"}]}},
            "authorization.roles[0]: group is for consumers",
        ),
        (
            {
                "authorization": {
                    "roles": [{"type": "consumer", "topic": "t", "transactionalId": "x"}]
                }
            },
            "authorization.roles[0]: transactionalId is for producers",
        ),
        (
            {"authorization": {"roles": [{"type": "streams", "topic": "t"}]}},
            "authorization.roles[0]: streams needs an applicationId",
        ),
        (
            {"authorization": {"acls": [{"resource": {"type": "topic"}, "operations": ["Read"]}]}},
            "authorization.acls[0].resource: name is for all types but cluster",
        ),
        (
            {
                "authorization": {
                    "acls": [
                        {"resource": {"type": "cluster", "name": "c"}, "operations": ["Create"]}
                    ]
                }
            },
            "authorization.acls[0].resource: name is for all types but cluster",
        ),
        (
            {
                "authorization": {
                    "acls": [
                        {
                            "resource": {"type": "user", "name": "billing"},
                            "operations": ["CreateTokens"],
                        }
                    ]
                }
            },
            "authorization.acls[0].resource: the name of a user is its principal, such as User:",
        ),
        ({"authentication": {"type": "tls"}}, "authentication: KafkaCluster quickstart has no"),
        ({"listener": "other"}, "authentication: KafkaCluster quickstart has no listener other"),
        ({"cluster": "other"}, "cluster: there is no KafkaCluster other"),
    ],
)
def test_a_user_that_cannot_be(spec: Document, problem: str) -> None:
    """What the API server refuses, what its cluster does not have, and what needs a Secret."""
    # Beside each other: what the user cannot be, and what its cluster does not have.
    found = _problems(laptop.secured_cluster(), _user(**spec))
    assert any(each.startswith(f"KafkaUser billing: spec.{problem}") for each in found)


def test_names_of_users_become_names_of_directories() -> None:
    """None leads out of the directory."""
    for name in ("../../etc", "a/b", ".hidden", "Upper"):
        (found,) = _problems(laptop.secured_cluster(), _user(name))
        assert f"KafkaUser {name}: metadata.name: must be small letters" in found
    choose([laptop.secured_cluster(), _user("a.b-c")])


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        (
            {"listeners": [{"name": "a", "port": 9092, "tls": {}}]},
            "listeners: a: needs tls and authentication",
        ),
        (
            {"listeners": [{**examples.SECURED_LISTENER, "name": "replication"}]},
            "listeners: replication: name replication and port 9091 are the brokers' own",
        ),
        ({"config": {"super.users": "User:a"}}, "config.super.users: follows from"),
        (
            {"config": {"allow.everyone.if.no.acl.found": "true"}},
            "config.allow.everyone.if.no.acl.found: opens",
        ),
        (
            {"certificates": {"clusterCa": {"secretName": "own"}}},
            "certificates.clusterCa: is a Secret of Kubernetes",
        ),
        (
            {"listeners": [{**examples.SECURED_LISTENER, "tls": OWN_CERTIFICATE}]},
            "listeners: scram: tls.brokerCertChainAndKey: is a Secret of Kubernetes",
        ),
        (
            {"certificates": {"clientsCa": {"secretName": "own"}}},
            "certificates.clientsCa: is a Secret of Kubernetes",
        ),
    ],
)
def test_a_secured_cluster_that_cannot_be(spec: Document, problem: str) -> None:
    """As on Kubernetes, and what there needs a Secret."""
    (found,) = _problems(laptop.secured_cluster(**spec))
    assert found.startswith("KafkaCluster quickstart: spec.")
    assert problem in found


def test_plain_listeners_of_a_secured_cluster_are_reported(tmp_path: Path) -> None:
    """All of it is told, each with a remedy; the option secures it, and keeps what is secured."""
    listeners = [
        {"name": "plain", "port": 9092},
        {"name": "certs", "port": 9094, "tls": {}, "authentication": {"type": "tls"}},
        {"name": "open", "port": 9095, "tls": {}},
    ]
    machine = laptop.Laptop(tmp_path)
    machine.write(laptop.secured_cluster(listeners=listeners), laptop.topic())
    with pytest.raises(ManifestError) as raised:
        read_file(machine.file)
    assert [each.partition("spec.listeners: ")[2].split(":")[0]
            for each in raised.value.problems] == ["plain", "open"]  # fmt: skip
    assert all("`--secure` gives it both" in each for each in raised.value.problems)
    spec = read_file(machine.file, secure=True).cluster.body.spec
    assert spec.secured
    assert [each.security_protocol for each in spec.listeners] == ["SASL_SSL", "SSL", "SASL_SSL"]
    assert [each.port for each in spec.listeners] == [9092, 9094, 9095]


def created_as(mode: Security, _: str) -> Security:
    """What was recorded of any cluster."""
    return mode


def test_a_cluster_stays_secured_or_insecure_as_created(tmp_path: Path) -> None:
    """A file that says otherwise is told so, and one that a new cluster would be secured by."""
    machine = laptop.Laptop(tmp_path)
    document = laptop.bare(examples.cluster(listeners=[{"name": "plain", "port": 9092}]))
    for said in (None, True, False):
        for mode in Security:
            document["spec"]["insecure"] = said
            machine.write(document)
            found = read_file(machine.file, recorded=functools.partial(created_as, mode))
            secured = mode is Security.SECURED
            assert found.cluster.body.spec.secured is secured
            silent = said is None and not secured
            assert bool(found.notes) is (said is secured or silent)
            assert not silent or "add insecure: true to its spec" in found.notes[0]
    with pytest.raises(ManifestError, match="was created insecure, and stays so"):
        read_file(machine.file, recorded=lambda _: Security.INSECURE, secure=True)


def test_the_option_secures_the_cluster_that_is_named(tmp_path: Path) -> None:
    """Another one of the file may have been created insecure."""
    machine = laptop.Laptop(tmp_path)
    named, other = laptop.cluster(), laptop.cluster()
    other["metadata"]["name"] = "other"
    machine.write(named, other)
    modes = {"other": Security.INSECURE}
    found = read_file(machine.file, name="quickstart", recorded=modes.get, secure=True)
    assert (found.cluster.meta.name, found.cluster.body.spec.secured) == ("quickstart", True)
    with pytest.raises(ManifestError, match="KafkaCluster other was created insecure"):
        read_file(machine.file, name="other", recorded=modes.get, secure=True)


def test_the_person_at_the_machine_is_a_user() -> None:
    """Of the type of the first listener, and a super user; not where a resource has the name."""
    manifest = choose([laptop.secured_cluster(), _user("billing")])
    assert [each.meta.name for each in manifest.users] == ["admin", "billing"]
    authorization = manifest.cluster.body.spec.authorization
    assert authorization is not None
    assert authorization.super_users == ("admin",)
    for own in (_user("admin"), _user("other", username="admin")):
        manifest = choose([laptop.secured_cluster(), own])
        assert [each.meta.name for each in manifest.users] == [own["metadata"]["name"]]
        assert manifest.cluster.body.spec.authorization is None
    assert choose([laptop.cluster()]).users == ()


def test_the_user_of_a_pipeline() -> None:
    """One of the file and of its cluster; without one it is the person's, and is told so."""
    vault, topic = laptop.secured_cluster(), laptop.topic()
    reader, admin = _user("archivist"), _user("boss", username="admin")
    for user in ("archivist", "admin"):
        choose([vault, topic, reader, laptop.pipeline(user=user)])
    choose([laptop.cluster(), topic, laptop.pipeline()])
    where = "KafkaPipeline packages-to-parquet: spec.user: "
    for given, problem in (
        ([vault, reader, laptop.pipeline(user="a")], "there is no KafkaUser a; there is archivist"),
        ([vault, laptop.pipeline(user="a")], "there is no KafkaUser a; there is none"),
        ([vault, admin, laptop.pipeline(user="admin")], "there is no KafkaUser admin; there is bo"),
        ([laptop.cluster(), laptop.pipeline(user="admin")], "there is no KafkaUser admin"),
    ):
        (found,) = _problems(*given)
        assert found.startswith(where + problem)
    other = laptop.cluster() | {"metadata": {"name": "other"}}
    pipeline = laptop.pipeline(cluster="other", user="archivist")
    (found,) = _problems(vault, other, reader, pipeline)
    assert found == f"{where}KafkaUser archivist is a user of KafkaCluster quickstart, not of other"


def test_a_pipeline_without_a_user_in_a_secured_cluster_is_reported(tmp_path: Path) -> None:
    """Kubernetes would wait for one."""
    machine = laptop.Laptop(tmp_path)
    machine.write(laptop.cluster(), laptop.topic(), laptop.pipeline())
    assert read_file(machine.file).notes == ()
    (note,) = read_file(machine.file, secure=True).notes
    assert note.startswith("KafkaPipeline packages-to-parquet names no KafkaUser, and connects as")
    assert note.endswith("on Kubernetes it needs spec.user")


def test_a_cluster_of_another_namespace_is_refused_by_name() -> None:
    """There is one namespace on a laptop."""
    topic = laptop.topic(clusterNamespace="elsewhere")
    (problem,) = _problems(laptop.cluster(), topic)
    assert "spec.clusterNamespace: is for Kubernetes" in problem
    choose([laptop.cluster(), laptop.topic(clusterNamespace="default")])


def test_names_become_names_of_services() -> None:
    """On a laptop they would do; on Kubernetes they would not."""
    document = laptop.cluster() | {"metadata": {"name": "Quick.Start"}}
    assert "metadata.name must be small letters" in _problems(document)[0]


def test_a_cluster_without_listeners_has_the_plain_one() -> None:
    """As on Kubernetes, where it is insecure."""
    document = laptop.cluster()
    del document["spec"]["listeners"]
    (listener,) = choose([document]).cluster.body.spec.listeners
    assert (listener.name, listener.port, listener.is_plain) == ("plain", 9092, True)


def test_a_resource_is_there_once() -> None:
    """The second of two would win in silence."""
    (problem,) = _problems(laptop.cluster(), laptop.topic(), laptop.topic())
    assert problem == "KafkaTopic packages: is there 2 times; give each a name of its own"


def test_a_cluster_that_is_not_in_the_file() -> None:
    """It says which there are."""
    (problem,) = _problems(laptop.cluster(), laptop.topic(cluster="quikstart"))
    assert "spec.cluster: there is no KafkaCluster quikstart in its namespace" in problem
    assert "there is quickstart" in problem


def test_all_errors_are_reported_with_the_file(tmp_path: Path) -> None:
    """Not one mistake per attempt."""
    machine = laptop.Laptop(tmp_path)
    machine.write(laptop.cluster(brokers={}), laptop.topic(partitions=0), {"kind": "Service"})
    with pytest.raises(ManifestError) as raised:
        read_file(machine.file)
    assert len(raised.value.problems) == 3
    assert all(problem.startswith(f"{machine.file}: ") for problem in raised.value.problems)


MISTAKES = """\
apiVersion: barnabas.io/v1alpha1
kind: KafkaCluster
metadata: {name: laptop}
spec:
  brokers: {replicas: many, storage: {size: 1Gi, colour: red}}
  config:
    log.retention.hour: 5
  listeners:
    - {name: plain, port: 80}
    - name: other
      prt: 9093
  insecure: true
---
apiVersion: barnabas.io/v1alpha1
kind: KafkaTopic
metadata: {name: t}
spec:
  cluster: laptop
  partitions: 0
  partitions: 3
---
apiVersion: barnabas.io/v1alpha1
kind: KafkaUser
metadata: {name: Shop}
spec:
  cluster: laptop
  authentication:
    type: scram
    passwordSecretRef: {name: own}
  authorization:
    roles:
      - {type: producer, topics: t}
      - {type: writer, topic: t}
    acls:
      - resource: {type: topic, name: t}
        operations: [Read, Wriet]
  quotas: {producerByteRate: 0}
---
apiVersion: barnabas.io/v1alpha1
kind: KafkaUser
metadata: {name: Billing}
spec:
  cluster: laptop
  authentication:
    passwordSecretRef: {name: own}
  authorization:
    roles:
      - {type: consumer, group: g}
---
kind: Service
"""


def test_every_mistake_has_its_line(tmp_path: Path) -> None:
    """All of one resource too, its settings among them."""
    path = tmp_path / "file.yaml"
    path.write_text(MISTAKES)
    with pytest.raises(ManifestError) as raised:
        read_file(path)
    reported = [problem.removeprefix(f"{path}: ") for problem in raised.value.problems]
    assert [problem.rpartition(": ")[0] for problem in reported] == [
        "line 5: KafkaCluster laptop: spec.brokers.replicas",
        "line 5: KafkaCluster laptop: spec.brokers.storage.colour",
        "line 7: KafkaCluster laptop: spec.config.log.retention.hour",
        "line 9: KafkaCluster laptop: spec.listeners[0].port",
        "line 10: KafkaCluster laptop: spec.listeners[1].port: is missing",
        "line 11: KafkaCluster laptop: spec.listeners[1].prt",
        "line 20: spec.partitions",
        "line 28: KafkaUser Shop: spec.authentication.type",
        "line 32: KafkaUser Shop: spec.authorization.roles[0].topics",
        "line 33: KafkaUser Shop: spec.authorization.roles[1].type",
        "line 36: KafkaUser Shop: spec.authorization.acls[0].operations[1]",
        "line 37: KafkaUser Shop: spec.quotas.producerByteRate",
        "line 41: KafkaUser Billing: metadata.name",
        (
            "line 45: KafkaUser Billing: spec.authentication.passwordSecretRef: is a Secret of"
            " Kubernetes; remove it"
        ),
        "line 48: KafkaUser Billing: spec.authorization.roles[0]",
        "line 50: document 5: kind",
    ]
    assert "did you mean log.retention.hours" in reported[2]
    right = MISTAKES.partition("---")[0]
    for wrong, instead in (
        ("many", "1"), (", colour: red", ""), ("80}", "8080}"), ("prt", "port"),
        ("hour:", "hours:"),
    ):  # fmt: skip
        right = right.replace(wrong, instead)
    path.write_text(right)
    assert read_file(path).cluster.meta.name == "laptop"


def test_settings_need_no_quotes(tmp_path: Path) -> None:
    """Numbers and truth values are what Kafka has for them; nothing is what is no setting."""
    path = tmp_path / "file.yaml"
    config = (
        "{num.partitions: 3, auto.create.topics.enable: no, log.cleaner.io.buffer.load.factor: 0.5}"
    )
    path.write_text(
        "apiVersion: barnabas.io/v1alpha1\nkind: KafkaCluster\nmetadata: {name: a}\n"
        f"spec:\n  insecure: true\n  brokers: {{storage: {{size: 1Gi}}}}\n  config: {config}\n---\n"
        "apiVersion: barnabas.io/v1alpha1\nkind: KafkaTopic\nmetadata: {name: t}\n"
        "spec: {cluster: a, config: {retention.ms: 5000}}\n"
    )
    manifest = read_file(path)
    assert manifest.cluster.body.spec.config == {
        "num.partitions": "3",
        "auto.create.topics.enable": "false",
        "log.cleaner.io.buffer.load.factor": "0.5",
    }
    assert manifest.topics[0].body.spec.config == {"retention.ms": "5000"}


@pytest.mark.parametrize("zookeeper", [None, {"replicas": 3}, {"type": "apache"}])
def test_zookeeper_is_said_where_it_means_something(
    tmp_path: Path, zookeeper: dict[str, Any] | None
) -> None:
    """A claim never does on a laptop, and without a type all of it is for Kubernetes."""
    document = laptop.cluster()
    document["spec"].pop("zookeeper")
    if zookeeper is not None:
        document["spec"]["zookeeper"] = zookeeper
    machine = laptop.Laptop(tmp_path)
    machine.write(document)
    found = read_file(machine.file).cluster.body.spec.zookeeper
    assert found.replicas == (zookeeper or {}).get("replicas", 1)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"a: [1", "line 1, column 6: this is no YAML"),
        (b"\xff\xfe\x00", "it is no UTF-8 text"),
        (b"", "there is no KafkaCluster"),
    ],
)
def test_files_that_are_no_manifests(tmp_path: Path, content: bytes, problem: str) -> None:
    """The file is named, and the line where there is one."""
    path = tmp_path / "odd.yaml"
    path.write_bytes(content)
    with pytest.raises(ManifestError, match=problem):
        read_file(path)
    with pytest.raises(ManifestError, match=r"cannot read .*: No such file"):
        read_file(tmp_path / "none.yaml")


def test_statuses_are_carried_to_the_same_resources() -> None:
    """By kind and name; a status in the file is nobody's word."""
    before = [laptop.topic() | {"status": {"topicId": "old"}}, laptop.cluster()]
    now = [laptop.topic() | {"status": {"topicId": "forged"}}, laptop.cluster(), laptop.pipeline()]
    carried = carry_statuses(now, before)
    assert [each.get("status") for each in carried] == [{"topicId": "old"}, None, None]
