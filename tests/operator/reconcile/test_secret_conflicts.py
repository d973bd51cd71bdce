"""Secrets that somebody else writes at the same time: another operator, or a person."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from dataclasses import replace

import pytest

from barnabas_operator.kube import KubeError
from barnabas_operator.plan.certificates import format_time
from barnabas_operator.reconcile.reconciler import reconcile
from tests.operator.ports import context_on
from tests.operator.reconcile.test_certificates import KEY, START, Passes, secure


def meanwhile(passes: Passes, request: str, change: Callable[[], object]) -> None:
    """Have somebody else do this right before the operator's next request that begins so."""

    def matches(found: str) -> bool:
        if found.startswith(request) and pending:
            pending.pop()()
        return False

    pending = [change]
    passes.kube.fail(matches, 500, times=None)


@pytest.mark.parametrize("name", ["cluster-ca", "clients-ca", "broker-tls"])
def test_two_operators_make_no_secret_twice(name: str) -> None:
    """Each sees that there is none; one creates it, and the other ends its pass and looks again."""
    passes, secret = secure(), f"quickstart-{name}"
    other = replace(context_on(passes.kube, passes.brokers), now=format_time(START))
    meanwhile(passes, f"create Secret {secret}", lambda: reconcile(KEY, other))
    with pytest.raises(KubeError, match="already exists"):
        passes.run()
    theirs = passes.data(name)
    passes.run()
    assert passes.data(name) == theirs


def test_two_operators_replace_no_authority_twice() -> None:
    """The one that read it before the other changed it changes nothing."""
    passes = secure()
    passes.run()
    passes.annotate("barnabas.io/rotate-cluster-ca", "1")
    other = replace(context_on(passes.kube, passes.brokers), now=format_time(START))
    meanwhile(passes, "apply Secret quickstart-cluster-ca", lambda: reconcile(KEY, other))
    with pytest.raises(KubeError, match="modified"):
        passes.run()
    theirs = passes.data("cluster-ca")
    assert theirs["next.key"]
    passes.run()
    assert passes.data("cluster-ca") == theirs


def test_an_edit_of_an_authority_is_not_overwritten_by_what_was_read_before() -> None:
    """It is looked at in the next pass: here it is damage, which is named."""
    passes = secure()
    passes.run()
    passes.annotate("barnabas.io/rotate-cluster-ca", "1")
    edited = b64encode(b"edited").decode()

    def edit() -> None:
        passes.kube.edit(
            "Secret", "quickstart-cluster-ca", lambda body: body["data"].update({"tls.crt": edited})
        )

    meanwhile(passes, "apply Secret quickstart-cluster-ca", edit)
    with pytest.raises(KubeError, match="modified"):
        passes.run()
    assert passes.data("cluster-ca")["tls.crt"] == "edited"
    messages = [each["message"] for each in passes.run()["conditions"]]
    assert any("Secret quickstart-cluster-ca is damaged" in each for each in messages)


def test_a_secret_whose_creation_was_cut_short_is_completed() -> None:
    """An operator that ends between its two requests leaves one without data, and its own."""
    passes = secure()
    passes.kube.fail("apply Secret quickstart-clients-ca", 500)
    with pytest.raises(KubeError):
        passes.run()
    assert "data" not in passes.kube.find("Secret", "quickstart-clients-ca")
    passes.run()
    assert passes.data("clients-ca")["tls.key"]
    passes.kube.edit("Secret", "quickstart-clients-ca", lambda body: body["data"].clear())
    messages = [each["message"] for each in passes.run()["conditions"]]
    assert any("Secret quickstart-clients-ca is damaged" in each for each in messages)
