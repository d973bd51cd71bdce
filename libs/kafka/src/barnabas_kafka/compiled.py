"""Which modules mypyc compiles, and whether this installation has them compiled.

Without a C compiler at build time they run as plain Python: the same results, slower Produce and
Fetch. `libs/kafka/setup.py` reads MODULES from this file before anything is installed, so it
imports the standard library only.
"""

from importlib.machinery import SOURCE_SUFFIXES
from importlib.util import find_spec
from typing import Final

MODULES: Final = (
    "barnabas_kafka.protocol.plain_commit",
    "barnabas_kafka.protocol.plain_fetch",
    "barnabas_kafka.protocol.plain_heartbeat",
    "barnabas_kafka.protocol.plain_produce",
    "barnabas_kafka.protocol.plain_rebalance",
    "barnabas_kafka.records.walk",
)


def interpreted() -> tuple[str, ...]:
    """The modules of MODULES that run as plain Python here; empty where all are compiled."""
    return tuple(name for name in MODULES if _is_source(name))


def _is_source(name: str) -> bool:
    spec = find_spec(name)
    return spec is None or spec.origin is None or spec.origin.endswith(tuple(SOURCE_SUFFIXES))
