"""What a run is made of: the faults that may strike, the rules of the brokers, planted bugs.

A fault model is part of every promise: what a profile's run may meet is what the broker with that
`barnabas.durability` promises to survive.
"""

from dataclasses import dataclass, field
from enum import Enum
from typing import Final


class Power(Enum):
    """Whether machines lose their power, and with it what is not on disk."""

    NEVER = "no power loss"
    ONE_AT_A_TIME = "power loss of one machine at a time, the last one having caught up again"
    ANY = "power loss of any machines, also of all at once"


@dataclass(frozen=True, slots=True)
class Bugs:
    """Mistakes of the past, to be found by the checks: Kafka once made them, or we did."""

    truncate_to_high_watermark: bool = False
    """Before KIP-101: a follower cuts its log to its high watermark."""
    forget_answered_epoch: bool = False
    """Before KIP-279: OffsetsForLeaderEpoch answers an offset alone."""
    ignore_fetch_epoch: bool = False
    """Before KIP-320: a Fetch does not say in which epoch it is made."""
    ignore_version: bool = False
    """The ISR is written whatever the version of its znode is."""
    one_epoch_for_all: bool = False
    """Before KIP-890: a producer's transactions have one epoch, and so have their markers."""
    forget_orders: bool = False
    """Ours: a coordinator that leads on in a new epoch forgets what it decided in the last one."""


@dataclass(frozen=True, slots=True)
class Strict:
    """Rules beyond Apache's, each of which may be on."""

    unclean_registration: bool = False
    """Who starts uncleanly says so, and leaves every ISR with other members."""
    careful_election: bool = False
    """A sole ISR member that started uncleanly leads only if no replica's log is longer."""
    flush_on_shrink: bool = False
    """The leader's log is on disk before the ISR shrinks."""
    epoch_after_restart: bool = False
    """A leader that registered after its state was written leads on only in a new epoch."""
    hold_below_min: bool = True
    """The high watermark stays while the ISR is below min.insync.replicas (Apache: from 3.7)."""


@dataclass(frozen=True, slots=True)
class Profile:
    """A durability profile with the faults its promise covers."""

    name: str
    power: Power
    fsync: bool
    """Records count only once they are on disk (`barnabas.durability=fsync`)."""
    lossless: bool = True
    """Whether the promise is that no acknowledged record is ever lost under these faults."""


REPLICATED: Final = Profile("replicated", Power.NEVER, fsync=False)
FSYNC: Final = Profile("fsync", Power.ANY, fsync=True)
ONE_POWER_LOSS: Final = Profile("one-power-loss", Power.ONE_AT_A_TIME, fsync=False, lossless=False)
PROFILES: Final = {profile.name: profile for profile in (REPLICATED, FSYNC, ONE_POWER_LOSS)}

STRICT: Final = Strict(
    unclean_registration=True,
    careful_election=True,
    flush_on_shrink=True,
    epoch_after_restart=True,
)


@dataclass(frozen=True, slots=True)
class Options:
    """One kind of run. Times in simulated ms."""

    profile: Profile = REPLICATED
    strict: Strict = field(default_factory=Strict)
    bugs: Bugs = field(default_factory=Bugs)
    brokers: int = 3
    min_in_sync: int = 2
    troubled_ms: int = 40_000
    healed_ms: int = 25_000
    lag_max_ms: int = 3_000
    session_ms: int = 2_000
    real_log: bool = False
    transactions: bool = False
    """Three partitions on three brokers each: a coordinator's, and two that it ends together."""


RULES: Final = {
    "unclean-registration": Strict(unclean_registration=True),
    "careful-election": Strict(unclean_registration=True, careful_election=True),
    "flush-on-shrink": Strict(flush_on_shrink=True),
    "epoch-after-restart": Strict(epoch_after_restart=True),
    "no-hold": Strict(hold_below_min=False),
}
"""Each rule alone, but for the careful election, which goes by what registrations say; and
Apache's own left out."""

VARIANTS: Final[dict[str, Options]] = {
    "replicated": Options(),
    "fsync": Options(profile=FSYNC, strict=Strict(epoch_after_restart=True)),
    "fsync-as-apache": Options(profile=FSYNC),
    "one-power-loss": Options(profile=ONE_POWER_LOSS),
    "one-power-loss-strict": Options(profile=ONE_POWER_LOSS, strict=STRICT),
    **{
        f"one-power-loss-{name}": Options(profile=ONE_POWER_LOSS, strict=strict)
        for name, strict in RULES.items()
    },
    "replicated-strict": Options(strict=STRICT),
    "fsync-strict": Options(profile=FSYNC, strict=STRICT),
    **{
        f"{profile.name}-disk": Options(
            profile=profile, strict=STRICT, real_log=True, troubled_ms=15_000, healed_ms=15_000
        )
        for profile in PROFILES.values()
    },
    "replicated-transactions": Options(strict=STRICT, transactions=True),
    "fsync-transactions": Options(profile=FSYNC, strict=STRICT, transactions=True),
    "bug-one-epoch-for-all": Options(
        strict=STRICT, transactions=True, bugs=Bugs(one_epoch_for_all=True)
    ),
    "bug-forget-orders": Options(strict=STRICT, transactions=True, bugs=Bugs(forget_orders=True)),
    "bug-truncate-to-high-watermark": Options(bugs=Bugs(truncate_to_high_watermark=True)),
    "bug-forget-answered-epoch": Options(bugs=Bugs(forget_answered_epoch=True)),
    "bug-ignore-fetch-epoch": Options(bugs=Bugs(ignore_fetch_epoch=True)),
    "bug-ignore-version": Options(bugs=Bugs(ignore_version=True)),
}
