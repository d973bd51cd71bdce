"""How to do without a rule of the operator: what takes the place of the code that has it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from barnabas_kafka.certificates import (
    CertificateError,
    KeyPair,
    ServerIdentity,
    read_certificate,
)
from barnabas_operator.handlers.guard import Deadline
from barnabas_operator.handlers.work_queue import WorkQueue
from barnabas_operator.kube import PODS
from barnabas_operator.plan import rolling, shards, versions
from barnabas_operator.plan.findings import Reason, Severity
from barnabas_operator.plan.ledger import LedgerEntry
from barnabas_operator.plan.observed import Images
from barnabas_operator.plan.passwords import SecretView
from barnabas_operator.plan.steps import DeletePod, GrowClaim
from barnabas_operator.reconcile.context import Context


class Off(NamedTuple):
    """An attribute that has the rule, and what makes of it one that does not."""

    where: Any
    name: str
    instead: Callable[[Any], Any]


def always(value: Any) -> Callable[[Any], Any]:
    """Another value instead of an attribute."""
    return lambda _: value


def returns(value: Any) -> Callable[[Any], Any]:
    """A function that returns a value, whatever it is given."""
    return lambda _: lambda *__, **___: value


def everywhere(name: str, modules: Iterable[Any], instead: Callable[[Any], Any]) -> tuple[Off, ...]:
    """A function that several modules have imported."""
    return tuple(Off(module, name, instead) for module in modules)


def unready_is_broken(_: Any) -> Any:
    def broken_to_replace(pods: Any, seen: Any) -> DeletePod | None:
        due = (
            DeletePod(name=pod.name, uid=pod.uid, reason="")
            for pod in rolling.outdated(pods, seen)
            if not pod.serves and not pod.terminating
        )
        return next(due, None)

    return broken_to_replace


def delete_everything(_: Any) -> Any:
    def delete_orphans(_: Any, entries: Any, __: Any, brokers: Any, ___: Any) -> Any:
        return (entries and brokers.delete_topics(entries)) or {}

    return delete_orphans


def without_guard(name: str) -> Callable[[Any], Any]:
    """A constructor that forgets an argument."""
    return lambda original: lambda **given: original(**{**given, name: ()})


def shrinks(_: Any) -> Any:
    def growth(found: Iterable[Any], size: str) -> tuple[list[GrowClaim], list[str]]:
        steps = [
            GrowClaim(
                name=each["metadata"]["name"], size=size, reason="", present="", storage_class=""
            )
            for each in found
            if each["spec"]["resources"]["requests"]["storage"] != size
        ]
        return steps, []

    return growth


def newest(_: Any) -> Any:
    def chosen_images(_: Any, __: Any, images: Images) -> versions.Chosen:
        return versions.Chosen(broker=images.broker, zookeeper=images.zookeeper)

    return chosen_images


def newest_of_pipelines(_: Any) -> Any:
    def chosen_pipeline_image(_: Any, __: Any, images: Images) -> tuple[str, str]:
        return images.pipeline, ""

    return chosen_pipeline_image


def every_pod_counts(original: Any) -> Any:
    def check_availability(given: Any, draft: Any) -> None:
        for each in given.absences("broker"):
            draft.find(Reason.STARTING, each.message)
        original(given, draft)

    return check_availability


def with_severity(reason: Reason, severity: Severity) -> Callable[[Any], Any]:
    """The property `severity` of findings, with another one for a reason."""

    def instead(original: Any) -> Any:
        return property(lambda found: severity if found.reason is reason else original.fget(found))

    return instead


def without(*path: str) -> Callable[[Any], Any]:
    """A function that builds an object, which lacks a field."""

    def instead(original: Any) -> Any:
        def build(*arguments: Any, **named: Any) -> Any:
            body = original(*arguments, **named)
            place = body
            for name in path[:-1]:
                place = place[name]
            place.pop(path[-1])
            return body

        return build

    return instead


def probe_ready(original: Any) -> Any:
    return lambda _, **named: original("/ready", **named)


def no_rack_wait(original: Any) -> Any:
    def add_rack(pod: Any, *arguments: Any, **named: Any) -> None:
        original(pod, *arguments, **named)
        pod.pop("initContainers")

    return add_rack


def without_labels(original: Any) -> Any:
    return classmethod(lambda _, pod, *, topology_key="": original(pod))


def reraise(original: Any) -> Any:
    def find_keys(*arguments: Any, **named: Any) -> Any:
        found = original(*arguments, **named)
        for error in found.errors.values():
            raise error
        return found

    return find_keys


def strict_lines(_: Any) -> Any:
    def parse(texts: Mapping[int, str], written: Any) -> Any:
        lines = [(n, line) for n, text in texts.items() for line in text.split("\n") if line]
        entries = {each[0]: each[1] for each in (written.parse(line) for _, line in lines)}
        return shards.Stored(entries=entries, shards=dict.fromkeys(entries, 0))

    return parse


def delete_instead_of_evict(original: Any) -> Any:
    def apply_step(step: Any, namespace: str, context: Context) -> None:
        if isinstance(step, DeletePod):
            context.kube.delete(PODS, namespace, step.name, uid=step.uid)
        else:
            original(step, namespace, context)

    return apply_step


def never_probing(original: Any) -> Any:
    return lambda **given: original(**{**given, "probe_after_s": 3600.0})


def reachable_for_ever(_: Any) -> Any:
    async def hand_over(handing_over: Any, **_: Any) -> bool:
        # In place of a wait without an end.
        handing_over.close()
        return True

    return hand_over


def never_slow(_: Any) -> Any:
    return lambda *_: None


def user_waits_too(original: Any) -> Any:
    def add(queue: WorkQueue, key: Any, now: float, *, changed: bool = True) -> None:
        original(queue, key, now, changed=False)

    return add


def before_it_was_ready(_: Any) -> Any:
    return lambda health, now: "" if health.synced else "not synced"


def generation_of_before(original: Any) -> Any:
    def reported(verdict: Any, **named: Any) -> Any:
        found = original(verdict, **named)
        return tuple(dataclasses.replace(each, observed_generation=0) for each in found)

    return reported


def without_deadline(original: Any) -> Any:
    def check(deadline: Deadline, call: str, namespace: str) -> None:
        if deadline._stop.asked:
            original(deadline, call, namespace)

    return check


def without_leadership(original: Any) -> Any:
    return lambda deadline, _, namespace: original(deadline, "get", namespace)


def with_check(name: str, change: Callable[[Any], Any] | None) -> Callable[[Any], Any]:
    """The table of checks, in which one runs otherwise; without `change`, does nothing."""

    def instead(checks: Iterable[Any]) -> tuple[Any, ...]:
        return tuple(
            dataclasses.replace(
                each, run=change(each.run) if change is not None else lambda *_: None
            )
            if each.name == name
            else each
            for each in checks
        )

    return instead


def everything_recorded(_: Any) -> Any:
    """Topics are entered whatever their policy is."""

    def next_ledger(entries: Any, topics: Mapping[str, Any], ids: Mapping[str, str]) -> Any:
        found = {
            name: LedgerEntry(resource=each.meta.name, uid=each.meta.uid, topic_id=ids[name])
            for name, each in topics.items()
            if name in ids
        }
        return {**entries, **found}

    return next_ledger


def silent_outcome(original: Any) -> Any:
    """A verdict without its message."""

    def outcome(*arguments: Any) -> Any:
        found = original(*arguments)
        return dataclasses.replace(found, verdict=dataclasses.replace(found.verdict, message=""))

    return outcome


def one_at_a_time(_: Any) -> Any:
    """Batches of one."""
    return lambda items, *__: ([each] for each in items)


def all_figures_due(_: Any) -> Any:
    """A port of the context that always says yes."""
    return property(lambda _: lambda __: True, lambda *_: None)


def waits_for_ever(original: Any) -> Any:
    """A deadline that has passed and ends nothing."""

    def left(until: float) -> float:
        try:
            seconds: float = original(until)
        except TimeoutError:
            # In place of a wait without an end.
            raise AssertionError("it goes on") from None
        return seconds

    return left


def issued_all_the_same(original: Any) -> Any:
    """A certificate of an authority that has expired."""

    def issue(authority: KeyPair, *arguments: Any, now: datetime, **given: Any) -> Any:
        valid = read_certificate(authority.certificate).not_before
        return original(authority, *arguments, now=min(now, valid), **given)

    return issue


def unchecked_identity(_: Any) -> Any:
    """What the Secret of a listener has, whatever it is."""

    def identity(source: Any, found: Any, _: datetime) -> ServerIdentity:
        if found is None:
            raise CertificateError("it does not exist; create it")
        view = SecretView.of(found)
        pair = KeyPair(certificate=view.text(source.certificate), key=view.text(source.key))
        return ServerIdentity(pair=pair, authorities=view.text("ca.crt"))

    return identity


def taken_for_a_change(original: Any) -> Any:
    """An event of a list as one of a watch."""

    def observe(index: Any, kind: Any, event: Mapping[str, Any]) -> None:
        original(index, kind, {**event, "type": event.get("type") or "MODIFIED"})

    return observe
