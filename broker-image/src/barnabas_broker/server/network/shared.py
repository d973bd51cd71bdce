"""What all sessions of a broker have together: memory, and rounds of the event loop."""

from dataclasses import dataclass, field
from typing import Final

from barnabas_broker.server.network.long_requests import LongRequests
from barnabas_broker.server.network.response_coalescing import ResponseCoalescer
from barnabas_broker.server.process.cooperative_scheduler import Line, Round
from barnabas_broker.server.transport.counters import Counters
from barnabas_broker.server.transport.memory_pool import MemoryPool
from barnabas_broker.server.transport.send_buffers import SendBuffers
from barnabas_broker.server.transport.write_readiness import WriteReadiness

ROUND_BYTES: Final = 1 << 20
"""How much of all large requests is received in one round of the loop."""


@dataclass(frozen=True, slots=True)
class Shared:
    """What all sessions of a broker draw from, and where they report misconduct."""

    memory: MemoryPool
    output: SendBuffers
    counters: Counters
    writability: WriteReadiness
    line: Line
    burst: ResponseCoalescer
    receiving: Line = field(default_factory=Line)
    """Who goes on receiving a large request."""
    serving: LongRequests = field(default_factory=LongRequests)
    """Who is served a long request."""
    round_bytes: Round = field(default_factory=lambda: Round(ROUND_BYTES))
