"""Plans of users: what is created, what is left alone, and what a message says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from barnabas_operator.api.reading import read_cluster, read_user
from barnabas_operator.api.users import AclOperation, AclResourceType
from barnabas_operator.plan.topics import Refusal
from barnabas_operator.plan.user_acls import Acl, acls_of
from barnabas_operator.plan.user_ledger import User, UserEntry
from barnabas_operator.plan.users import (
    Access,
    CredentialChange,
    UserPlan,
    UserView,
    Waiting,
    access_of,
    credential_change,
    owners,
    plan_user,
)
from tests.operator import examples

SHA_512, SHA_256 = "SCRAM-SHA-512", "SCRAM-SHA-256"
ACCESS = Access(
    bootstrap_servers="h:1", mechanism=SHA_512, security_protocol="SASL_PLAINTEXT", listener="s"
)
NOBODY = UserView(acls=frozenset())
ENTRY = UserEntry(resource="billing", uid="u", credentials={SHA_512: 5000}, secret="1")
WRITE = Acl(resource=AclResourceType.TOPIC, name="t", operation=AclOperation.WRITE)


def _user(name: str = "billing", *, created: str = "", note: str = "", **spec: Any) -> User:
    document = examples.user(name, **spec)
    document["metadata"]["creationTimestamp"] = created
    if note:
        document["metadata"]["annotations"] = {"barnabas.io/adopt": note}
    return read_user(document)


def _plan(user: User, view: UserView, entry: UserEntry | None = None) -> UserPlan:
    plan = plan_user(user, ACCESS, view, entry)
    assert isinstance(plan, UserPlan), plan
    return plan


def test_a_new_user_gets_all_acls() -> None:
    """Nothing is deleted."""
    plan = _plan(_user(), NOBODY)
    assert plan.acls.create == acls_of(_user().body.spec.authorization)
    assert not plan.acls.delete
    assert plan.warnings == ()


def test_only_recorded_acls_are_deleted() -> None:
    """What another client has created stays and is named."""
    theirs = replace(WRITE, name="theirs")
    view = UserView(credentials={SHA_512: 5000}, acls=frozenset({WRITE, theirs}))
    entry = replace(ENTRY, acls=frozenset({WRITE, replace(WRITE, name="gone")}))
    plan = _plan(_user(authorization=None), view, entry)
    assert plan.acls.delete == {WRITE}
    assert plan.warnings == (
        "the user has ACLs that another client has created: allow Write on topic theirs",
    )


def test_an_operator_that_is_older_than_the_resource_deletes_no_acl() -> None:
    """A field that it does not know may ask for what it would delete."""
    document = examples.user(authorization={"newer": ["x"]})
    entry = replace(ENTRY, acls=frozenset({WRITE}))
    plan = _plan(read_user(document, lenient=True), UserView(acls=frozenset({WRITE})), entry)
    assert not plan.acls
    assert plan.recorded == {WRITE}


def test_many_acls_of_others_are_a_short_message() -> None:
    """A condition holds 4096 characters."""
    acls = frozenset(replace(WRITE, name=f"t{number}") for number in range(9))
    (warning,) = _plan(_user(authorization=None), UserView(acls=acls)).warnings
    assert warning.endswith("allow Write on topic t2 and 6 more")


def test_a_user_with_credentials_is_not_taken_over() -> None:
    """Unless the ledger, the status or the annotation says that it is the resource's."""
    view = UserView(credentials={SHA_256: 4096}, acls=frozenset())
    refusal = plan_user(_user(), ACCESS, view, None)
    assert isinstance(refusal, Refusal)
    assert refusal.reason == "AlreadyExists"
    assert "credentials of SCRAM-SHA-256" in refusal.message
    assert _plan(_user(note="resource"), view)
    assert _plan(_user(), view, ENTRY)
    assert _plan(read_user({**examples.user(), "status": {"username": "billing"}}), view)
    wrong = plan_user(_user(note="user"), ACCESS, view, None)
    assert isinstance(wrong, Refusal)
    assert wrong.reason == "InvalidAnnotation"


def test_a_credential_of_another_mechanism_goes_if_it_is_recorded() -> None:
    """One that another client has set stays, and is named: its password is still valid."""
    view = UserView(credentials={SHA_256: 4096, SHA_512: 5000}, acls=frozenset())
    ours = replace(ENTRY, credentials={SHA_256: 4096})
    assert _plan(_user(), view, ours).obsolete == {SHA_256}
    plan = _plan(_user(), view, ENTRY)
    assert plan.obsolete == frozenset()
    assert "a credential of SCRAM-SHA-256" in plan.warnings[0]


def test_a_quota_that_another_client_has_set_stays_its_own() -> None:
    """Also if it has the wanted value: it is not recorded, and outlives the resource."""
    user = _user(quotas={"producerByteRate": 10, "consumerByteRate": 20})
    theirs = replace(NOBODY, quotas={"producer_byte_rate": 10.0})
    plan = _plan(user, theirs)
    assert plan.quotas.put == {"consumer_byte_rate": 20.0}
    assert plan.recorded_quotas == {"consumer_byte_rate"}
    entry = replace(ENTRY, quotas=plan.recorded_quotas)
    both = replace(NOBODY, quotas={"producer_byte_rate": 10.0, "consumer_byte_rate": 20.0})
    assert _plan(user, both, entry).recorded_quotas == {"consumer_byte_rate"}
    removed = _plan(_user(), both, entry)
    assert removed.quotas.drop == {"consumer_byte_rate"}
    text = "the user has quotas that another client has set: producer_byte_rate"
    assert removed.warnings == (text,)


def test_quotas_of_a_user_that_is_adopted_are_taken_over() -> None:
    """As its credentials and ACLs are."""
    view = UserView(credentials={SHA_512: 1}, acls=frozenset(), quotas={"producer_byte_rate": 10.0})
    plan = _plan(_user(note="resource", quotas={"producerByteRate": 10}), view)
    assert not plan.quotas
    assert plan.recorded_quotas == {"producer_byte_rate"}


def test_the_anonymous_principal_cannot_be_a_user() -> None:
    """It is a super user; a definition without the rule may let it through."""
    refusal = plan_user(_user(username="ANONYMOUS"), ACCESS, NOBODY, None)
    assert isinstance(refusal, Refusal)
    assert refusal.reason == "InvalidUsername"


def test_an_authorizer_that_is_off_forgets_no_acl() -> None:
    """They are in force again with it."""
    entry = replace(ENTRY, acls=frozenset({WRITE}))
    assert _plan(_user(authorization=None), UserView(), entry).recorded == {WRITE}
    waiting = plan_user(_user(), ACCESS, UserView(), entry)
    assert isinstance(waiting, Waiting)
    assert waiting.reason == "WaitingForAuthorizer"


@pytest.mark.parametrize(
    ("observed", "secret", "entry", "is_set"),
    [
        ({SHA_512: 5000}, "1", ENTRY, False),
        ({SHA_512: 5001}, "1", ENTRY, True),
        ({}, "1", ENTRY, True),
        ({SHA_512: 5000}, "2", ENTRY, True),
        ({}, "1", None, True),
    ],
)
def test_when_a_credential_is_set(
    observed: dict[str, int], secret: str, entry: UserEntry | None, is_set: bool
) -> None:
    """Not if it is the recorded one of the present version of the Secret."""
    change = credential_change(
        UserPlan(access=ACCESS),
        UserView(credentials=observed),
        entry,
        secrets=frozenset({secret}),
        password="pencil",
        iterations=4200,
    )
    assert (change is not None) is is_set
    if change is not None:
        assert (change.mechanism, change.iterations) == (SHA_512, 4200)
        assert "pencil" not in f"{change} {change!r}"


def test_changes_are_described_for_the_log() -> None:
    """As they are logged."""
    change = CredentialChange(mechanism=SHA_512, iterations=1, remove=frozenset({SHA_256}))
    assert str(change) == "set the SCRAM-SHA-512 credential, remove the SCRAM-SHA-256 credential"


def test_the_older_of_two_resources_owns_the_user() -> None:
    """Whatever the order of the list."""
    first = _user("b", created="2026-01-01T00:00:00Z", username="u")
    second = _user("a", created="2026-01-02T00:00:00Z", username="u")
    assert owners([second, first]) == {"u": first}


def test_the_address_is_that_of_the_first_fitting_listener_or_of_the_named_one() -> None:
    """An address that is not known yet is waited for."""
    out = {
        "name": "outside", "type": "nodeport", "port": 9096, "nodePort": 32095,
        "authentication": {"type": "scram-sha-512"},
    }  # fmt: skip
    document = examples.secured(listeners=[*examples.LISTENERS, out])
    known = [
        {"name": "scram", "type": "internal", "bootstrapServers": "inside:9095"},
        {"name": "outside", "type": "nodeport", "bootstrapServers": "node:32095"},
    ]
    cluster = read_cluster({**document, "status": {"listeners": known}})
    inside, outside = (access_of(_user(listener=name), cluster) for name in (None, "outside"))
    assert isinstance(inside, Access)
    assert isinstance(outside, Access)
    assert (inside.bootstrap_servers, outside.bootstrap_servers) == ("inside:9095", "node:32095")
    waiting = access_of(_user(), read_cluster(document))
    assert isinstance(waiting, Waiting)
    assert waiting.reason == "WaitingForCluster"


def test_addresses_that_are_missing_for_a_while_are_no_change() -> None:
    """A broker is replaced; another address, or fewer brokers, are one."""
    three, two = "a:1,b:2,c:3", "a:1,c:3"
    rolling = replace(ACCESS, bootstrap_servers=two, complete=False)
    assert rolling.servers(three) == three
    assert replace(rolling, bootstrap_servers="a:1,d:2").servers(three) == "a:1,d:2"
    assert replace(rolling, complete=True).servers(three) == two
    assert rolling.servers("") == two


def test_an_authorizer_in_the_brokers_settings_counts() -> None:
    """Clusters of earlier versions have it there."""
    config = {"authorizer.class.name": "kafka.security.authorizer.AclAuthorizer"}
    document = examples.cluster(listeners=examples.LISTENERS, config=config)
    assert isinstance(access_of(_user(), read_cluster(document)), Waiting)
