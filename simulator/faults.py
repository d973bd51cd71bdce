"""The faults of a run: planned from its seed before it begins, so that single ones can be left out.

A fault strikes at a time and lasts; when the troubled time is over everything is healed.
"""

from dataclasses import dataclass
from random import Random

from simulator.options import Options, Power


@dataclass(frozen=True, slots=True)
class Fault:
    """`kind` strikes `brokers` at `at_ms`, for `lasts_ms`.

    Kinds: kill, stop (in good order), power, pause, cut (from the first to the second broker),
    isolate, detach (from ZooKeeper), deafen (to what the controller says), expire (its session),
    rebalance.
    """

    at_ms: int
    kind: str
    brokers: tuple[int, ...]
    lasts_ms: int


_USUAL = (
    ("kill", 6),
    ("stop", 2),
    ("pause", 3),
    ("cut", 5),
    ("isolate", 3),
    ("detach", 3),
    ("deafen", 4),
    ("expire", 2),
    ("rebalance", 2),
)


def plan(options: Options, chance: Random) -> list[Fault]:
    """The faults of one run, in order of time."""
    kinds = list(_USUAL)
    if options.profile.power is not Power.NEVER:
        kinds.append(("power", 6))
    names = [name for name, _ in kinds]
    weights = [weight for _, weight in kinds]
    mean_ms = chance.choice((800, 1_500, 3_000))
    faults: list[Fault] = []
    at_ms = 1_000
    while True:
        at_ms += 1 + int(chance.expovariate(1 / mean_ms))
        if at_ms >= options.troubled_ms:
            return faults
        (kind,) = chance.choices(names, weights)
        faults.append(_fault(at_ms, kind, options, chance))


def _fault(at_ms: int, kind: str, options: Options, chance: Random) -> Fault:
    order = list(range(1, options.brokers + 1))
    chance.shuffle(order)
    count = 1
    if kind == "cut":
        count = 2
    elif kind in ("kill", "expire") and chance.random() < 0.2:
        count = chance.randint(2, options.brokers)
    elif kind == "power" and options.profile.power is Power.ANY and chance.random() < 0.4:
        count = options.brokers
    # Now shorter than a session, now longer, now a bounce.
    longest = chance.choice((60, 600, 2_000, 6_000))
    if kind == "deafen":
        longest *= 2
    return Fault(at_ms, kind, tuple(order[:count]), chance.randint(10, longest))
