"""When certificates are issued, and how a certificate authority is replaced.

A replacement has three steps, each of which lasts for the overlap. First both authorities are
trusted and the old one issues; then the new one issues; then the old one is trusted no longer. At
no time does a pod or client show a certificate that the others do not trust, yet or any longer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from barnabas_kafka.certificates import CertificateView, KeyPair

# A generated authority is replaced so long before its end, a certificate after two thirds of its
# time: a cluster whose operator is away for weeks goes on.
AUTHORITY_DAYS: Final = 3650
AUTHORITY_RENEWAL: Final = timedelta(days=90)
# What is given is the user's to replace: the operator warns.
EXPIRY_WARNING: Final = timedelta(days=30)
# Of hosts that a certificate names though the cluster has them no longer: a broker whose pod is
# replaced has no address for a while.
HOSTS_MAX: Final = 100
# What `parse_time` makes of a time that cannot be read.
UNKNOWN: Final = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Authority:
    """A certificate authority: the one that issues, all that are trusted, and the next one."""

    # Without its key where that was lost: then the next one issues what has to be issued.
    current: KeyPair
    # PEM of each, the current one's first.
    trusted: tuple[str, ...]
    next: KeyPair | None = None
    # When the present step began, and what the annotation asked for then.
    since: datetime
    rotation: str = ""

    @property
    def bundle(self) -> str:
        """All trusted certificates in one PEM file."""
        return "".join(self.trusted)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The authority as it is to be, and why it changes; an empty reason if it does not."""

    authority: Authority
    reason: str = ""


def plan_authority(
    before: Authority | None,
    *,
    given: KeyPair | None,
    asked: str,
    now: datetime,
    overlap: timedelta,
    not_after: Callable[[str], datetime],
    generate: Callable[[], KeyPair],
    replaces: bool = True,
    lagging: Callable[[Authority], str] = lambda _: "",
    not_before: Callable[[str], datetime] = lambda _: UNKNOWN,
    former: tuple[str, ...] = (),
) -> Change:
    """The next step. `given` is the user's own authority, `asked` the value of the annotation.

    Without `replaces` the authority is the user's, and is kept while what is given cannot be used.
    `lagging` names what has not taken part in the present step yet, as after an operator that ended
    in the middle of it: then the step begins again. It is asked only when a step has passed.
    `former` are the certificates that are trusted although there is no authority `before`.
    """
    if before is None:
        valid = bool(former) and not_before(former[0]) <= now < not_after(former[0])
        return _first(given or generate(), former if valid else (), asked=asked, now=now)
    # Clients do not trust what has expired, nor what was made while the clock was ahead: there is
    # nothing to overlap with.
    end = not_after(before.current.certificate)
    is_valid = not_before(before.current.certificate) <= now < end
    if before.next is not None and not_before(before.next.certificate) > now:
        ours = given is None and replaces
        return _without_next(before, now, generate) if ours else Change(authority=before)
    if before.next is not None or len(before.trusted) > 1:
        # Half of the time that is left at most: others have to take place of its certificates.
        lasts = min(overlap, (end - before.since) / 2) if before.next is not None else overlap
        return _next_step(before, now, lasts=lasts, is_valid=is_valid, lagging=lagging)
    if given is None and not replaces:
        return Change(authority=before)
    expires = not is_valid or end - now <= AUTHORITY_RENEWAL
    return _replacement(
        before, given=given, asked=asked, now=now, expires=expires, generate=generate
    )


def _first(follows: KeyPair, former: tuple[str, ...], *, asked: str, now: datetime) -> Change:
    """The first authority, or the one that follows another whose key was lost."""
    trusted = _unique((*former, follows.certificate))
    if not former or follows.certificate == former[0]:
        first = Authority(current=follows, trusted=trusted, since=now, rotation=asked)
        return Change(authority=first, reason="created")
    lost = KeyPair(certificate=former[0], key="")
    both = Authority(current=lost, next=follows, trusted=trusted, since=now, rotation=asked)
    return Change(authority=both, reason="its key was lost; another follows, and both are trusted")


def _next_step(
    before: Authority,
    now: datetime,
    *,
    lasts: timedelta,
    is_valid: bool,
    lagging: Callable[[Authority], str],
) -> Change:
    """What follows the present step of a replacement, once that has lasted long enough."""
    if is_valid:
        if before.since == UNKNOWN or before.since > now:
            return _again(before, now, "it is not known when it began")
        if now - before.since < lasts:
            return Change(authority=before)
        if reason := lagging(before):
            return _again(before, now, reason)
    if before.next is not None:
        trusted = (before.next.certificate, *before.trusted)
        issuing = replace(
            before, current=before.next, next=None, since=now, trusted=_unique(trusted)
        )
        return Change(authority=issuing, reason="the new authority issues")
    alone = replace(before, trusted=(before.current.certificate,), since=now)
    return Change(authority=alone, reason="the old authority is trusted no longer")


def _replacement(
    before: Authority,
    *,
    given: KeyPair | None,
    asked: str,
    now: datetime,
    expires: bool,
    generate: Callable[[], KeyPair],
) -> Change:
    if given is not None:
        if given.certificate == before.current.certificate:
            return Change(authority=before)
        follows, reason = given, "another authority is given"
    elif asked and asked != before.rotation:
        follows, reason = generate(), f"asked for: {asked}"
    elif expires:
        follows, reason = generate(), "the authority expires"
    else:
        return Change(authority=before)
    both = replace(
        before,
        next=follows,
        trusted=_unique((*before.trusted, follows.certificate)),
        since=now,
        rotation=asked or before.rotation,
    )
    return Change(authority=both, reason=f"{reason}; both are trusted")


def _without_next(before: Authority, now: datetime, generate: Callable[[], KeyPair]) -> Change:
    """The first step with another authority than one that is not valid yet."""
    wrong = before.next.certificate if before.next is not None else ""
    follows = generate()
    trusted = (*(each for each in before.trusted if each != wrong), follows.certificate)
    again = replace(before, next=follows, trusted=trusted, since=now)
    return Change(authority=again, reason="the new authority is not valid yet: another follows")


def _again(before: Authority, now: datetime, reason: str) -> Change:
    """The same step with its whole overlap, so that all clients trust it."""
    again = replace(before, since=now)
    return Change(authority=again, reason=f"the replacement waits another time: {reason}")


def _unique(certificates: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(certificates))


def issue_reason(
    found: CertificateView | None,
    *,
    authority: CertificateView,
    common_name: str,
    hosts: Collection[str] = (),
    now: datetime,
    validity: timedelta,
) -> str:
    """Why a certificate has to be issued (again); empty if the one that is there will do."""
    if found is None:
        return "there is none"
    if (found.authority_key_id, found.issuer) != (authority.key_id, authority.subject):
        return "another authority issues"
    if found.not_before > now:
        # The clock was wrong when it was issued, and has been set right.
        return "it is not valid yet"
    if found.common_name != common_name:
        return f"it is for {found.common_name}"
    if missing := sorted(set(hosts) - found.hosts):
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        return f"it does not name {missing[0]}{more}"
    lasts = min(now + validity, authority.not_after)
    third = (found.not_after - found.not_before) / 3
    # One that lasts no longer would be issued again and again.
    if found.not_after < lasts and found.not_after - now <= third:
        return f"it expires at {found.not_after:%Y-%m-%dT%H:%M:%SZ}"
    return ""


def expires_soon(found: CertificateView, now: datetime) -> bool:
    """Whether a certificate that is the user's to renew should have been renewed by now."""
    lasts = found.not_after - found.not_before
    return found.not_after - now <= min(EXPIRY_WARNING, lasts / 6)


def hosts_to_name(wanted: Collection[str], found: CertificateView | None) -> tuple[str, ...]:
    """The hosts that a new certificate names: those that are wanted, and those it named before."""
    kept = set(wanted) | (found.hosts if found else frozenset())
    return tuple(sorted(kept if len(kept) <= HOSTS_MAX else set(wanted)))


def parse_time(text: str) -> datetime:
    """RFC 3339 as conditions have it; the beginning of time for anything else."""
    try:
        return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    except ValueError:
        return UNKNOWN


def format_time(moment: datetime) -> str:
    """RFC 3339, in seconds."""
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def no_earlier_than(now: datetime, found: Mapping[str, Any] | None) -> datetime:
    """What time it is: an object of the API server is not from the future.

    A clock that is behind would make valid certificates be replaced by such as have expired.
    """
    meta = (found or {}).get("metadata") or {}
    times = [each.get("time") for each in meta.get("managedFields") or ()]
    recorded = (parse_time(each) for each in (meta.get("creationTimestamp"), *times) if each)
    return max((now, *recorded))
