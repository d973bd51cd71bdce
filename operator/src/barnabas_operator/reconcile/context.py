"""What every reconcile is given: the ports, the images, and the time it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from barnabas_operator.brokers import Brokers
from barnabas_operator.kube import Kube
from barnabas_operator.plan.clusters import Images
from barnabas_operator.progress import Progress
from barnabas_operator.standing import Standing


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The dependencies of a reconcile. `now` is RFC 3339, in seconds, as conditions have it."""

    kube: Kube
    brokers: Callable[[str], Brokers]
    progress: Callable[[str], Progress | None]
    may_restart: Callable[[str], Standing]
    has_caught_up: Callable[[str], Standing]
    images: Images
    now: str
