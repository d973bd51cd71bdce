"""When certificates are issued, and the steps in which an authority is replaced."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas_kafka.certificates import CertificateView, KeyPair
from barnabas_operator.plan.certificates import (
    HOSTS_MAX,
    Authority,
    Change,
    hosts_to_name,
    issue_reason,
    no_earlier_than,
    parse_time,
    plan_authority,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
YEARS = timedelta(days=3650)
VIEW = CertificateView(
    common_name="b",
    subject="CN=b",
    issuer="CN=ca",
    key_id=b"b",
    authority_key_id=b"ca",
    hosts=frozenset({"h"}),
    not_before=NOW,
    not_after=NOW + 90 * DAY,
    sha256="",
)
CA = replace(VIEW, subject="CN=ca", key_id=b"ca", not_after=NOW + YEARS)


class Steps:
    """An authority over time; certificates are numbers, and each ends ten years after its birth."""

    def __init__(self) -> None:
        self.now = NOW
        self.overlap = DAY
        self.ends: dict[str, datetime] = {}
        self.starts: dict[str, datetime] = {}
        self.numbers = itertools.count(1)
        self.authority: Authority | None = None
        self.lagging = ""

    def generate(self) -> KeyPair:
        """The next one."""
        name = f"{next(self.numbers)};"
        self.ends[name] = self.now + YEARS
        self.starts[name] = self.now
        return KeyPair(certificate=name, key=f"key of {name}")

    def step(
        self, passed: timedelta = timedelta(), *, asked: str = "", given: KeyPair | None = None
    ) -> Change:
        """One pass, some time after the last one."""
        self.now += passed
        change = plan_authority(
            self.authority,
            given=given,
            asked=asked,
            now=self.now,
            overlap=self.overlap,
            not_after=self.ends.__getitem__,
            generate=self.generate,
            lagging=lambda _: self.lagging,
            not_before=lambda name: self.starts.get(name, NOW),
        )
        self.authority = change.authority
        return change


def test_an_authority_is_replaced_in_three_steps() -> None:
    """Trust both, issue with the new one, trust the old one no longer."""
    steps = Steps()
    assert steps.step().reason == "created"
    assert steps.step(DAY).reason == ""
    reported = []
    for passed in (timedelta(), DAY, DAY / 2, DAY / 2, DAY):
        change = steps.step(passed, asked="now")
        reported.append((change.authority.current.certificate, change.authority.bundle))
    assert reported == [("1;", "1;2;"), ("2;", "2;1;"), ("2;", "2;1;"), ("2;", "2;"), ("2;", "2;")]
    # The annotation has had its effect, and removing it has none.
    assert steps.step(DAY).reason == steps.step(DAY, asked="now").reason == ""


def test_an_authority_is_replaced_before_it_expires() -> None:
    """Three months before, and the passes after that do not begin again."""
    steps = Steps()
    steps.step()
    assert steps.step(YEARS - 91 * DAY).reason == ""
    assert steps.step(DAY).reason.startswith("the authority expires")
    assert steps.step().reason == ""
    assert steps.step(DAY).authority.current.certificate == "2;"


def test_an_expired_authority_is_replaced_at_once() -> None:
    """The operator was away for years: nobody trusts the old one, so there is no overlap."""
    steps = Steps()
    steps.step()
    steps.step(YEARS + DAY)
    assert steps.step().authority.current.certificate == "2;"


def test_a_long_overlap_ends_before_the_authority_does() -> None:
    """Certificates of the old one expire with it: others have to be there before."""
    steps = Steps()
    steps.step()
    steps.overlap = 2 * YEARS
    steps.step(YEARS - 90 * DAY)
    assert steps.step(44 * DAY).reason == ""
    assert steps.step(DAY).authority.current.certificate == "2;"


def test_a_given_authority_takes_over_with_overlap() -> None:
    """And the operator never generates one beside it."""
    steps = Steps()
    steps.step()
    given_pair = steps.generate()
    assert steps.step(given=given_pair).authority.bundle == "1;2;"
    assert steps.step(DAY, given=given_pair).authority.current is given_pair
    assert steps.step(DAY, given=given_pair).authority.bundle == "2;"
    assert steps.step(YEARS, given=given_pair).reason == ""


def test_an_authority_that_cannot_be_read_now_is_kept() -> None:
    """The Secret of the user is away for a moment: no other authority takes its place."""
    steps = Steps()
    before = steps.step(given=steps.generate()).authority
    change = plan_authority(
        before,
        given=None,
        asked="",
        now=NOW + YEARS,
        overlap=DAY,
        not_after=steps.ends.__getitem__,
        generate=steps.generate,
        replaces=False,
    )
    assert change == Change(authority=before)


@settings(max_examples=200)
@given(st.lists(st.tuples(st.integers(0, 400), st.sampled_from(["", "a", "b"])), max_size=40))
def test_every_presented_certificate_is_trusted(
    passes: list[tuple[int, str]],
) -> None:
    """Whatever is asked when: what issued a day ago and what issues now are trusted everywhere.

    Files reach pods within a day here, so a pod may have the trust of a day ago.
    """
    steps = Steps()
    seen = [(steps.now, steps.step().authority)]
    for hours, asked in passes:
        change = steps.step(timedelta(hours=hours), asked=asked)
        seen.append((steps.now, change.authority))
        for (_, before), (end, _) in itertools.pairwise(seen):
            if steps.now - end < DAY:
                # Files of that moment are still in some pod, and so are certificates.
                assert change.authority.current.certificate in before.trusted
                assert before.current.certificate in change.authority.trusted


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({}, ""),
        ({"authority_key_id": b"other"}, "another authority issues"),
        ({"issuer": "CN=other"}, "another authority issues"),
        ({"common_name": "c"}, "it is for c"),
        ({"not_before": NOW + DAY}, "it is not valid yet"),
        ({"hosts": frozenset({"h", "i"})}, ""),
        ({"hosts": frozenset()}, "it does not name h"),
        ({"not_after": NOW + 29 * DAY, "not_before": NOW - 61 * DAY}, "it expires at"),
        ({"not_after": NOW + 31 * DAY, "not_before": NOW - 59 * DAY}, ""),
    ],
)
def test_when_a_certificate_is_issued_again(change: dict[str, object], reason: str) -> None:
    """Each cause by itself."""
    found = issue_reason(
        replace(VIEW, **change),  # type: ignore[arg-type]
        authority=CA,
        common_name="b",
        hosts=["h"],
        now=NOW,
        validity=90 * DAY,
    )
    assert found.startswith(reason)
    assert bool(found) == bool(reason)


def test_a_certificate_that_would_last_no_longer_is_not_issued_again() -> None:
    """The authority ends with it: otherwise every pass would issue one."""
    ends = replace(CA, not_after=VIEW.not_after)
    now = VIEW.not_after - timedelta(hours=1)
    assert not issue_reason(VIEW, authority=ends, common_name="b", now=now, validity=90 * DAY)
    assert issue_reason(None, authority=ends, common_name="b", now=now, validity=DAY)


def test_hosts_that_are_away_for_a_while_are_still_named() -> None:
    """Without a bound they would gather, so beyond one only those that are wanted are."""
    assert hosts_to_name({"i"}, VIEW) == ("h", "i")
    many = replace(VIEW, hosts=frozenset(map(str, range(HOSTS_MAX))))
    assert hosts_to_name({"i"}, many) == ("i",)


def test_a_time_that_cannot_be_read_has_passed_long_ago() -> None:
    """An annotation that somebody removed does not stop a replacement."""
    assert parse_time("") < NOW == parse_time("2026-01-01T00:00:00Z")


@pytest.mark.parametrize("steps_before", [1, 2])
def test_a_step_that_not_all_have_taken_begins_again(steps_before: int) -> None:
    """The overlap counts from when they had what it is about."""
    steps = Steps()
    steps.step()
    steps.step(DAY, asked="1")
    for _ in range(steps_before - 1):
        steps.step(DAY, asked="1")
    before = steps.authority
    assert before is not None
    steps.lagging = "b lacks it"
    assert "b lacks it" in steps.step(9 * DAY, asked="1").reason
    assert steps.authority == replace(before, since=steps.now)
    steps.lagging = ""
    assert steps.step(DAY / 2, asked="1").reason == ""
    assert steps.step(DAY / 2, asked="1").reason


def test_an_expired_authority_is_dropped_despite_lagging_pods() -> None:
    """It is trusted by nobody."""
    steps = Steps()
    steps.step()
    steps.step(DAY, asked="1")
    steps.lagging = "b lacks it"
    assert steps.step(YEARS, asked="1").reason == "the new authority issues"


@pytest.mark.parametrize("since", [parse_time(""), NOW + 400 * DAY])
def test_a_step_with_an_unknown_start_starts_now(since: datetime) -> None:
    """The annotation was lost or edited, or a clock was wrong: nobody may have taken it yet."""
    steps = Steps()
    steps.step()
    both = steps.step(DAY, asked="1").authority
    steps.authority = replace(both, since=since)
    assert steps.step(asked="1").authority == replace(both, since=steps.now)
    assert steps.step(DAY, asked="1").reason == "the new authority issues"


def test_an_authority_from_a_clock_that_was_ahead_is_replaced_at_once() -> None:
    """Nobody trusts it before its time comes."""
    steps = Steps()
    steps.step(400 * DAY)
    reasons = [steps.step(passed).reason for passed in (-400 * DAY, DAY / 100, DAY / 100)]
    assert reasons == ["the authority expires; both are trusted", "the new authority issues", ""]
    assert steps.step(DAY).reason == "the old authority is trusted no longer"


def test_an_authority_that_follows_and_is_not_valid_yet_never_issues() -> None:
    """It was made while the clock was ahead, and is made again."""
    steps = Steps()
    first = steps.step().authority.current
    steps.step(400 * DAY, asked="1")
    change = steps.step(-399 * DAY, asked="1")
    assert change.reason == "the new authority is not valid yet: another follows"
    assert change.authority.trusted == ("1;", "3;")
    assert change.authority.current == first
    assert steps.step(DAY / 2, asked="1").reason == ""
    assert steps.step(DAY / 2, asked="1").authority.current.certificate == "3;"


def test_the_clock_is_not_before_stored_timestamps() -> None:
    """Of the operator's clock and its stamps the latest counts; what cannot be read does not."""
    meta = {"creationTimestamp": "2026-02-01T00:00:00Z", "managedFields": [{}, {"time": "x"}]}
    assert no_earlier_than(NOW, {"metadata": meta}) == NOW + 31 * DAY
    assert no_earlier_than(NOW + 32 * DAY, {"metadata": meta}) == NOW + 32 * DAY
    assert no_earlier_than(NOW, None) == NOW
