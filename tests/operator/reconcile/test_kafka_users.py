"""KafkaUsers of a cluster on a fake API server: credentials, ACLs, Secrets, statuses, deletions."""

from __future__ import annotations

import contextlib
import json
import logging
import re
from base64 import b64decode, b64encode
from dataclasses import replace
from math import log2
from typing import Any

import pytest

from barnabas_operator.api.users import AclOperation, AclResourceType
from barnabas_operator.brokers import BrokersError
from barnabas_operator.kube import USERS, Document, KubeError
from barnabas_operator.plan.user_acls import Acl
from barnabas_operator.reconcile.reconciler import Key, reconcile
from barnabas_operator.reconcile.user_files import generate_password
from tests.operator import examples
from tests.operator.memory_kube import MemoryKube
from tests.operator.ports import NOW, MemoryBrokers, context_on, user_ledger

KEY = Key("default", "quickstart")
SHA_512, SHA_256 = "SCRAM-SHA-512", "SCRAM-SHA-256"
READ = Acl(resource=AclResourceType.TOPIC, name="orders", operation=AclOperation.READ)
FOREIGN = Acl(resource=AclResourceType.TOPIC, name="other", operation=AclOperation.WRITE)


class Bench:
    """An API server with a cluster that serves, and its brokers."""

    def __init__(self, *documents: Document, cluster: Document | None = None) -> None:
        self.brokers = MemoryBrokers()
        self.kube = MemoryKube(cluster or examples.secured())
        self.run_pass()
        self.kube.settle()
        self.run_pass()
        for document in documents:
            self.kube.put(document)
        self.run_pass()

    def run_pass(self, *, now: str = NOW) -> None:
        """One pass; `writes` are its own."""
        self.kube.writes.clear()
        reconcile(KEY, replace(context_on(self.kube, self.brokers), now=now))

    def settle(self) -> None:
        """A change of the cluster's pods, and two passes after it."""
        for _ in range(6):
            self.kube.settle()
            self.run_pass()

    def ready(self, name: str = "billing") -> tuple[str, str, str]:
        """Status, reason and message of a user's Ready."""
        found = self.condition("Ready", name)
        return found["status"], found["reason"], found["message"]

    def condition(self, kind: str, name: str = "billing") -> dict[str, Any]:
        """A condition of a user; empty if there is none."""
        conditions = self.kube.find("KafkaUser", name)["status"]["conditions"]
        return next((each for each in conditions if each["type"] == kind), {})

    def secret(self, name: str = "billing") -> dict[str, str]:
        """The texts in a Secret."""
        data = self.kube.find("Secret", name)["data"]
        return {key: b64decode(text).decode() for key, text in data.items()}

    def password(self, name: str = "billing", mechanism: str = SHA_512) -> str:
        """The password that the brokers take."""
        return self.brokers.credentials[name][mechanism][1]

    def annotate(self, **annotations: str) -> None:
        """Annotate the KafkaUser."""
        notes = {f"barnabas.io/{name}": text for name, text in annotations.items()}

        def change(body: Document) -> None:
            body["metadata"].setdefault("annotations", {}).update(notes)

        self.kube.edit("KafkaUser", "billing", change)

    def foreign(self, name: str = "billing") -> None:
        """Another client creates the user."""
        self.brokers.credentials[name] = {SHA_512: (4095, "theirs")}
        self.brokers.acls[name] = {FOREIGN}


def given(text: str, name: str = "given") -> Document:
    """A Secret of a user."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name},
        "data": {"password": b64encode(text.encode()).decode()},
    }


BY_SECRET = {"type": "scram-sha-512", "passwordSecretRef": {"name": "given"}}


def test_a_user_is_created_with_its_acls_and_its_secret() -> None:
    """What the Secret has is what the brokers take, and the status names it."""
    bench = Bench(examples.user())
    assert bench.ready() == (
        "True", "Ready", "the user has its SCRAM-SHA-512 credential and 3 ACLs",
    )  # fmt: skip
    secret = bench.secret()
    assert (secret["username"], secret["password"]) == ("billing", bench.password())
    assert secret["bootstrap.servers"] == "quickstart-bootstrap.default.svc:9095"
    assert len(secret["password"]) == 32
    assert sorted(str(acl) for acl in bench.brokers.acls["billing"]) == [
        "allow Describe on topic orders", "allow Read on group billing",
        "allow Read on topic orders",
    ]  # fmt: skip
    status = bench.kube.find("KafkaUser", "billing")["status"]
    assert (status["username"], status["secret"]) == ("billing", "billing")
    (owner,) = bench.kube.find("Secret", "billing")["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"]) == ("KafkaUser", "billing")
    assert "finalizers" not in bench.kube.find("KafkaUser", "billing")["metadata"]


def test_a_steady_pass_changes_nothing() -> None:
    """Neither in Kubernetes nor in Kafka."""
    bench = Bench(examples.user(), given("x"), examples.user("other", authentication=BY_SECRET))
    bench.run_pass()
    bench.brokers.steps.clear()
    bench.run_pass()
    assert bench.kube.writes == []
    assert bench.brokers.steps == []


def test_a_given_password_is_followed() -> None:
    """Another value in the Secret of the spec is another password."""
    bench = Bench(given("pencil"), examples.user(authentication=BY_SECRET))
    assert bench.password() == bench.secret()["password"] == "pencil"
    bench.kube.put(given("crayon"))
    bench.run_pass()
    assert bench.password() == bench.secret()["password"] == "crayon"


def test_a_given_password_that_is_missing_or_cannot_be_used() -> None:
    """Nothing is created; the message says which Secret and why, not what is in it."""
    bench = Bench(examples.user(authentication=BY_SECRET))
    assert bench.ready()[:2] == ("False", "PasswordSecretNotFound")
    bench.kube.put(given("tr0ub4dor\n"))
    bench.run_pass()
    assert bench.ready() == (
        "False", "InvalidPassword",
        "Secret given, key password: the password ends with a line break; write it without one",
    )  # fmt: skip
    assert bench.brokers.credentials == {}
    assert ("Secret", "default", "billing") not in bench.kube.objects
    bench.kube.put(given("tr0ub4dor"))
    bench.run_pass()
    assert bench.ready()[0] == "True"


def test_an_annotation_rotates_the_password_once() -> None:
    """Another value is another password; the same value is not."""
    bench = Bench(examples.user())
    first = bench.password()
    bench.annotate(rotate="1")
    bench.run_pass()
    second = bench.password()
    assert first != second == bench.secret()["password"]
    bench.run_pass()
    assert bench.password() == second
    bench.annotate(rotate="2")
    bench.run_pass()
    assert bench.password() not in (first, second)


def test_an_annotation_on_creation_rotates_nothing() -> None:
    """The first password is the one that it asks for."""
    document = examples.user()
    document["metadata"]["annotations"] = {"barnabas.io/rotate": "1"}
    bench = Bench(document)
    first = bench.password()
    bench.run_pass()
    assert bench.password() == first


def test_a_schedule_rotates_the_password() -> None:
    """At the end of its days and once, for brokers and Secret; without one it stays."""
    bench = Bench(examples.user(authentication={"rotationDays": 30}))
    first = bench.password()
    bench.run_pass(now="2026-02-01T03:04:04Z")
    assert (bench.password(), bench.kube.writes) == (first, [])
    bench.run_pass(now="2026-02-01T03:04:05Z")
    second = bench.password()
    assert first != second == bench.secret()["password"]
    bench.run_pass(now="2026-03-03T03:04:04Z")
    assert (bench.password(), bench.kube.writes) == (second, [])
    bench.run_pass(now="2026-03-03T03:04:05Z")
    assert bench.password() not in (first, second)
    assert bench.ready()[0] == "True"
    bench.kube.edit("KafkaUser", "billing", lambda body: body["spec"].pop("authentication"))
    third = bench.password()
    bench.run_pass(now="2027-01-01T00:00:00Z")
    assert bench.password() == third == bench.secret()["password"]


def test_rotation_of_a_given_password_is_a_warning() -> None:
    """The operator does not write into Secrets of users."""
    bench = Bench(given("pencil"), examples.user(authentication=BY_SECRET))
    bench.annotate(rotate="1")
    bench.run_pass()
    assert bench.password() == "pencil"
    assert "change Secret given instead" in bench.condition("Warning")["message"]


def test_drift_is_reverted() -> None:
    """ACLs and credentials that another client removed or replaced are as before."""
    bench = Bench(examples.user())
    password = bench.password()
    bench.brokers.acls["billing"].discard(READ)
    bench.run_pass()
    assert READ in bench.brokers.acls["billing"]
    bench.brokers.credentials["billing"] = {}
    bench.run_pass()
    assert bench.password() == password
    bench.brokers.credentials["billing"] = {SHA_512: (4095, "theirs")}
    bench.run_pass()
    assert bench.password() == password


def test_a_secret_that_was_deleted_or_edited() -> None:
    """Without its Secret a user gets a new password; one that was typed in counts."""
    bench = Bench(examples.user())
    first = bench.password()
    bench.kube.remove("Secret", "billing")
    bench.run_pass()
    assert first != bench.password() == bench.secret()["password"]

    def change(body: Document) -> None:
        body["data"]["password"] = b64encode(b"typed").decode()

    bench.kube.edit("Secret", "billing", change)
    bench.run_pass()
    assert bench.password() == "typed"
    assert "sasl.password=typed\n" in bench.secret()["librdkafka.properties"]


def test_another_address_sets_no_credential() -> None:
    """The Secret is written, the password is the same; the next pass has nothing to do."""
    listeners = [dict(each) for each in examples.LISTENERS]
    bench = Bench(examples.user(), cluster=examples.secured(listeners=listeners))
    bench.brokers.steps.clear()
    listeners[1]["port"] = 9099
    bench.kube.put(examples.secured(listeners=listeners))
    bench.run_pass()
    assert bench.secret()["bootstrap.servers"].endswith(":9099")
    assert bench.brokers.steps == []
    bench.settle()
    assert bench.kube.writes == []
    assert bench.brokers.steps == []


def test_acls_that_the_resource_no_longer_has_are_deleted() -> None:
    """Only those that the operator created; those of others stay, and are named."""
    bench = Bench(examples.user())
    bench.brokers.acls["billing"].add(FOREIGN)
    bench.kube.put(examples.user(authorization={"acls": [_acl("orders", "Write")]}))
    bench.run_pass()
    assert sorted(map(str, bench.brokers.acls["billing"])) == [
        "allow Write on topic orders", "allow Write on topic other",
    ]  # fmt: skip
    bench.run_pass()
    text = "the user has ACLs that another client has created: allow Write on topic other"
    assert bench.condition("Warning")["message"] == text


def _acl(topic: str, *operations: str) -> Document:
    return {"resource": {"type": "topic", "name": topic}, "operations": list(operations)}


def test_quotas_follow_the_resource() -> None:
    """What others have set is left alone and named; drift is reverted; they go with the user."""
    bench = Bench(examples.user(quotas={"producerByteRate": 1000, "consumerByteRate": 500}))
    assert bench.brokers.quotas["billing"] == {
        "producer_byte_rate": 1000, "consumer_byte_rate": 500,
    }  # fmt: skip
    bench.brokers.quotas["billing"] |= {"producer_byte_rate": 1, "request_percentage": 7}
    bench.kube.put(examples.user(quotas={"producerByteRate": 1000}))
    bench.run_pass()
    kept = {"producer_byte_rate": 1000, "request_percentage": 7}
    assert bench.brokers.quotas["billing"] == kept
    assert "another client has set: request_percentage" in bench.condition("Warning")["message"]
    bench.kube.remove("KafkaUser", "billing")
    bench.run_pass()
    assert bench.brokers.quotas["billing"] == {"request_percentage": 7}


def test_brokers_without_quotas_refuse_a_user_that_has_some() -> None:
    """An older image: nothing is created, and the message says what to do; others are served."""
    bench = Bench()
    bench.brokers.has_quotas = False
    bench.kube.put(examples.user(quotas={"requestPercentage": 5}))
    bench.kube.put(examples.user("other"))
    bench.run_pass()
    assert bench.ready()[:2] == ("False", "QuotasUnsupported")
    assert "billing" not in bench.brokers.credentials
    assert bench.ready("other")[0] == "True"


def test_an_existing_user_is_taken_over_only_by_an_annotation() -> None:
    """Its password would be replaced. Afterwards it is managed, and its own ACLs stay."""
    bench = Bench()
    bench.foreign()
    bench.kube.put(examples.user())
    bench.run_pass()
    assert bench.ready()[:2] == ("False", "AlreadyExists")
    assert "barnabas.io/adopt=resource" in bench.ready()[2]
    assert bench.password() == "theirs"
    assert bench.brokers.acls["billing"] == {FOREIGN}
    assert ("Secret", "default", "billing") not in bench.kube.objects
    assert user_ledger(bench.kube) == {}
    bench.annotate(adopt="user")
    bench.run_pass()
    assert bench.ready()[:2] == ("False", "InvalidAnnotation")
    bench.annotate(adopt="resource")
    bench.run_pass()
    assert bench.ready()[0] == "True"
    assert bench.password() == bench.secret()["password"]
    assert FOREIGN in bench.brokers.acls["billing"]


def test_users_without_a_resource_are_never_touched() -> None:
    """Not when resources come, change and go."""
    bench = Bench()
    bench.foreign("legacy")
    bench.kube.put(examples.user())
    bench.run_pass()
    bench.kube.remove("KafkaUser", "billing")
    bench.run_pass()
    assert bench.password("legacy") == "theirs"
    assert bench.brokers.acls["legacy"] == {FOREIGN}


def test_the_older_of_two_resources_has_the_user() -> None:
    """The other one is told; when the first goes it takes over without another password."""
    younger = examples.user("younger", username="shared", authorization={"acls": []})
    younger["metadata"]["creationTimestamp"] = "2026-02-01T00:00:00Z"
    bench = Bench(younger, examples.user("older", username="shared"))
    assert bench.ready("older")[0] == "True"
    assert bench.ready("younger")[:2] == ("False", "Conflict")
    assert "KafkaUser older" in bench.ready("younger")[2]
    bench.kube.remove("KafkaUser", "older")
    bench.run_pass()
    assert bench.ready("younger")[0] == "True"
    assert bench.password("shared") == bench.secret("younger")["password"]
    assert bench.brokers.acls["shared"] == set()


@pytest.mark.parametrize(("policy", "survives"), [("Delete", False), ("Retain", True)])
def test_a_user_without_its_resource_follows_the_deletion_policy(
    policy: str, survives: bool
) -> None:
    """Credentials and ACLs go with it, or stay; the ledger forgets them in either case."""
    bench = Bench(examples.user(deletionPolicy=policy))
    bench.brokers.acls["billing"].add(FOREIGN)
    bench.kube.remove("KafkaUser", "billing")
    bench.kube.collect_garbage()
    bench.run_pass()
    assert bool(bench.brokers.credentials["billing"]) is survives
    assert (READ in bench.brokers.acls["billing"]) is survives
    assert FOREIGN in bench.brokers.acls["billing"]
    assert user_ledger(bench.kube) == {}
    assert ("Secret", "default", "billing") not in bench.kube.objects


def test_a_resource_that_is_applied_again_keeps_its_user() -> None:
    """`kubectl replace --force`: another uid, the same name."""
    bench = Bench(examples.user())
    bench.kube.remove("KafkaUser", "billing")
    bench.kube.collect_garbage()
    again = examples.user()
    again["metadata"]["uid"] = "another"
    bench.kube.put(again)
    bench.run_pass()
    assert bench.ready()[0] == "True"
    assert bench.password() == bench.secret()["password"]


def test_a_lost_ledger_makes_no_user_a_stranger() -> None:
    """The status remembers who is managed: the password stays."""
    bench = Bench(examples.user())
    password = bench.password()
    bench.kube.remove("ConfigMap", "quickstart-users-0")
    bench.run_pass()
    assert bench.ready()[0] == "True"
    assert bench.password() == password


@pytest.mark.parametrize("call", range(1, 40))
@pytest.mark.parametrize("applied", [True, False])
def test_a_pass_that_ends_anywhere_is_completed_by_the_next(call: int, applied: bool) -> None:
    """Secret, ledger, Kafka and status agree in the end, wherever the API server failed."""
    bench = Bench()
    count = iter(range(1, 1000))
    bench.kube.put(examples.user())
    bench.kube.fail(lambda _: next(count) == call, 500, applied=applied)
    for _ in range(3):
        with contextlib.suppress(KubeError):
            bench.run_pass()
    assert bench.ready()[0] == "True"
    assert bench.password() == bench.secret()["password"]
    bench.run_pass()
    assert bench.kube.writes == []


def test_another_mechanism_replaces_the_first() -> None:
    """The new credential is set before the old one is removed."""
    two = [
        *examples.LISTENERS,
        {"name": "old", "port": 9096, "authentication": {"type": "scram-sha-256"}},
    ]
    bench = Bench(examples.user(), cluster=examples.secured(listeners=two))
    bench.kube.put(examples.user(authentication={"type": "scram-sha-256"}))
    bench.run_pass()
    assert bench.brokers.credentials["billing"].keys() == {SHA_256}
    assert bench.secret()["bootstrap.servers"].endswith(":9096")


@pytest.mark.parametrize(
    ("cluster", "spec", "reason"),
    [
        (examples.cluster(), {}, "NoListener"),
        (examples.secured(), {"authentication": {"type": "scram-sha-256"}}, "NoListener"),
        (examples.secured(), {"listener": "plain"}, "NoListener"),
        (examples.cluster(listeners=examples.LISTENERS), {}, "AuthorizationDisabled"),
    ],
)
def test_a_cluster_without_what_a_user_needs(
    cluster: Document, spec: Document, reason: str
) -> None:
    """The resource is refused with the field of the cluster to set; nothing is created."""
    bench = Bench(examples.user(**spec), cluster=cluster)
    assert bench.ready()[:2] == ("False", reason)
    assert "KafkaCluster quickstart" in bench.ready()[2]
    assert bench.condition("Stalled")["status"] == "True"
    assert bench.brokers.steps == []


def test_a_user_without_acls_needs_no_authorization() -> None:
    """It is authenticated, and may do what everybody may."""
    cluster = examples.cluster(listeners=examples.LISTENERS)
    bench = Bench(examples.user(authorization=None), cluster=cluster)
    assert bench.ready()[0] == "True"


def test_brokers_that_check_no_acls_yet_are_waited_for() -> None:
    """The pods are replaced one by one after spec.authorization was set."""
    bench = Bench()
    bench.brokers.authorizes = False
    bench.kube.put(examples.user())
    bench.run_pass()
    assert bench.ready()[:2] == ("False", "WaitingForAuthorizer")
    assert bench.brokers.credentials == {}
    bench.brokers.authorizes = True
    bench.run_pass()
    assert bench.ready()[0] == "True"


def test_a_secret_of_others_is_neither_read_nor_changed() -> None:
    """The name of the resource is taken."""
    bench = Bench(given("theirs", "billing"), examples.user())
    assert bench.ready()[:2] == ("False", "SecretExists")
    assert bench.secret("billing") == {"password": "theirs"}
    assert bench.brokers.credentials == {}


def test_an_operator_without_the_right_to_secrets_says_so() -> None:
    """The chart was installed without it: no credential is set that no client would be given."""
    bench = Bench()
    bench.kube.refuses["get Secret billing"] = 'cannot get resource "secrets" in API group ""'
    bench.kube.put(examples.user())
    bench.run_pass()
    assert bench.ready()[:2] == ("False", "Refused")
    assert bench.ready()[2].endswith("install the operator's chart with users=true")
    assert bench.brokers.credentials == {}


def test_a_secret_that_an_admission_webhook_denies() -> None:
    """The message is the webhook's."""
    bench = Bench()
    bench.kube.refuses["apply Secret billing"] = "admission webhook denied the request: no"
    bench.kube.put(examples.user())
    bench.run_pass()
    assert bench.ready() == ("False", "Refused", "Secret billing: no")


def test_a_rejected_user_does_not_fail_the_others() -> None:
    """The others are created; it is told why."""
    bench = Bench()
    bench.brokers.refuses["billing"] = BrokersError("POLICY_VIOLATION", "no", reachable=True)
    bench.kube.put(examples.user())
    bench.kube.put(examples.user("other"))
    bench.run_pass()
    assert bench.ready() == ("False", "Refused", "POLICY_VIOLATION: no")
    assert bench.ready("other")[0] == "True"


def test_a_rejected_acl_keeps_a_regenerated_password_valid(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The Secret has the new password already; a new user gets none before its limits."""
    bench = Bench(examples.user())
    refused = BrokersError("INVALID_REQUEST", "no", reachable=True)
    monkeypatch.setattr(bench.brokers, "alter_acls", lambda users: dict.fromkeys(users, refused))
    spec = {"authorization": {"acls": [_acl("another", "Read")]}}
    bench.kube.edit("KafkaUser", "billing", lambda body: body["spec"].update(spec))
    before = bench.secret()["password"]
    bench.annotate(rotate="1")
    bench.kube.put(examples.user("second", authorization=spec["authorization"]))
    bench.run_pass()
    assert bench.password() == bench.secret()["password"] != before
    assert bench.ready()[:2] == ("False", "Refused")
    assert "second" not in bench.brokers.credentials
    steps = len(bench.brokers.steps)
    bench.run_pass()
    assert "credentials billing" not in bench.brokers.steps[steps:]


def test_a_cluster_that_does_not_answer_changes_nothing_of_known_users() -> None:
    """A changed spec is told what it waits for, and no user is deleted."""
    bench = Bench(examples.user(), examples.user("other"), examples.user("gone"))
    bench.kube.remove("KafkaUser", "gone")
    bench.brokers.error = BrokersError("_TRANSPORT", "down", reachable=False)
    bench.kube.put(examples.user(authorization={"acls": []}))
    bench.run_pass()
    assert bench.ready()[:2] == ("False", "WaitingForCluster")
    assert bench.ready("other")[0] == "True"
    assert bench.password("gone")


def test_a_user_waits_for_its_cluster() -> None:
    """Without a cluster the user says which one it waits for."""
    kube = MemoryKube(examples.user())
    reconcile(KEY, context_on(kube))
    (ready, _) = kube.find("KafkaUser", "billing")["status"]["conditions"]
    assert (ready["status"], ready["reason"]) == ("False", "ClusterNotFound")


def test_an_unparsable_resource_blocks_deletion() -> None:
    """It may be the one that names the user, in a version that is newer."""
    bench = Bench(examples.user())
    bench.kube.put(examples.user("newer", username=["of", "a", "newer", "version"]))
    bench.kube.remove("KafkaUser", "billing")
    bench.run_pass()
    assert bench.password()
    bench.kube.remove("KafkaUser", "newer")
    bench.run_pass()
    assert bench.brokers.credentials["billing"] == {}


def test_a_deletion_is_confirmed_by_the_api_server() -> None:
    """A cache that does not know a resource yet deletes no user."""
    bench = Bench(examples.user())
    stale = replace(
        context_on(bench.kube, bench.brokers), index=lambda kind, *_: [] if kind is USERS else None
    )
    reconcile(KEY, stale)
    assert bench.password()


def test_a_user_whose_password_another_client_has_set_since_is_not_deleted() -> None:
    """It is theirs now."""
    bench = Bench(examples.user())
    bench.kube.remove("KafkaUser", "billing")
    bench.foreign()
    bench.run_pass()
    assert bench.password() == "theirs"
    assert user_ledger(bench.kube) == {}


@pytest.mark.parametrize("refused", [False, True])
def test_acls_and_quotas_that_were_there_before_outlive_the_resource(refused: bool) -> None:
    """Another client has set them, of a user without SCRAM credentials."""
    bench = Bench(*[given("theirs", "billing")] * refused)
    bench.brokers.acls["billing"] = {READ}
    bench.brokers.quotas["billing"] = {"consumer_byte_rate": 5.0}
    quotas: dict[str, Any] = {"quotas": {"consumerByteRate": 100}} if refused else {}
    bench.kube.put(examples.user(**quotas))
    bench.run_pass()
    assert bench.ready()[1] == ("SecretExists" if refused else "Ready")
    bench.kube.remove("KafkaUser", "billing")
    bench.run_pass()
    assert bench.brokers.acls["billing"] == {READ}
    assert bench.brokers.quotas["billing"] == {"consumer_byte_rate": 5.0}


def test_foreign_keys_of_a_secret_are_kept() -> None:
    """As the certificate of an authority, for clients that want one file."""
    bench = Bench(examples.user())

    def change(body: Document) -> None:
        body["data"]["ca.crt"] = b64encode(b"theirs").decode()

    bench.kube.edit("Secret", "billing", change)
    bench.run_pass()
    bench.run_pass()
    assert bench.kube.writes == []
    assert bench.secret()["ca.crt"] == "theirs"


def test_a_definition_that_is_gone_deletes_no_user_and_stops_no_pass() -> None:
    """What comes after the users is still reconciled."""
    bench = Bench(examples.user())
    bench.kube.remove("KafkaUser", "billing")
    bench.kube.fail("list KafkaUser", 404, times=None)
    bench.run_pass()
    assert bench.brokers.credentials["billing"]


SILENT = BrokersError("Timeout", "no answer", reachable=False)


def _lose_answer(bench: Bench, monkeypatch: pytest.MonkeyPatch, *, applied: bool) -> None:
    """A pass in which credentials are changed, or are not, and no answer comes."""
    real = bench.brokers.alter_credentials

    def alter(users: Any) -> Any:
        if applied:
            real(users)
        raise SILENT

    with monkeypatch.context() as patch:
        patch.setattr(bench.brokers, "alter_credentials", alter)
        bench.run_pass()


@pytest.mark.parametrize("rotates", [False, True])
def test_a_credential_whose_answers_were_lost_is_deleted_with_its_resource(
    rotates: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is no stranger's, however often the broker was silent."""
    bench = Bench(*[examples.user()] * rotates)
    if rotates:
        bench.annotate(rotate="1")
    else:
        bench.kube.put(examples.user())
    _lose_answer(bench, monkeypatch, applied=True)
    if rotates:
        bench.kube.remove("KafkaUser", "billing")
    _lose_answer(bench, monkeypatch, applied=False)
    if not rotates:
        bench.kube.remove("KafkaUser", "billing")
    bench.run_pass()
    assert bench.brokers.credentials["billing"] == {}


def test_a_definition_that_is_not_installed_stops_nothing() -> None:
    """Helm does not upgrade definitions: topics are managed without that of KafkaUsers."""
    bench = Bench(examples.topic())
    bench.kube.fail("list KafkaUser", 404, times=None)
    bench.run_pass()
    bench.run_pass()
    conditions = bench.kube.find("KafkaTopic", "packages")["status"]["conditions"]
    assert conditions[0]["status"] == "True"


def test_no_secret_in_logs_events_and_statuses(caplog: pytest.LogCaptureFixture) -> None:
    """Over a whole life: only Secrets contain passwords."""
    caplog.set_level(logging.DEBUG)
    bench = Bench(
        given("swordfish"), examples.user("third", authentication=BY_SECRET), examples.user()
    )
    passwords = {bench.password(), "swordfish"}
    bench.annotate(rotate="1")
    bench.kube.put(given("marlin", "given"))
    bench.run_pass()
    bench.brokers.refuses["billing"] = BrokersError("POLICY_VIOLATION", "no", reachable=True)
    bench.annotate(rotate="2")
    bench.run_pass()
    passwords |= {bench.password(), bench.secret()["password"], "marlin"}
    bench.kube.remove("KafkaUser", "billing")
    bench.run_pass()
    others = [body for (kind, _, _), body in bench.kube.objects.items() if kind != "Secret"]
    output = caplog.text + json.dumps(others)
    for password in passwords:
        assert password not in output
        assert b64encode(password.encode()).decode() not in output


def test_generated_passwords_have_at_least_128_bits() -> None:
    """By how much each place differs among many; the Secret has one of them, whole."""
    found = [generate_password() for _ in range(1000)]
    assert len({*found}) == len(found)
    assert sum(log2(len({*place})) for place in zip(*found, strict=True)) >= 128
    bench = Bench(examples.user())
    assert re.fullmatch(r"[A-Za-z0-9_-]{32}", bench.secret()["password"])
    assert bench.password() == bench.secret()["password"]
