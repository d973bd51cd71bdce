"""KafkaUsers that may not be, or that ask for much: they concern themselves alone."""

from __future__ import annotations

import pytest

from barnabas_operator.api.users import AclOperation
from barnabas_operator.kube import Document
from tests.operator import examples
from tests.operator.reconcile.test_kafka_users import Bench, given


@pytest.mark.parametrize("name", [".", ".."])
def test_a_name_that_no_znode_can_have_is_refused(name: str) -> None:
    """Brokers would answer each pass with an error of their own."""
    bench = Bench(examples.user(username=name))
    assert bench.ready()[1] == "InvalidUsername"
    assert bench.brokers.credentials == {}


def test_a_secret_of_a_cluster_is_no_password() -> None:
    """Who may write KafkaUsers and read their Secrets would read the cluster's keys by them."""
    reference = {"name": "other-admin-token"}
    secret = given("0123456789", reference["name"])
    owner = {"apiVersion": "barnabas.io/v1alpha1", "kind": "KafkaCluster", "controller": True}
    secret["metadata"]["ownerReferences"] = [{**owner, "name": "other", "uid": "uid-of-other"}]
    authentication = {"type": "scram-sha-512", "passwordSecretRef": reference}
    bench = Bench(secret, examples.user(authentication=authentication))
    assert bench.ready() == (
        "False", "InvalidPassword",
        "Secret other-admin-token is of KafkaCluster other; give another one",
    )  # fmt: skip
    assert ("Secret", "default", "billing") not in bench.kube.objects


def test_a_token_of_kubernetes_is_no_password() -> None:
    """Who may write KafkaUsers and read their Secrets would act as a service account by them."""
    secret = given("0123456789", "robot")
    secret["type"] = "kubernetes.io/service-account-token"
    reference = {"name": "robot", "key": "password"}
    authentication = {"type": "scram-sha-512", "passwordSecretRef": reference}
    bench = Bench(secret, examples.user(authentication=authentication))
    assert bench.ready()[1:] == (
        "InvalidPassword", "Secret robot is a token of Kubernetes; give another one",
    )  # fmt: skip
    assert ("Secret", "default", "billing") not in bench.kube.objects


def _acls(names: int, *, length: int = 200, operations: tuple[str, ...] = ("Read",)) -> Document:
    """As many rules, each about a topic with a long name."""
    return {
        "acls": [
            {
                "resource": {"type": "topic", "name": f"{number:03}".ljust(length, "t")},
                "operations": list(operations),
            }
            for number in range(names)
        ]
    }


def test_a_user_with_more_acls_than_the_ledger_can_hold_concerns_itself_alone() -> None:
    """The definition allows 256 rules of every operation each."""
    operations = tuple(each.value for each in AclOperation)
    bench = Bench(examples.user("a", authorization=_acls(256, operations=operations)))
    bench.kube.put(examples.user())
    bench.run_pass()
    status, reason, message = bench.ready("a")
    assert (status, reason) == ("False", "InvalidAuthorization")
    count = 256 * len(operations)
    assert message.startswith(f"spec.authorization: {count} ACLs with names of that length are too")
    assert "a" not in bench.brokers.acls
    assert bench.ready()[0] == "True"


def test_acls_that_users_are_given_later_have_room_in_the_ledger() -> None:
    """Users that were entered into one ConfigMap grow out of it."""
    users = [f"user-{number:02}" for number in range(30)]
    bench = Bench(*(examples.user(name, authorization={"roles": []}) for name in users))
    for name in users:
        bench.kube.put(examples.user(name, authorization=_acls(200)))
    bench.run_pass()
    assert {bench.ready(name)[0] for name in users} == {"True"}
    assert {len(bench.brokers.acls[name]) for name in users} == {200}
