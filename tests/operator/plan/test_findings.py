"""Reasons: one word each, one severity, and a check that finds it."""

from __future__ import annotations

import re

from barnabas_operator.plan.clusters import CHECKS
from barnabas_operator.plan.findings import Finding, Reason, Severity

# Found while a plan is carried out, not by a check of the snapshot.
WHILE_APPLYING = {
    Reason.DYNAMIC_CONFIG_REFUSED,
    Reason.REFUSED,
    Reason.CLAIM_NOT_EXPANDABLE,
    Reason.INVALID_SPEC,
    Reason.INVALID_TEMPLATE,
    Reason.ROLL_WAITS_FOR_REPLICAS,
    Reason.APPLYING,
    Reason.NAMESPACE_NOT_ALLOWED,
    Reason.NAMESPACE_NOT_WATCHED,
}


def test_every_reason_is_found_by_a_check_and_explained() -> None:
    """The generated table has no reason that never occurs and none without a meaning."""
    listed = {reason for check in CHECKS for reason in check.reasons}
    assert listed | WHILE_APPLYING == set(Reason)
    for reason in Reason:
        assert re.fullmatch("[A-Z][A-Za-z]+", reason)
        assert reason.meaning.endswith(".")


def test_a_finding_has_the_severity_of_its_reason() -> None:
    """Severity cannot differ between two findings of one reason."""
    assert Finding(reason=Reason.REFUSED, message="").severity is Severity.STALLED
