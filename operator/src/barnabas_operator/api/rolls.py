"""How pods that serve are replaced after a change: when, how carefully, and the plan of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, ClassVar

from barnabas_operator.api.facts import Between, Doc, Longest, Pattern, Rule


class RollPolicyType(StrEnum):
    """When pods that serve are replaced after a change."""

    AUTO = "Auto"
    ON_APPROVAL = "OnApproval"
    WINDOW = "Window"


class Weekday(StrEnum):
    """A day, in UTC."""

    MONDAY = "Mon"
    TUESDAY = "Tue"
    WEDNESDAY = "Wed"
    THURSDAY = "Thu"
    FRIDAY = "Fri"
    SATURDAY = "Sat"
    SUNDAY = "Sun"


@dataclass(frozen=True, slots=True, kw_only=True)
class RollWindow:
    """A time of the week, in UTC."""

    days: Annotated[
        tuple[Weekday, ...], Doc("Days on which the window opens; every day if absent."), Longest(7)
    ] = ()
    start: Annotated[
        str, Doc("When it opens, UTC."), Pattern("^([01][0-9]|2[0-3]):[0-5][0-9]$", "hh:mm")
    ]
    hours: Annotated[int, Doc("For how many hours it is open."), Between(1, 24)]


@dataclass(frozen=True, slots=True, kw_only=True)
class RollPolicy:
    """When pods that serve are replaced after a change, as earlier versions had it."""

    RULES: ClassVar = (
        Rule("(self.type == 'Window') == has(self.window)", "window is for type Window"),
    )

    type: Annotated[RollPolicyType, Doc("Auto, OnApproval or Window.")] = RollPolicyType.AUTO
    window: Annotated[RollWindow | None, Doc("The window, for type Window.")] = None


class Guarantee(StrEnum):
    """What has to hold before a broker that serves is replaced."""

    READY = "Ready"
    KEEP_HEALTHY = "KeepHealthy"
    ALL_HEALTHY = "AllHealthy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Roll:
    """How pods that serve are replaced after a change."""

    RULES: ClassVar = (
        Rule("(self.policy == 'Window') == has(self.window)", "window is for policy Window"),
    )

    policy: Annotated[
        RollPolicyType,
        Doc(
            "Auto: at once, one at a time; OnApproval: once the KafkaCluster has the annotation"
            " barnabas.io/approve-roll with the token that the status names; Window: in a window."
            " A pod that cannot start is replaced at any time."
        ),
    ] = RollPolicyType.AUTO
    window: Annotated[RollWindow | None, Doc("The window, for policy Window.")] = None
    guarantee: Annotated[
        Guarantee,
        Doc(
            "What has to hold before a broker is replaced. Ready: all pods are ready; KeepHealthy:"
            " brokers replaced before are in sync, and no partition falls below its min ISR;"
            " AllHealthy: every replica of the cluster is in sync, too."
        ),
    ] = Guarantee.KEEP_HEALTHY
    soak_seconds: Annotated[
        int,
        Doc("How long the last replaced pod has to be ready before the next one is replaced."),
        Between(0, 86_400),
    ] = 0
    max_unavailable_per_rack: Annotated[
        int,
        Doc(
            "At most so many brokers are replaced together. They are of one rack (brokers.rack), no"
            " partition has replicas on two of them, and none is the controller; so a partition"
            " loses one replica at most, as with 1. What fits less is replaced in smaller groups."
        ),
        Between(1, 100),
    ] = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RollGroup:
    """Brokers of one rack that are replaced together."""

    rack: Annotated[str, Doc("Their rack.")] = ""
    pods: Annotated[tuple[str, ...], Doc("Their pods.")] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RollStatus:
    """A roll that is due or under way: why, in which order, and what it waits for."""

    token: Annotated[str, Doc("Names this roll in annotations, as barnabas.io/approve-roll.")] = ""
    reason: Annotated[str, Doc("What is different in the pods to come.")] = ""
    order: Annotated[tuple[str, ...], Doc("The pods that are left, in their order.")] = ()
    groups: Annotated[
        tuple[RollGroup, ...],
        Doc(
            "Those of the order that are replaced together, where maxUnavailablePerRack allows it."
        ),
    ] = ()
    blockers: Annotated[tuple[str, ...], Doc("What the next pod waits for.")] = ()
    estimate_seconds: Annotated[
        int, Doc("How long the rest takes if nothing blocks, by the starts of the present pods.")
    ] = 0
